package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/setup"
)

type setupOptions struct {
	app *app

	envFile string
	only    []string
	dryRun  bool
	yes     bool
	json    bool

	instructed bool // how to make a GitHub App by hand was said
}

func newSetupBackgroundAgentsCmd(a *app, runF func(context.Context, *setupOptions) error) *cobra.Command {
	o := &setupOptions{app: a}
	cmd := &cobra.Command{
		Use:   "setup-background-agents",
		Short: "Prepare this machine for background agents",
		Long: `Prepares this machine, step by step; what is there already is left alone, so that
it can be run at any time.

  env         the variables of .env, from .env.example or made for this machine
  mcp-env     services/mcp/.env, from its example, where there is that folder
  oauth-apps  the OAuth applications of a development machine
  tasks-flag  the tasks flag, on for every team
  skills      the bundle of what agents are taught
  engine      what sandboxes are made with answers
  image       the image of sandboxes, built after a question
  model-key   the key of a model
  github-app  the GitHub App, made after a question

Values that exist are never overwritten. Questions are asked on a terminal only.
Exit code 3 means that a step was left undone.` + exits("0", "1", "2", "3", "4", "130", "143"),
		Example: `  insightscli setup-background-agents --dry-run
  insightscli setup-background-agents --only env,tasks-flag`,
		Args:              takes(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := refuseEmpty(cmd.Flags(), "only", "env-file")
			if err == nil {
				err = o.validate()
			}
			if err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runSetup(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.envFile, "env-file", "", "the `FILE` to write variables to; default: the .env that is in force here")
	f.StringSliceVar(&o.only, "only", nil, "carry out this `STEP` alone (repeatable, comma-separated)")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be done, files as a diff, and do nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "answer yes to what can be done without you")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	_ = cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(setupSteps(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// setupSteps are the names of the steps, in order.
func setupSteps() []string {
	return []string{"env", "mcp-env", "oauth-apps", "tasks-flag", "skills", "engine", "image", "model-key", "github-app"}
}

func (o *setupOptions) validate() error {
	for _, name := range o.only {
		if !slices.Contains(setupSteps(), name) {
			return usageError("--only: there is no step %q; the steps are %s", name, strings.Join(setupSteps(), ", "))
		}
	}
	return nil
}

// refuseEmpty refuses flags with an empty value, as an unset variable of a script gives
// it: what would be done then is not what was meant.
func refuseEmpty(flags *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		if f := flags.Lookup(name); f.Changed && strings.Trim(f.Value.String(), "[]") == "" {
			return usageError("--%s is empty", name)
		}
	}
	return nil
}

func runSetup(ctx context.Context, o *setupOptions) error {
	results, err := o.run(ctx)
	if err != nil {
		return err
	}
	o.sayHowToMakeAnApp(results)
	if err := o.app.printSetup(results, o.json); err != nil {
		return err
	}
	if o.dryRun && !o.json {
		fmt.Fprintln(o.app.streams.Err, "nothing was changed")
	}
	return nil
}

// run carries out the steps and prints nothing but questions and progress.
func (o *setupOptions) run(ctx context.Context) ([]setup.Result, error) {
	c, err := o.app.config(nil)
	if err != nil {
		return nil, err
	}
	for _, n := range c.Notices {
		o.app.notef("note: %s", n)
	}
	provider, providerErr := o.provider(ctx, c)
	env := o.envStep(provider)
	// A .env that cannot be edited is told before anything else is touched.
	if o.selected(env.Name()) {
		if _, err := env.Check(ctx); err != nil {
			return nil, err
		}
	}
	var store setupStore = fresh{}
	if o.selected("oauth-apps") || o.selected("tasks-flag") {
		if store, err = o.app.storeOf(ctx, c, o.dryRun); err != nil {
			return nil, err
		}
	}
	lookup := o.app.lookup(env.Path)
	steps, err := setup.Select([]setup.Step{
		env,
		setup.MCPEnv{Project: config.Project(o.app.process.Dir)},
		setup.OAuthApps{Store: store, Region: c.CloudDeployment, Apps: []setup.App{setup.ArrayApp(false), setup.InsightsAIApp()}},
		setup.Flag{Store: store},
		o.skillsStep(c),
		o.engineStep(c, provider, providerErr),
		o.imageStep(c, provider),
		setup.ModelKey{Present: present(lookup, "ANTHROPIC_API_KEY", "OPENAI_API_KEY"), EnvFile: env.Path},
		o.appStep(lookup),
	}, o.only)
	if err != nil {
		return nil, err
	}
	options := setup.Options{DryRun: o.dryRun, Confirm: o.confirm}
	if st := o.app.streams; !o.json && st.ErrTTY {
		options.Report = func(r setup.Result) { fmt.Fprintf(st.Err, "%s: %s\n", r.Step, r.Outcome) }
	}
	return setup.Run(ctx, steps, options)
}

// confirm answers the question of a step: with --yes where it needs nobody, else the
// one at the terminal does. Without a terminal the answer is no.
func (o *setupOptions) confirm(_ context.Context, _, question string, person bool) (bool, error) {
	st := o.app.streams
	switch terminal := st.InTTY && st.ErrTTY && !o.json; {
	case o.yes && (!person || terminal):
		return true, nil
	case !terminal:
		return false, nil
	}
	if person {
		o.instruct()
	}
	return o.app.confirm(question)
}

// path is the .env file that is written to.
func (o *setupOptions) path() string {
	if o.envFile != "" {
		return o.app.local(o.envFile)
	}
	path, _ := config.EnvFile(o.app.process.Dir)
	return path
}

// sayHowToMakeAnApp prints the steps by hand where there is no GitHub App yet.
func (o *setupOptions) sayHowToMakeAnApp(results []setup.Result) {
	for _, r := range results {
		if r.Step == "github-app" && r.Undone && !o.json {
			o.instruct()
		}
	}
}

func (o *setupOptions) instruct() {
	if !o.instructed {
		fmt.Fprint(o.app.streams.Err, appInstructions(o.path()))
	}
	o.instructed = true
}
