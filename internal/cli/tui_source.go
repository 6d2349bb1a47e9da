package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/tui"
)

const (
	// maxListed is how many runs the table has.
	maxListed = 2000
	// maxPatch bounds a diff on the screen, in bytes.
	maxPatch = 8 << 20
)

// screens is what the screens see and do.
type screens struct {
	app   *app
	state *state
}

var (
	_ tui.Source  = screens{}
	_ tui.Actions = screens{}
)

// Runs implements tui.Source.
func (s screens) Runs(ctx context.Context) ([]tui.Run, error) {
	recs, err := s.state.store.Runs(ctx, journal.Filter{Limit: maxListed})
	if err != nil {
		return nil, err
	}
	runs := make([]tui.Run, 0, len(recs))
	for _, rec := range recs {
		runs = append(runs, s.run(ctx, rec))
	}
	return runs, nil
}

// Run implements tui.Source.
func (s screens) Run(ctx context.Context, name string) (tui.Run, error) {
	rec, err := s.state.store.Find(ctx, name)
	if err != nil {
		return tui.Run{}, err
	}
	return s.run(ctx, rec), nil
}

func (s screens) run(ctx context.Context, rec journal.Record) tui.Run {
	r := screenRun(rec.Spec)
	r.State, r.Created, r.Started, r.Finished = rec.State, rec.Created, rec.Started, rec.Finished
	if rec.Result != nil {
		r.Usage = rec.Result.Usage
		return r
	}
	r.Who = s.state.ownerOf(rec).String()
	if used, _, err := s.state.store.Usage(ctx, rec.Spec.Run); err == nil && used.Requests > 0 {
		r.Usage = &used
	}
	return r
}

// screenRun is what is known of a run before it is recorded.
func screenRun(spec task.Spec) tui.Run {
	return tui.Run{
		ID: spec.Run, State: task.StateQueued, Title: spec.Title, Agent: spec.Agent.Name, Repos: repoNames(spec),
		Provider: spec.Provider, Talks: spec.Agent.Drives(),
	}
}

// logFile is the log of a run as a file.
type logFile struct{ *os.File }

// Size implements tui.Log.
func (f logFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Open implements tui.Source.
func (s screens) Open(ctx context.Context, run task.ID) (tui.Log, error) {
	rec, err := s.state.store.Run(ctx, run)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, os.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(s.state.store.LogPath(rec.Spec))
	if err != nil {
		return nil, err
	}
	return logFile{f}, nil
}

// Send implements tui.Actions.
func (s screens) Send(ctx context.Context, run task.ID, in task.Input) error {
	rec, err := s.state.store.Run(ctx, run)
	if err != nil {
		return err
	}
	if _, err := s.state.store.AddInput(ctx, run, in); err != nil {
		return err
	}
	return s.state.knockFor(ctx, rec)
}

// Cancel implements tui.Actions.
func (s screens) Cancel(ctx context.Context, run task.ID) error {
	rec, err := s.state.store.Run(ctx, run)
	if err != nil {
		return err
	}
	return s.state.cancel(ctx, rec)
}

// Prune implements tui.Actions.
func (s screens) Prune(ctx context.Context, dry bool) (list []string, err error) {
	me, err := owner.Acquire(ctx, s.state.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, me.Release()) }()
	providers, err := s.state.reachable(ctx)
	if err != nil {
		return nil, err
	}
	p := &pruning{state: s.state, me: me.Info, domain: s.state.db.ID, providers: providers}
	if err := p.find(ctx, false); err != nil {
		return nil, err
	}
	if !dry {
		err = p.remove(ctx, false)
	}
	for _, i := range p.items {
		if i.Removed || dry && !i.Kept {
			list = append(list, fmt.Sprintf("%s %s (%s)", i.Kind, i.ID, i.Why))
		}
		if i.Error != "" {
			err = errors.Join(err, fmt.Errorf("%s %s: %s", i.Kind, i.ID, i.Error))
		}
	}
	return list, err
}

// Start implements tui.Actions.
func (s screens) Start(ctx context.Context, n tui.NewRun) (task.ID, error) {
	o, err := s.options(ctx, n)
	if err != nil {
		return "", err
	}
	p, err := o.freeze(ctx)
	if err != nil {
		return "", err
	}
	if err := s.app.ready(ctx, p.config, p.spec); err != nil {
		return "", err
	}
	h := hosted(s)
	if err := h.submit(ctx, p); err != nil {
		return "", err
	}
	return p.spec.Run, s.state.knock(ctx)
}

// options are those of `run -d` with the words of the form.
func (s screens) options(ctx context.Context, n tui.NewRun) (*runOptions, error) {
	args := []string{"--detach", "--quiet"}
	if n.Repo != "" {
		args = append(args, "--repo="+n.Repo)
	}
	if n.Branch != "" {
		args = append(args, "--branch="+n.Branch)
	}
	if n.Agent == agentExec {
		args = append(args, "--", "sh", "-c", n.Prompt)
	} else {
		args = append(args, "--agent="+n.Agent, "a prompt") // its own may look like a flag
	}
	var parsed *runOptions
	cmd := newRunCmd(s.app, func(_ context.Context, o *runOptions) error {
		parsed = o
		return nil
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(ctx); err != nil {
		return nil, err
	}
	if n.Agent != agentExec {
		parsed.prompt = n.Prompt
	}
	return parsed, parsed.validate()
}

// Diff implements tui.Actions.
func (s screens) Diff(ctx context.Context, run task.ID) ([]byte, error) {
	rec, err := s.state.store.Run(ctx, run)
	if err != nil {
		return nil, err
	}
	list, err := s.state.changes(ctx, rec, "")
	if err != nil {
		return nil, err
	}
	out := &bounded{left: maxPatch}
	for _, c := range list {
		if c.Error != "" {
			fmt.Fprintf(out, "%s/%s: %s\n", c.Org, c.Name, c.Error)
		}
		if c.Commit == "" {
			continue
		}
		if err := s.state.repos.Diff(ctx, rec.Spec.Run, c.n, repo.DiffOptions{}, out); err != nil && !errors.Is(err, errTooLong) {
			return nil, err
		}
	}
	if out.left == 0 {
		fmt.Fprintf(&out.Buffer, "\n… more than is shown: insightscli diff %s\n", run.Short())
	}
	return out.Bytes(), nil
}

// errTooLong ends a diff that is too long for a screen.
var errTooLong = errs.New("cli.tui", errs.Internal, "", "the diff is too long for the screen")

// bounded is a buffer that takes so many bytes and no more.
type bounded struct {
	bytes.Buffer
	left int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.Buffer.Write(p[:n])
	if n < len(p) {
		return n, errTooLong
	}
	return n, nil
}
