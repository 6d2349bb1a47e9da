package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
)

type pruneOptions struct {
	app *app

	all    bool
	dryRun bool
	yes    bool
	json   bool
}

func newPruneCmd(a *app, runF func(context.Context, *pruneOptions) error) *cobra.Command {
	o := &pruneOptions{app: a}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove what no live run owns",
		Long: `Removes what earlier runs of this state directory left on this machine:
sandboxes and their volumes on every provider that answers, directories of runs,
changes and artifacts of runs that ended more than 30 days ago, files of dead
processes, and the Docker network if nothing is in it. Records and logs of runs
stay. What belongs to a live run, to another machine or to another state
directory is never touched.

Sandboxes that were kept with --keep are removed only after a question, which
needs a terminal, or with --yes.` + exits("0", "1", "2", "3", "130", "143"),
		Example: `  insightscli prune --dry-run
  insightscli prune --all --yes`,
		Args:              takes(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runPrune(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "remove cached checkouts and mirrors that no run uses, too")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be removed, and remove nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "remove kept sandboxes without a question")
	f.BoolVar(&o.json, "json", false, "print one JSON array")
	return cmd
}

func runPrune(ctx context.Context, o *pruneOptions) (err error) {
	s, err := o.app.openStateAndAdopt(ctx)
	if err != nil {
		return err
	}
	// As an owner this process knows itself on the labels of others.
	me, err := owner.Acquire(ctx, s.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, me.Release()) }()
	providers, err := s.reachable(ctx)
	if err != nil {
		return err
	}
	p := &pruning{state: s, me: me.Info, domain: s.db.ID, providers: providers}
	if err := p.find(ctx, o.all); err != nil {
		return err
	}
	withKept, err := o.withKept(p.items)
	if err != nil {
		return err
	}
	if !o.dryRun {
		err = p.remove(ctx, withKept)
	}
	return errors.Join(o.report(p.items), err)
}

// place is where sandboxes are: a provider, and for Docker an engine.
type place struct {
	provider string
	engine   task.Engine
}

func placeOf(spec task.Spec) place {
	if spec.Provider != config.ProviderDocker {
		return place{provider: spec.Provider}
	}
	return place{spec.Provider, spec.Engine}
}

// reachable returns the providers that answer: those of this machine, and the engines
// that runs were made on. An engine that does not answer is no news: most machines
// have one provider.
func (s *state) reachable(ctx context.Context) (map[place]sandbox.Provider, error) {
	recs, err := s.store.Runs(ctx, journal.Filter{})
	if err != nil {
		return nil, err
	}
	specs := []task.Spec{
		{Provider: config.ProviderLocal},
		{Provider: config.ProviderDocker, Engine: chosenEngine(s.config.Machine)},
	}
	for _, rec := range recs {
		specs = append(specs, rec.Spec)
	}
	found, asked := map[place]sandbox.Provider{}, map[place]bool{}
	for _, spec := range specs {
		at := placeOf(spec)
		if asked[at] {
			continue
		}
		asked[at] = true
		p, err := s.providers.of(ctx, spec)
		if err != nil {
			continue // a provider of another build
		}
		if e, ok := p.(interface{ Ping(context.Context) error }); ok && e.Ping(ctx) != nil {
			continue
		}
		found[at] = p
	}
	return found, nil
}

// withKept decides whether kept sandboxes go, too.
func (o *pruneOptions) withKept(items []*leftover) (bool, error) {
	n := 0
	for _, i := range items {
		if i.Kept && i.Kind == kindSandbox {
			n++
		}
	}
	st := o.app.streams
	switch {
	case o.yes:
		return true, nil
	case n == 0, o.dryRun, o.json, !st.InTTY, !st.ErrTTY:
		return false, nil
	}
	return o.app.confirm(fmt.Sprintf("remove %s that --keep has left, too?", count(n, "sandbox")))
}

// confirm asks a question that only a yes answers with yes. There must be a
// terminal.
func (a *app) confirm(question string) (bool, error) {
	fmt.Fprintf(a.streams.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(io.LimitReader(a.streams.In, 1024)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

// report prints what was removed, or would be, and what was not.
func (o *pruneOptions) report(items []*leftover) error {
	failed, waiting := 0, 0
	for _, i := range items {
		if i.Error != "" {
			failed++
		} else if i.Kept && !i.Removed {
			waiting++
		}
	}
	if o.json {
		if items == nil {
			items = []*leftover{}
		}
		if err := writeJSON(o.app.streams.Out, items); err != nil {
			return err
		}
	} else {
		o.print(items)
	}
	switch {
	case failed > 0:
		return errs.New("cli.prune", errs.Incomplete, "run insightscli prune again later", "%s could not be removed", count(failed, "thing"))
	case o.json:
	case len(items) == 0:
		fmt.Fprintln(o.app.streams.Err, "nothing to do")
	case waiting > 0 && !o.dryRun:
		fmt.Fprintln(o.app.streams.Err, "what was kept goes with: insightscli prune --yes")
	}
	return nil
}

func (o *pruneOptions) print(items []*leftover) {
	for _, i := range items {
		text := i.Kind + " " + cell(i.ID, 0) + " (" + cell(i.Why, 0) + ")"
		switch {
		case i.Error != "":
			fmt.Fprintf(o.app.streams.Err, "not removed: %s: %s\n", text, oneLine(i.Error))
		case i.Removed:
			fmt.Fprintf(o.app.streams.Out, "removed %s\n", text)
		case i.Kept && !(o.dryRun && o.yes):
			fmt.Fprintf(o.app.streams.Out, "kept %s\n", text)
		case o.dryRun:
			fmt.Fprintf(o.app.streams.Out, "would remove %s\n", text)
		}
	}
}

// removeBound is how long the removal of one thing may take.
const removeBound = time.Minute

// remove removes what was found, in order; kept things only if they were asked for.
// What cannot be removed is noted and does not keep the rest. What only turns up as
// unused when sandboxes are gone goes at the end.
func (p *pruning) remove(ctx context.Context, withKept bool) error {
	p.removeFrom(ctx, 0, withKept)
	n := len(p.items)
	if err := p.findAllLent(ctx); err != nil {
		return err
	}
	p.removeFrom(ctx, n, withKept)
	return nil
}

func (p *pruning) removeFrom(ctx context.Context, first int, withKept bool) {
	for _, i := range p.items[first:] {
		if i.Kept && !withKept {
			continue
		}
		err := context.Cause(ctx)
		if err == nil {
			bounded, cancel := context.WithTimeout(ctx, removeBound)
			err = i.remove(bounded)
			cancel()
		}
		if err != nil {
			i.Error = err.Error()
			continue
		}
		i.Removed = true
	}
}
