package cli

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/egress"
	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

type envCheckOptions struct {
	app *app

	target      string
	environment string
	level       string
	allow       []string
	defaults    bool
	json        bool
}

func newEnvCheckCmd(a *app, runF func(context.Context, *envCheckOptions) error) *cobra.Command {
	o := &envCheckOptions{app: a}
	cmd := &cobra.Command{
		Use:   "check URL",
		Short: "Say whether a place may be reached, and which rule says so",
		Long: `Says what the network policy of an environment, or of a level and --allow, makes
of a URL, a HOST or a HOST:PORT. Nothing is contacted. The exit code is 0 where it
is allowed and 4 where it is not.` + exits("0", "1", "2", "4", "5"),
		Example: `  insightscli env check https://example.com/x --env ci
  insightscli env check example.com:22 --level trusted`,
		Args:              takes(1, 1, "a URL"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.target = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runEnvCheck(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.environment, "env", "", "the sandbox environment called `NAME`")
	f.StringVar(&o.level, "level", string(task.NetworkTrusted), "a network `LEVEL` instead: full, trusted or custom")
	f.StringArrayVar(&o.allow, "allow", nil, "`DOMAIN` that may be reached, too (repeatable)")
	f.BoolVar(&o.defaults, "include-default-domains", false, "allow the trusted list beside --allow")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	cmd.MarkFlagsMutuallyExclusive("env", "level")
	completeLevel(cmd)
	_ = cmd.RegisterFlagCompletionFunc("env", a.completeEnvironmentFlag) // the flag is there
	return cmd
}

func runEnvCheck(ctx context.Context, o *envCheckOptions) error {
	set, err := o.policy(ctx)
	if err != nil {
		return err
	}
	v := egress.Check(set, o.target)
	if v.Host == "" || v.Port == 0 {
		return errs.New("cli.env", errs.Usage, "give a URL, HOST or HOST:PORT", "%q is no place to reach: %s", o.target, v.Reason)
	}
	if o.json {
		if err := writeJSON(o.app.streams.Out, v); err != nil {
			return err
		}
	} else {
		o.print(v)
	}
	if !v.Allowed {
		return exitWith(errs.Auth.Code())
	}
	return nil
}

func (o *envCheckOptions) print(v egress.Decision) {
	place := net.JoinHostPort(v.Host, strconv.Itoa(int(v.Port)))
	if v.Allowed {
		by := "by the rule " + v.Rule
		if v.Rule == rule.All {
			by = "as every public address is"
		}
		fmt.Fprintf(o.app.streams.Out, "allowed  %s  %s\n", place, by)
		return
	}
	fmt.Fprintf(o.app.streams.Out, "refused  %s  %s\n", place, v.Reason)
	if v.Suggest != "" && o.environment != "" {
		fmt.Fprintf(o.app.streams.Err, "hint: insightscli env edit %s --allow '%s'\n", o.environment, v.Suggest)
	}
}

// policy compiles the rules that are asked about.
func (o *envCheckOptions) policy(ctx context.Context) (rule.Set, error) {
	level, allow, defaults := task.Network(o.level), o.allow, o.defaults
	if o.environment != "" {
		env, err := (&envOptions{app: o.app, name: o.environment}).find(ctx)
		if err != nil {
			return rule.Set{}, err
		}
		level, allow, defaults = env.Network, append(env.Allow, o.allow...), defaults || env.IncludeDefault
	}
	if len(o.allow) > 0 {
		defaults = defaults || level == task.NetworkTrusted && o.environment != ""
		level = task.NetworkCustom
	}
	if _, err := checkNetwork(string(level)); err != nil {
		return rule.Set{}, err
	}
	if level == task.NetworkFull || level == task.NetworkLink {
		return rule.Compile([]string{rule.All})
	}
	rules, err := policy(level, allow, defaults)
	if err != nil {
		return rule.Set{}, err
	}
	return rule.Compile(rules)
}
