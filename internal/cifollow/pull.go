package cifollow

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// State is where a pull request stands.
type State string

// The states of a pull request.
const (
	Open   State = "open"
	Closed State = "closed"
	Merged State = "merged"
)

// Pull is a pull request as it stands on GitHub.
type Pull struct {
	Org, Name   string
	Number      int
	URL, Branch string
	Head        string // the last commit of Branch
	State       State
	Checks      []Check
	// Reviews ask for changes: the last word of each reviewer who is trusted.
	Reviews []Review
	// Threads are the conversations that nobody resolved and somebody trusted is part of.
	Threads []Thread
	// Missing names the permissions without which something was not seen, as GitHub does.
	Missing []string
}

// String is org/name#number.
func (p *Pull) String() string { return fmt.Sprintf("%s/%s#%d", p.Org, p.Name, p.Number) }

// Outcome is how a check stands.
type Outcome int

// The outcomes of a check.
const (
	Pending Outcome = iota
	Fine            // passed, or of no consequence: skipped, neutral, cancelled
	Failed
)

// Check is one check of a commit: a check run, a status or a workflow.
type Check struct {
	Name    string
	Outcome Outcome
	Says    string // in GitHub's word: failure, timed_out, ...
	URL     string
	Summary string
}

// Review is a review that asks for changes.
type Review struct {
	ID    int64
	Login string
	Body  string
}

// Thread is a conversation about a place in a file.
type Thread struct {
	Path     string
	Line     int // 0: the file, or a line that is no more
	Comments []Comment
}

// Comment is what somebody trusted said in a conversation.
type Comment struct{ Login, Body string }

// with are the checks that ended so.
func (p *Pull) with(o Outcome) []Check {
	return slices.DeleteFunc(slices.Clone(p.Checks), func(c Check) bool { return c.Outcome != o })
}

// fingerprint is the same as long as there is nothing new to mend.
func (p *Pull) fingerprint() string {
	lines := []string{p.Head}
	for _, c := range p.with(Failed) {
		lines = append(lines, fmt.Sprintf("check %q %s", c.Name, c.Says))
	}
	for _, r := range p.Reviews {
		lines = append(lines, fmt.Sprintf("review %d", r.ID))
	}
	slices.Sort(lines[1:])
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(lines), "\n")))
	return hex.EncodeToString(sum[:8])
}

// trusted reports whether somebody is quoted, by what GitHub says that they are to the
// repository.
func trusted(association string) bool {
	return association == "OWNER" || association == "MEMBER" || association == "COLLABORATOR"
}

// lastWords are the reviews that stand: of each reviewer the last that decides, where it
// asks for changes.
func lastWords(all []verdict) []Review {
	last := map[string]verdict{}
	for _, v := range all {
		switch v.state {
		case "APPROVED", "CHANGES_REQUESTED", "DISMISSED":
			last[v.Login] = v
		}
	}
	var stand []Review
	for _, v := range last {
		if v.state == "CHANGES_REQUESTED" && trusted(v.association) {
			stand = append(stand, v.Review)
		}
	}
	slices.SortFunc(stand, func(a, b Review) int { return cmp.Compare(a.ID, b.ID) })
	return stand
}

// verdict is a review of any kind.
type verdict struct {
	Review
	state, association string
}
