package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/task"
)

type diffOptions struct {
	app *app

	run  string
	repo string
	stat bool
	json bool
}

func newDiffCmd(a *app, runF func(context.Context, *diffOptions) error) *cobra.Command {
	o := &diffOptions{app: a}
	cmd := &cobra.Command{
		Use:   "diff RUN",
		Short: "Show what a run changed in its repositories",
		Long: `Shows the changes as a unified diff that git apply takes: tracked, untracked and
deleted files, modes, links and binary files. Of a run that is going on it shows
what was changed so far. Nothing is printed where nothing was changed. RUN is an
id, the beginning of one that no other run has, or "latest".` + exits("0", "1", "2", "5", "130", "143"),
		Example: `  insightscli diff latest
  insightscli diff 3f9a --stat --repo insights/cli`,
		Args:              takes(1, 1, "a RUN"),
		ValidArgsFunction: a.completeRuns(journal.Filter{}, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.run = args[0]
			if o.stat && o.json {
				return usageError("--stat and --json exclude each other")
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runDiff(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.repo, "repo", "", "only this repository: `ORG/NAME`")
	f.BoolVar(&o.stat, "stat", false, "print a summary by file")
	f.BoolVar(&o.json, "json", false, "print how much was changed, one JSON array")
	return cmd
}

func runDiff(ctx context.Context, o *diffOptions) error {
	s, rec, err := o.app.openRun(ctx, o.run)
	if err != nil {
		return err
	}
	list, err := s.changes(ctx, rec, o.repo)
	if err != nil {
		return err
	}
	st := o.app.streams
	if o.json {
		results := make([]task.RepoResult, 0, len(list))
		for _, c := range list {
			results = append(results, c.RepoResult)
		}
		return writeJSON(st.Out, results)
	}
	out := o.app.clean(st.Out, st.OutTTY)
	for _, c := range list {
		if !o.app.tell(rec.Spec, c, len(list) > 1) {
			continue
		}
		if err := s.repos.Diff(ctx, rec.Spec.Run, c.n, repo.DiffOptions{Color: st.OutTTY && st.Color, Stat: o.stat}, out); err != nil {
			return err
		}
	}
	return nil
}

// changed is what became of repository n of a run.
type changed struct {
	n int
	task.RepoResult
}

// changes tells what a run changed, in all its repositories or in one. What a live
// run changed is taken out now.
func (s *state) changes(ctx context.Context, rec journal.Record, only string) ([]changed, error) {
	spec := rec.Spec
	switch {
	case len(spec.Repos) == 0:
		return nil, errs.New("cli.diff", errs.NotFound, "insightscli logs "+spec.Run.Short(), "run %s had no repository", spec.Run.Short())
	case only != "" && repoIndex(spec, only) < 0:
		return nil, errs.New("cli.diff", errs.Usage, "give one of: "+strings.Join(repoNames(spec), ", "),
			"run %s had no repository %q", spec.Run.Short(), only)
	}
	var results []task.RepoResult
	var err error
	switch {
	case !rec.State.Terminal():
		results, err = s.capture(ctx, rec)
	case rec.Result != nil:
		results = rec.Result.Repos
	}
	if err != nil {
		return nil, err
	}
	if len(results) == 0 {
		return nil, errs.New("cli.diff", errs.NotFound, "insightscli logs "+spec.Run.Short(),
			"run %s ended before its changes could be taken out", spec.Run.Short())
	}
	var list []changed
	for n, r := range results {
		if only == "" || n == repoIndex(spec, only) {
			list = append(list, changed{n, r})
		}
	}
	return list, nil
}

// repoIndex finds a repository of a run by ORG/NAME or NAME; -1 is none.
func repoIndex(spec task.Spec, name string) int {
	for n, r := range spec.Repos {
		if strings.EqualFold(name, r.Org+"/"+r.Name) || strings.EqualFold(name, r.Name) {
			return n
		}
	}
	return -1
}

// tell says about a repository what its diff does not, and reports whether it has
// one.
func (a *app) tell(spec task.Spec, c changed, several bool) bool {
	name := c.Org + "/" + c.Name
	say := func(format string, args ...any) {
		fmt.Fprintf(a.streams.Err, "%s: %s\n", name, render.Clean(fmt.Sprintf(format, args...)))
	}
	switch {
	case c.Error != "":
		say("%s", c.Error)
	case c.Commit == "" && c.n < len(spec.Repos) && spec.Repos[c.n].Mount:
		say("it was mounted: the changes are in %s", spec.Repos[c.n].Path)
	case c.Commit == "":
		say("no changes")
	case several:
		say("%d files changed", c.Files)
	}
	return c.Commit != ""
}
