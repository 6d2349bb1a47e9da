package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/session"
	"github.com/Insights/insightscli/internal/task"
)

type sessionRunOptions struct {
	app *app
	run runOptions

	script *session.Script
	team   int64
	user   int64
	json   bool
}

func newSessionRunCmd(a *app, runF func(context.Context, *sessionRunOptions) error) *cobra.Command {
	o := &sessionRunOptions{app: a, run: runOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "run SCRIPT [flags]",
		Short: "Run a session by a script and print all replies",
		Long: `Talks to an agent by a script: its turns in order, a turn for each element of an
earlier reply, turns under a condition. Standard output carries one JSON document
with every reply by its label. All of the script is checked before a sandbox is
made; any failure ends the session as failed, and the replies so far are printed.

  title: Research
  repo: org/repo
  turns:
    - label: discovery
      prompt: Find up to 10 items to investigate.
      schema: {type: object, required: [items]}  # or a file beside the script
    - label: research
      each: discovery.items
      prompt: Research ${item.name} in detail.
    - label: summary
      when: research      # or: path == word, path != word, !path
      prompt: "Summarize all findings: ${research}"

Flags of the command line go before those of the script.` + exits("0", "1", "2", "4", "5", "7", "124", "130", "143"),
		Example: `  insightscli session run research.yaml
  insightscli session run research.yaml --repo . --agent codex > replies.json`,
		Args: takes(1, 1, "a SCRIPT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.load(args[0], cmd.Flags()); err != nil {
				return err
			}
			return o.begin(cmd, runF)
		},
	}
	cmd.DisableFlagsInUseLine = true
	o.run.addSessionFlags(cmd.Flags(), "schema")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the document in one line, and errors as JSON")
	a.completeValues(cmd)
	return cmd
}

func newSessionDemoCmd(a *app, runF func(context.Context, *sessionRunOptions) error) *cobra.Command {
	o := &sessionRunOptions{app: a, run: runOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "demo --repo REPO --team-id N --user-id N [flags]",
		Short: "Run the reference session on a repository",
		Long: `Looks for cursed identifiers in a repository: discovery, research of each, what
can be done, how urgent it is, a report. It is there to show a session, on
machines of developers only (not with DEBUG=0).` +
			exits("0", "1", "2", "4", "5", "7", "124", "130", "143"),
		Example: `  insightscli session demo --repo . --team-id 1 --user-id 1
  insightscli session demo --repo org/repo --team-id 1 --user-id 1 --agent codex`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.loadDemo(); err != nil {
				return err
			}
			return o.begin(cmd, runF)
		},
	}
	cmd.DisableFlagsInUseLine = true
	cmd.Flags().Int64Var(&o.team, "team-id", 0, "`ID` of the team that the run belongs to")
	cmd.Flags().Int64Var(&o.user, "user-id", 0, "`ID` of the user who asks for it")
	o.run.addSessionFlags(cmd.Flags(), "schema", "title")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the document in one line, and errors as JSON")
	a.completeValues(cmd)
	return cmd
}

// loadDemo takes the script of the demo.
func (o *sessionRunOptions) loadDemo() error {
	switch c, err := o.app.config(nil); {
	case err != nil:
		return err
	case !c.Debug:
		return errs.New("cli.session", errs.Config, "write a script, and use insightscli session run", "the demo is for development machines, and DEBUG is 0")
	case o.team <= 0 || o.user <= 0:
		return usageError("session demo needs --team-id and --user-id")
	case len(o.run.repos) == 0:
		return usageError("session demo needs --repo")
	}
	var err error
	o.script, err = session.Demo()
	o.run.title = o.script.Title
	return err
}

// load reads the script and takes its options where the command line gives none.
func (o *sessionRunOptions) load(path string, flags *pflag.FlagSet) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return errs.New("cli.session", errs.Usage, "give the path of a script", "read the script: %w", err)
	}
	o.script, err = session.Load(raw, func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		return os.ReadFile(name)
	})
	if err != nil {
		return err
	}
	given := map[string]bool{}
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	for _, f := range o.script.Flags() {
		if given[f.Name] {
			continue
		}
		if flags.Lookup(f.Name) == nil || f.Name == "json" {
			return usageError("the script cannot be used: sessions have no option %q", f.Name)
		}
		if err := flags.Set(f.Name, f.Value); err != nil {
			return usageError("the script cannot be used: %w", err)
		}
	}
	return nil
}

// begin checks the options and runs the script.
func (o *sessionRunOptions) begin(cmd *cobra.Command, runF func(context.Context, *sessionRunOptions) error) error {
	o.run.prompt = "-" // each turn has its own
	if err := o.run.asSession(cmd); err != nil {
		return err
	}
	if runF != nil {
		return runF(cmd.Context(), o)
	}
	return runSessionRun(cmd.Context(), o)
}

func runSessionRun(ctx context.Context, o *sessionRunOptions) error {
	o.run.json = o.json
	p, err := o.run.freezeSession(ctx)
	if err != nil {
		return err
	}
	if o.team > 0 {
		p.spec.Team, p.spec.User = o.team, o.user
	}
	if o.run.title == "" {
		p.spec.Title = "" // of the first prompt
	}
	t := &scripted{app: o.app, plan: p, quiet: o.json}
	doc, failure := session.Run(ctx, o.script, t, t.told)
	if doc.Warning != "" {
		fmt.Fprintf(o.app.streams.Err, "warning: %s\n", oneLine(doc.Warning))
	}
	if t.dialogue == nil { // nothing was begun, so there is nothing to print
		return failure
	}
	if err := o.print(t.dialogue.id(), doc); err != nil {
		return err
	}
	return failure
}

// print writes the document.
func (o *sessionRunOptions) print(run task.ID, doc session.Document) error {
	out := struct {
		Session task.ID `json:"session"`
		session.Document
	}{run, doc}
	if !o.json {
		return writeJSON(o.app.streams.Out, out)
	}
	enc := json.NewEncoder(o.app.streams.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

// scripted is a conversation with an agent of the background runner. It begins with the
// first prompt.
type scripted struct {
	app      *app
	plan     plan
	quiet    bool
	dialogue *dialogue
}

var _ session.Conversation = (*scripted)(nil)

// Send implements session.Conversation.
func (t *scripted) Send(ctx context.Context, prompt string, schema json.RawMessage, _ string) (task.Turn, error) {
	if len(prompt) > maxPrompt {
		return task.Turn{}, errs.New("cli.session", errs.TaskFailed, "",
			"the prompt has become %d bytes long; at most %d are taken", len(prompt), maxPrompt)
	}
	prompt = secret.Fold(prompt, t.plan.secrets)
	if t.dialogue != nil {
		return t.dialogue.say(ctx, prompt, schema)
	}
	t.plan.spec.Description, t.plan.spec.Schema = prompt, schema
	if t.plan.spec.Title == "" {
		t.plan.spec.Title = title(prompt, nil)
	}
	d, err := t.app.begin(ctx, t.plan)
	t.dialogue = d
	if err != nil {
		return task.Turn{}, err
	}
	if !t.quiet {
		fmt.Fprintf(t.app.streams.Err, "session %s\n", d.id())
	}
	return d.turn(ctx, "")
}

// End implements session.Conversation.
func (t *scripted) End(ctx context.Context, state task.State, reason error) error {
	if t.dialogue == nil {
		return nil
	}
	text := ""
	if reason != nil {
		text = oneLine(reason.Error())
	}
	_, err := t.dialogue.end(ctx, state, text)
	return err
}

// told says what came of a turn.
func (t *scripted) told(turn session.Turn) {
	if t.quiet {
		return
	}
	word := "done"
	switch {
	case !turn.OK:
		word = "failed (" + turn.Category + ")"
	case turn.Degraded:
		word = fmt.Sprintf("says nothing, after %d attempts", turn.Attempts)
	case turn.Attempts > 1:
		word = fmt.Sprintf("done, after %d attempts", turn.Attempts)
	}
	fmt.Fprintf(t.app.streams.Err, "%s: %s\n", oneLine(turn.Label), word)
}
