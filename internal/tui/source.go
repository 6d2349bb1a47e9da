package tui

import (
	"context"
	"io"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

// Run is what the screens know of a run beside its log.
type Run struct {
	ID       task.ID
	State    task.State
	Title    string
	Agent    string
	Repos    []string // org/name
	Provider string
	Who      string // who carries it out, of one that is not over
	Created  time.Time
	Started  time.Time // zero: not yet
	Finished time.Time // zero: not yet
	Usage    *task.Tokens
	Talks    bool // its agent takes messages
}

// Source is where runs and their logs are read. Its methods may be called at the same
// time; each returns soon after ctx is done.
type Source interface {
	// Runs returns the newest runs, the newest first.
	Runs(ctx context.Context) ([]Run, error)
	// Run returns the run that an id, the beginning of one, or "latest" means.
	Run(ctx context.Context, name string) (Run, error)
	// Open opens the log of a run. It is an fs.ErrNotExist before the run has begun.
	Open(ctx context.Context, run task.ID) (Log, error)
}

// Log is the log of a run: stored lines, as the journal has them. It only grows.
type Log interface {
	io.ReaderAt
	io.Closer
	Size() (int64, error)
}

// NewRun is a run as the form asks for it.
type NewRun struct {
	Prompt string // what the agent is to do, or a command line for the agent exec
	Agent  string
	Repo   string // empty: none
	Branch string // empty: the repository's own
}

// Actions are what can be done with runs. The methods may be called at the same time.
type Actions interface {
	// Send says something to a live run.
	Send(ctx context.Context, run task.ID, in task.Input) error
	// Cancel asks for the end of a run, and does not wait for it.
	Cancel(ctx context.Context, run task.ID) error
	// Prune removes what no live run owns and returns what was removed, a line each. Dry,
	// it returns what would be.
	Prune(ctx context.Context, dry bool) ([]string, error)
	// Start hands a new run to the background runner.
	Start(ctx context.Context, n NewRun) (task.ID, error)
	// Diff returns what a run changed, so far if it is not over, as a unified diff.
	Diff(ctx context.Context, run task.ID) ([]byte, error)
}
