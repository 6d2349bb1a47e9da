package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/platform"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

type showOptions struct {
	app *app

	run   string
	json  bool
	spec  bool
	token bool
}

func newShowCmd(a *app, runF func(context.Context, *showOptions) error) *cobra.Command {
	o := &showOptions{app: a}
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show what is recorded about a run",
		Long: `Shows a run: what it was asked to do, where it stands, who carries it out and
how it ended. RUN is an id, the beginning of one that no other run has, or
"latest".` + exits("0", "1", "2", "5"),
		Example: `  insightscli show latest
  insightscli show --json 3f9a | jq .result.exit_code
  curl -H "Authorization: Bearer $(insightscli show latest --token)" http://127.0.0.1:PORT/events`,
		Args:              takes(1, 1, "a RUN"),
		ValidArgsFunction: a.completeRuns(journal.Filter{}, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.run = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runShow(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&o.spec, "spec", false, "print the frozen Spec instead, as JSON")
	cmd.Flags().BoolVar(&o.token, "token", false, "print a token for the run's published agent server instead (see run --publish-agent)")
	cmd.MarkFlagsMutuallyExclusive("json", "spec", "token")
	return cmd
}

func runShow(ctx context.Context, o *showOptions) error {
	s, rec, err := o.app.openRun(ctx, o.run)
	if err != nil {
		return err
	}
	object := s.object(rec)
	if err := s.addUsage(ctx, &object); err != nil {
		return err
	}
	switch {
	case o.token:
		return o.printToken(ctx, s, rec)
	case o.spec:
		return writeJSON(o.app.streams.Out, shownSpec(rec.Spec))
	case o.json:
		return writeJSON(o.app.streams.Out, object)
	}
	return o.print(object, rec.Spec)
}

// addUsage adds what the run has used of models, if anything.
func (s *state) addUsage(ctx context.Context, o *runObject) error {
	total, byModel, err := s.store.Usage(ctx, o.Run)
	if err == nil && total.Requests > 0 {
		o.Usage, o.ByModel = &total, byModel
	}
	return err
}

// printToken prints what an outside client of the run's agent server shows.
func (o *showOptions) printToken(ctx context.Context, s *state, rec journal.Record) error {
	if rec.Spec.PublishAgent == "" {
		return errs.New("cli.show", errs.Conflict, "start it with --publish-agent", "the agent server of run %s is not published", rec.Spec.Run.Short())
	}
	if rec.State.Terminal() {
		return errs.New("cli.show", errs.Conflict, "start one with --publish-agent", "run %s is over, and its agent server with it", rec.Spec.Run.Short())
	}
	key, err := s.jwtPrivateKey()
	if err != nil {
		return err
	}
	_, kid, err := s.jwtKey(ctx)
	if err != nil {
		return err
	}
	token, err := platform.ConnectionToken(key, kid, rec.Spec, time.Now())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.app.streams.Out, token.Reveal())
	return err
}

// print writes one line a fact, and leaves out what there is nothing to say about.
func (o *showOptions) print(r runObject, spec task.Spec) error {
	w := tabwriter.NewWriter(o.app.streams.Out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, cell(value, 0))
		}
	}
	line("run", string(r.Run))
	line("task", string(r.Task))
	line("title", r.Title)
	line("state", string(r.State))
	line("prompt", secret.ShowFolded(spec.Description))
	line("agent", strings.Join(append([]string{r.Agent}, r.Command...), " "))
	for _, repo := range spec.Repos {
		line("repo", fromWhere(repo))
	}
	line("provider", r.Provider)
	line("image", r.Image)
	line("network", string(r.Network))
	line("sandbox", r.Sandbox)
	if r.Owner != nil {
		line("owner", r.Owner.String())
	}
	line("created", moment(&r.Created))
	line("started", moment(r.Started))
	line("finished", moment(r.Finished))
	line("log", r.Log)
	if r.Usage != nil {
		line("usage", render.Tokens(*r.Usage))
	}
	for _, model := range slices.Sorted(maps.Keys(r.ByModel)) {
		line("model", model+": "+render.Tokens(r.ByModel[model]))
	}
	if r.Result != nil {
		printResult(line, *r.Result)
	}
	return w.Flush()
}

func printResult(line func(name, value string), r task.Result) {
	line("code", fmt.Sprint(r.Code))
	if r.ExitCode != nil {
		line("exit code", fmt.Sprint(*r.ExitCode))
	}
	line("signal", r.Signal)
	line("error", r.Error)
	line("hint", r.Hint)
	r.Usage = nil // told above, with what came after the end
	for _, l := range render.Final(r) {
		line("result", l)
	}
}

// fromWhere names a repository, its source and where the run begins in it.
func fromWhere(r task.Repo) string {
	text := r.Org + "/" + r.Name + " from " + cmp.Or(r.Path, r.URL)
	if r.Branch != "" {
		text += ", branch " + r.Branch
	}
	if r.Commit != "" {
		text += ", commit " + r.Commit[:min(12, len(r.Commit))]
	}
	return text
}

func moment(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.Local().Format(time.RFC3339)
}
