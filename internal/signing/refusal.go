package signing

import (
	"errors"
	"fmt"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// Why nothing was published. Each comes with a hint that says how to recover.
var (
	ErrDefaultBranch = errors.New("this is the default branch")
	ErrBaseBranch    = errors.New("this is the base branch")
	ErrUnknownBranch = errors.New("the default branch is not known")
	ErrMoved         = errors.New("the remote branch has advanced")
	ErrNothing       = errors.New("no staged changes")
	ErrBusy          = errors.New("an operation is in progress")
	ErrBaseLeak      = errors.New("changes of the base branch are staged")
	ErrUnverified    = errors.New("GitHub did not sign the commit")
	ErrMergeInRange  = errors.New("there are merge commits to rewrite")
	ErrMergeConflict = errors.New("the branches conflict")
	ErrNoBranch      = errors.New("the branch is not on GitHub")
	ErrSecret        = errors.New("GitHub found a secret in a file")
	ErrTooLarge      = errors.New("a file is too large")
	ErrUserToken     = errors.New("the token of a person cannot publish this signed")
)

// Busy is the refusal where a merge, rebase or cherry-pick is in progress: what is
// staged then is not only the agent's. Whoever sees the working tree says so.
func Busy(op, what string) error {
	return errs.New(op, errs.Conflict, "finish it (git "+what+" --continue) or give it up (git "+what+" --abort), then try again",
		"a %s is in progress: %w", what, ErrBusy)
}

// Nothing is the refusal where there is nothing to publish.
func Nothing(op string) error {
	return errs.New(op, errs.Conflict, "stage what is to be published with git add, or name its paths", "nothing to publish: %w", ErrNothing)
}

const recoverMoved = "git stash -u, git fetch, git reset --hard to the remote branch, git stash pop; then stage and try again"

// moved is the refusal where somebody else pushed.
func moved(op, branch, tip, expected string) error {
	have, was := "is at "+short(tip), "at "+short(expected)
	if tip == "" {
		have = "does not exist"
	}
	if expected == "" {
		was = "absent"
	}
	return errs.New(op, errs.Conflict, recoverMoved, "the branch %s %s on GitHub, and was expected %s: %w", branch, have, was, ErrMoved)
}

func short(oid string) string {
	if len(oid) > 12 {
		return oid[:12]
	}
	return oid
}

// maxListed is how many names an error lists.
const maxListed = 10

// list puts names in a line.
func list(names []string) string {
	more := ""
	if n := len(names) - maxListed; n > 0 {
		names, more = names[:maxListed], fmt.Sprintf(" and %d more", n)
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, ", ") + more
}
