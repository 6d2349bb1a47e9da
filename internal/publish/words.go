package publish

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/signing"
	"github.com/Insights/insightscli/internal/task"
)

// Bounds of what a model may say, in bytes. GitHub takes 65,536 characters of a pull
// request's body.
const (
	maxTitle = 1 << 10
	maxBody  = 60 << 10
	maxPaths = 10_000
)

// decode reads arguments and refuses names that it does not know.
func decode(raw json.RawMessage, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("the arguments do not fit: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the arguments do not fit: more than one value")
	}
	return nil
}

// checkTexts refuses a title or a body that is too long.
func checkTexts(op, title, body string) error {
	switch {
	case len(title) > maxTitle:
		return errs.New(op, errs.Usage, "put the details into body", "the headline is longer than %d bytes", maxTitle)
	case len(body) > maxBody:
		return errs.New(op, errs.Usage, "make it shorter", "the body is longer than %d KiB", maxBody>>10)
	case strings.ContainsRune(title+body, 0):
		return errs.New(op, errs.Usage, "leave it out", "there is a NUL character in the text")
	}
	return nil
}

// withTrailers adds to the body of a commit where it comes from.
func withTrailers(body string, id task.ID) string {
	body = strings.TrimRight(body, " \t\r\n")
	trailers := []string{"Generated-By: insightscli", "Task-Id: " + string(id)}
	var lines []string
	for _, t := range trailers {
		if !strings.Contains("\n"+body+"\n", "\n"+t+"\n") {
			lines = append(lines, t)
		}
	}
	add := strings.Join(lines, "\n")
	switch {
	case add == "":
		return body
	case body == "":
		return add
	case endsInTrailers(body):
		return body + "\n" + add
	}
	return body + "\n\n" + add
}

// endsInTrailers reports whether the last paragraph of a body has trailers only.
func endsInTrailers(body string) bool {
	last := body[strings.LastIndex(body, "\n\n")+1:]
	for line := range strings.SplitSeq(strings.Trim(last, "\n"), "\n") {
		key, value, ok := strings.Cut(line, ": ")
		if !ok || key == "" || value == "" || strings.ContainsAny(key, " \t") {
			return false
		}
	}
	return true
}

// list is the commits of a result, one line each.
func list(r signing.Result) string {
	commits := r.Commits
	if len(commits) == 0 {
		commits = []signing.Commit{{SHA: r.SHA, URL: r.URL}}
	}
	var b strings.Builder
	for _, c := range commits {
		fmt.Fprintf(&b, "- %s %s\n", c.SHA, c.URL)
	}
	return b.String()
}

// answer is what a tool says that has published.
func (j *job) answer(did string, r signing.Result) string {
	if r.Unchanged {
		did = fmt.Sprintf("%s of %s has all of this already:", j.branch, j.to)
	}
	text := did + "\n" + list(r)
	for _, w := range append(r.Warnings, j.notes...) {
		text += "note: " + w + "\n"
	}
	return strings.TrimSuffix(text, "\n")
}

func short(oid string) string {
	if len(oid) > 12 {
		return oid[:12]
	}
	return oid
}

// The refusals of the tools that package signing does not know.

func refuseDefault(op, branch string) error {
	return errs.New(op, errs.Conflict, "make a branch (git switch -c NAME), then try again",
		"nothing is published to %s: %w", branch, signing.ErrDefaultBranch)
}

func refuseMoved(op, branch, tip string) error {
	return errs.New(op, errs.Conflict,
		fmt.Sprintf("git stash -u, git fetch origin, git reset --hard origin/%s, git stash pop; then stage and try again", branch),
		"the branch %s is at %s on GitHub, which is not part of your checkout's history: %w", branch, short(tip), signing.ErrMoved)
}

func refuseUnseen(op, branch, tip string) error {
	return errs.New(op, errs.Conflict,
		fmt.Sprintf("git fetch origin, see what is new in origin/%[1]s, rebase onto it if you want to keep it, then try again", branch),
		"the branch %s is at %s on GitHub, and your checkout has not seen that: %w", branch, short(tip), signing.ErrMoved)
}

func refuseUnpublished(op, commit string) error {
	return errs.New(op, errs.Conflict, "tell the user: they have to push it themselves",
		"the run began at commit %s, which is not on GitHub: a branch cannot begin there", short(commit))
}
