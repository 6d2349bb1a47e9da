package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/background"
	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

// runObject is a run in the output of --json.
type runObject struct {
	Run      task.ID      `json:"run"`
	Task     task.ID      `json:"task"`
	State    task.State   `json:"state"`
	Title    string       `json:"title"`
	Agent    string       `json:"agent"`
	Command  []string     `json:"command,omitempty"`
	Repos    []string     `json:"repos,omitempty"` // org/name
	Provider string       `json:"provider"`
	Image    string       `json:"image,omitempty"`
	Network  task.Network `json:"network"`
	Sandbox  string       `json:"sandbox,omitempty"`
	Owner    *ownerObject `json:"owner,omitempty"` // of a run that is not over
	Version  string       `json:"version"`
	Created  time.Time    `json:"created"`
	Started  *time.Time   `json:"started,omitempty"`
	Finished *time.Time   `json:"finished,omitempty"`
	Log      string       `json:"log"`
	Result   *task.Result `json:"result,omitempty"`
	// Usage is what went to models so far, in all and by model.
	Usage   *task.Tokens           `json:"usage,omitempty"`
	ByModel map[string]task.Tokens `json:"usage_by_model,omitempty"`
}

// The states of a run's owner beyond those of package owner.
const (
	ownerNone    = "none"    // the background runner is about to take it
	ownerWaiting = "waiting" // for `run --start`
)

// ownerObject is the process that carries out a run.
type ownerObject struct {
	State string `json:"state"` // alive, dead, foreign, none, waiting
	ID    string `json:"id,omitempty"`
	Host  string `json:"host,omitempty"`
	PID   int    `json:"pid,omitempty"`
}

// String says in two words who it is.
func (o ownerObject) String() string {
	switch o.State {
	case string(owner.StateAlive):
		return fmt.Sprintf("process %d", o.PID)
	case string(owner.StateForeign):
		return "foreign: " + o.Host
	case ownerWaiting:
		return "waits for --start"
	}
	return "nobody"
}

// ownerOf tells who carries out a run that is not over.
func (s *state) ownerOf(rec journal.Record) ownerObject {
	if rec.Owner == "" {
		if background.Ownerless(s.dir, rec) {
			return ownerObject{State: ownerNone}
		}
		return ownerObject{State: ownerWaiting}
	}
	st, err := owner.Lookup(s.dir, rec.Owner)
	if err != nil { // what cannot be told counts as alive
		return ownerObject{State: string(owner.StateAlive), ID: rec.Owner}
	}
	return ownerObject{State: string(st.State), ID: rec.Owner, Host: st.Host, PID: st.PID}
}

func (s *state) object(rec journal.Record) runObject {
	rec.Spec = shownSpec(rec.Spec)
	o := runObject{
		Run: rec.Spec.Run, Task: rec.Spec.Task, State: rec.State, Title: rec.Spec.Title,
		Agent: rec.Spec.Agent.Name, Command: rec.Spec.Agent.Command, Repos: repoNames(rec.Spec),
		Provider: rec.Spec.Provider, Image: rec.Spec.Image, Network: rec.Spec.Network, Sandbox: rec.Sandbox,
		Version: rec.Version, Created: rec.Created, Started: given(rec.Started), Finished: given(rec.Finished),
		Log: s.store.LogPath(rec.Spec), Result: rec.Result,
	}
	if !rec.State.Terminal() {
		who := s.ownerOf(rec)
		o.Owner = &who
	}
	return o
}

func given(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func repoNames(spec task.Spec) []string {
	var names []string
	for _, r := range spec.Repos {
		names = append(names, r.Org+"/"+r.Name)
	}
	return names
}

// find returns the runs that names mean, in their order.
func (s *state) find(ctx context.Context, names ...string) ([]journal.Record, error) {
	recs := make([]journal.Record, 0, len(names))
	for _, name := range names {
		rec, err := s.store.Find(ctx, name)
		if err != nil {
			return nil, err
		}
		recs = append(recs, rec)
	}
	return recs, nil
}

// age is a length of time in one unit.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// cell is text for one cell of a table: clean, on one line, at most width
// characters (0: any number), "-" for nothing.
func cell(text string, width int) string {
	text = render.Clean(strings.Join(strings.Fields(text), " "))
	if runes := []rune(text); width > 0 && len(runes) > width {
		text = string(runes[:width-1]) + "…"
	}
	if text == "" {
		return "-"
	}
	return text
}

// writeJSON prints one value, indented.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// completeRuns completes the ids of the runs that f chooses; with "once" only as
// the first argument. It is silent about whatever goes wrong.
func (a *app) completeRuns(f journal.Filter, once bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if once && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return a.runCompletions(cmd.Context(), f), cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) runCompletions(ctx context.Context, f journal.Filter) []cobra.Completion {
	c, err := a.config(nil)
	if err != nil || !hasState(c) {
		return nil
	}
	s, err := a.openState(ctx, c)
	if err != nil {
		return nil
	}
	f.Limit = maxCompletions
	recs, err := s.store.Runs(ctx, f)
	if err != nil {
		return nil
	}
	list := []cobra.Completion{cobra.CompletionWithDesc(journal.Latest, "the newest run")}
	for _, rec := range recs {
		list = append(list, cobra.CompletionWithDesc(rec.Spec.Run.Short(), cell(string(rec.State)+" "+rec.Spec.Title, 60)))
	}
	return list
}

// hasState reports whether there is a state directory: completion makes none.
func hasState(c config.Config) bool {
	dir, err := c.StateDir()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(dir, "state.db"))
	return err == nil
}

// maxCompletions is how many runs are proposed.
const maxCompletions = 50
