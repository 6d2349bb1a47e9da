package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/task"
)

type sessionSendOptions struct {
	app *app

	session string
	prompt  string
	schema  string
	json    bool
}

func newSessionSendCmd(a *app, runF func(context.Context, *sessionSendOptions) error) *cobra.Command {
	o := &sessionSendOptions{app: a}
	cmd := &cobra.Command{
		Use:   "send SESSION PROMPT",
		Short: "Give a session its next prompt and print the reply",
		Long: `Gives the agent of a session its next PROMPT and waits for the reply. The prompt
is recorded first, so it is answered even if processes die meanwhile; when this
command is interrupted the turn goes on. A turn that fails ends the session as
failed. SESSION is an id, the beginning of one that no other run has, or "latest".` + exits("0", "1", "2", "5", "7", "124", "130", "143"),
		Example: `  insightscli session send 3f9a "Research the first one in detail." --schema finding.json
  insightscli session send latest --json "Summarize all findings."`,
		Args:              takes(2, 2, "a SESSION and a PROMPT"),
		ValidArgsFunction: a.completeRuns(journal.Filter{Live: true}, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session, o.prompt = args[0], args[1]
			if err := checkPrompt(o.prompt); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runSessionSend(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.schema, "schema", "", "`FILE` with the JSON Schema of the reply")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the session's id and the turn as one JSON object")
	_ = cmd.MarkFlagFilename("schema") // fails only for a flag that does not exist
	return cmd
}

// checkPrompt refuses what cannot be said to an agent.
func checkPrompt(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return usageError("PROMPT is empty")
	case len(text) > maxPrompt:
		return usageError("the prompt has %d bytes; at most %d are taken: put the rest into a file of the repository", len(text), maxPrompt)
	case !utf8.ValidString(text):
		return usageError("the prompt is not text in UTF-8")
	}
	return nil
}

func runSessionSend(ctx context.Context, o *sessionSendOptions) error {
	var schema json.RawMessage
	if o.schema != "" {
		var err error
		if schema, err = readSchema(o.schema); err != nil {
			return err
		}
	}
	d, err := o.app.openSession(ctx, o.session)
	if err != nil {
		return err
	}
	turn, err := d.say(ctx, o.prompt, schema)
	if err != nil {
		return err
	}
	return o.app.printTurn(d.id(), turn, o.json)
}

type sessionEndOptions struct {
	app *app

	session string
	status  string
	reason  string
	json    bool
}

func newSessionEndCmd(a *app, runF func(context.Context, *sessionEndOptions) error) *cobra.Command {
	o := &sessionEndOptions{app: a}
	cmd := &cobra.Command{
		Use:   "end SESSION",
		Short: "End a session and wait until its sandbox is gone",
		Long: `Ends a session in order: a turn that is going on is stopped, the changes are
taken out and the sandbox is removed. SESSION is an id, the beginning of one that
no other run has, or "latest".` + exits("0", "1", "2", "3", "5", "8", "130", "143"),
		Example: `  insightscli session end latest
  insightscli session end 3f9a --status failed --error "the findings are of no use"`,
		Args:              takes(1, 1, "a SESSION"),
		ValidArgsFunction: a.completeRuns(journal.Filter{Live: true}, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session = args[0]
			if err := o.validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runSessionEnd(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.status, "status", string(task.StateCompleted), "`STATE` to end in: completed or failed")
	cmd.Flags().StringVar(&o.reason, "error", "", "why it failed, in one line of `TEXT`")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the result as a JSON object")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(
		[]string{string(task.StateCompleted), string(task.StateFailed)}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *sessionEndOptions) validate() error {
	switch {
	case o.status != string(task.StateCompleted) && o.status != string(task.StateFailed):
		return usageError("--status is completed or failed, not %q", o.status)
	case o.reason != "" && o.status != string(task.StateFailed):
		return usageError("--error goes with --status failed")
	}
	return nil
}

func runSessionEnd(ctx context.Context, o *sessionEndOptions) error {
	d, err := o.app.openSession(ctx, o.session)
	if err != nil {
		return err
	}
	rec, err := d.end(ctx, task.State(o.status), oneLine(o.reason))
	if err != nil {
		return err
	}
	if err := (&waitOptions{app: o.app, json: o.json}).told(rec); err != nil {
		return err
	}
	if string(rec.State) == o.status && (rec.Result == nil || rec.Result.Cleanup == "") {
		return nil // as it was asked for
	}
	if rec.Result == nil || rec.Result.Code == 0 {
		return errs.New("cli.session", errs.Conflict, "insightscli show "+d.id().Short(), "session %s is over, but %s", d.id().Short(), rec.State)
	}
	return exitWith(rec.Result.Code)
}

type sessionListOptions struct {
	app *app

	json bool
}

func newSessionListCmd(a *app, runF func(context.Context, *sessionListOptions) error) *cobra.Command {
	o := &sessionListOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sessions that are open",
		Long:  `Lists the sessions that are not over, the newest first.` + exits("0", "1", "2", "5"),
		Example: `  insightscli session list
  insightscli session list --json | jq -r '.[].run'`,
		Args:              takes(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runSessionList(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON array")
	return cmd
}

func runSessionList(ctx context.Context, o *sessionListOptions) error {
	s, err := o.app.openStateAndAdopt(ctx)
	if err != nil {
		return err
	}
	recs, err := s.store.Runs(ctx, journal.Filter{Live: true})
	if err != nil {
		return err
	}
	list := []runObject{}
	for _, rec := range recs {
		if rec.Spec.Session {
			list = append(list, s.object(rec))
		}
	}
	switch {
	case o.json:
		return writeJSON(o.app.streams.Out, list)
	case len(list) == 0:
		fmt.Fprintln(o.app.streams.Err, "no session is open; insightscli session start begins one")
		return nil
	}
	return (&psOptions{app: o.app}).table(list, time.Now())
}
