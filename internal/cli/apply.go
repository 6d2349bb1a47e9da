package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

type applyOptions struct {
	app *app

	run  string
	repo string
	to   string
	json bool
}

func newApplyCmd(a *app, runF func(context.Context, *applyOptions) error) *cobra.Command {
	o := &applyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "apply RUN",
		Short: "Bring the changes of a run into your working tree",
		Long: `Writes what a run changed into the working tree that it was started from, or
into another one, by a three-way merge with what changed there since. Only files
are written: the index and the branches stay as they are. Where both sides
changed the same lines nothing is touched, and the files are named. RUN is an
id, the beginning of one that no other run has, or "latest".` + exits("0", "1", "2", "5", "130", "143"),
		Example: `  insightscli apply latest
  insightscli apply 3f9a --repo org/repo --to ~/src/repo`,
		Args:              takes(1, 1, "a RUN"),
		ValidArgsFunction: a.completeRuns(journal.Filter{}, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.run = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runApply(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.repo, "repo", "", "only this repository: `ORG/NAME`")
	f.StringVar(&o.to, "to", "", "the working tree to write to: a `DIRECTORY` in it")
	f.BoolVar(&o.json, "json", false, "print what was written, one JSON array")
	return cmd
}

// appliedObject is what was done to one working tree.
type appliedObject struct {
	Repo  string   `json:"repo"`
	Tree  string   `json:"tree"`
	Files []string `json:"files"`
}

func runApply(ctx context.Context, o *applyOptions) error {
	s, rec, err := o.app.openRun(ctx, o.run)
	if err != nil {
		return err
	}
	list, err := s.changes(ctx, rec, o.repo)
	if err != nil {
		return err
	}
	if o.to != "" && len(list) > 1 {
		return usageError("run %s had %d repositories: say with --repo which one goes to %s", rec.Spec.Run.Short(), len(list), o.to)
	}
	// Where everything goes is known before the first file is written.
	targets := make([]string, len(list))
	for i, c := range list {
		if targets[i], err = o.target(rec.Spec, c); err != nil {
			return err
		}
	}
	done := []appliedObject{}
	for i, c := range list {
		if !o.app.tell(rec.Spec, c, false) {
			continue
		}
		applied, err := s.repos.Apply(ctx, rec.Spec.Run, c.n, targets[i])
		if err != nil {
			return err
		}
		done = append(done, appliedObject{Repo: c.Org + "/" + c.Name, Tree: applied.Top, Files: append([]string{}, applied.Files...)})
	}
	return o.print(done)
}

// target is a directory in the working tree that repository n of the run goes to.
func (o *applyOptions) target(spec task.Spec, c changed) (string, error) {
	switch {
	case o.to != "":
		return o.app.local(o.to), nil
	case c.n < len(spec.Repos) && spec.Repos[c.n].Path != "":
		return spec.Repos[c.n].Path, nil
	}
	return "", errs.New("cli.apply", errs.Usage, "name a checkout of it with --to",
		"%s/%s was not started from a directory of this machine", c.Org, c.Name)
}

func (o *applyOptions) print(done []appliedObject) error {
	if o.json {
		return writeJSON(o.app.streams.Out, done)
	}
	for _, d := range done {
		if len(d.Files) == 0 {
			fmt.Fprintf(o.app.streams.Err, "%s: nothing to do, %s has the changes already\n", d.Repo, render.Clean(d.Tree))
			continue
		}
		fmt.Fprintf(o.app.streams.Err, "%s: %s written or removed in %s\n", d.Repo, count(len(d.Files), "file"), render.Clean(d.Tree))
	}
	return nil
}

// count is a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
