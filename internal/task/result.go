package task

import "time"

// State is where a run stands.
type State string

// The states of a run. The last three are terminal.
const (
	StateQueued     State = "queued"
	StateInProgress State = "in_progress"
	StateCompleted  State = "completed"
	StateFailed     State = "failed"
	StateCancelled  State = "cancelled"
)

// Terminal reports whether a run in this state is over.
func (s State) Terminal() bool {
	return s == StateCompleted || s == StateFailed || s == StateCancelled
}

// Result is how a run ended. It travels in the last event of the run and is all
// that a caller needs for its exit code.
type Result struct {
	Run      ID        `json:"run"`
	Task     ID        `json:"task"`
	State    State     `json:"state"`
	Code     int       `json:"code"`                // the published exit code (see `help exit-codes`)
	ExitCode *int      `json:"exit_code,omitempty"` // the command's own, where there was one
	Signal   string    `json:"signal,omitempty"`    // the signal that ended the command
	Kind     string    `json:"kind,omitempty"`      // errs kind of Error
	Error    string    `json:"error,omitempty"`     // one line, masked
	Hint     string    `json:"hint,omitempty"`
	Cleanup  string    `json:"cleanup,omitempty"` // what could not be removed, beside the first error
	Provider string    `json:"provider"`
	Sandbox  string    `json:"sandbox,omitempty"` // set when it was kept or left behind
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`

	IdleEnd      bool `json:"timed_out_inactivity,omitempty"` // ended for lack of activity: not an error
	WallClockEnd bool `json:"timed_out_wall_clock,omitempty"`

	Turn  *Turn        `json:"turn,omitempty"`  // the last one, where an agent talked
	Usage *Tokens      `json:"usage,omitempty"` // what went to models through the gateway
	Repos []RepoResult `json:"repos,omitempty"`
	// Published are the branches and pull requests that were published, each as it was
	// last.
	Published []Published `json:"published,omitempty"`
	// Denied are the places that the network policy refused, summed up, at most 100.
	Denied []Denied `json:"denied,omitempty"`
}

// RepoResult is what became of one repository.
type RepoResult struct {
	Org        string `json:"org"`
	Name       string `json:"name"`
	Base       string `json:"base,omitempty"`   // the commit the run started from
	Commit     string `json:"commit,omitempty"` // a commit of everything the sandbox changed
	Ref        string `json:"ref,omitempty"`    // where Commit is kept: refs/insights/<run>
	Files      int    `json:"files"`            // changed files
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
	Error      string `json:"error,omitempty"` // why the changes could not be taken out
}
