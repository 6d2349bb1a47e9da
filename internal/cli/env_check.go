package cli

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

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
	return cmd
}

// envVerdict is what the policy makes of a place.
type envVerdict struct {
	Host    string `json:"host"`
	Port    uint16 `json:"port"`
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule,omitempty"`    // that allows it
	Reason  string `json:"reason,omitempty"`  // why not
	Suggest string `json:"suggest,omitempty"` // the rule that would allow it
}

func runEnvCheck(ctx context.Context, o *envCheckOptions) error {
	set, err := o.policy(ctx)
	if err != nil {
		return err
	}
	v, err := judge(set, o.target)
	if err != nil {
		return err
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

func (o *envCheckOptions) print(v envVerdict) {
	place := net.JoinHostPort(v.Host, strconv.Itoa(int(v.Port)))
	if v.Allowed {
		fmt.Fprintf(o.app.streams.Out, "allowed  %s  by the rule %s\n", place, v.Rule)
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

// judge says what the rules make of a URL, a host, or a host and port.
func judge(set rule.Set, target string) (envVerdict, error) {
	host, port, plain, err := placeOfURL(target)
	if err != nil {
		return envVerdict{}, err
	}
	v := envVerdict{Host: host, Port: port}
	name, err := rule.Host(host)
	switch ip := net.ParseIP(strings.Trim(host, "[]")); {
	case ip != nil && set.Public():
		v.Allowed, v.Rule = true, "every public address"
		if !ip.IsGlobalUnicast() || ip.IsPrivate() {
			v.Allowed, v.Rule, v.Reason = false, "", "no sandbox reaches private and local addresses"
		}
		return v, nil
	case ip != nil:
		v.Reason = "addresses are not allowed, only names are"
		return v, nil
	case err != nil:
		return v, errs.New("cli.env", errs.Usage, "give a URL, HOST or HOST:PORT", "%w", err)
	}
	v.Host = name
	var ok bool
	if plain != "" && set.Requests(name, port) {
		v.Rule, ok = set.Request(name, port, "GET", plain)
	} else {
		v.Rule, ok = set.Match(name, port)
	}
	if v.Allowed = ok; !ok {
		v.Suggest = rule.Suggest(name, port)
		v.Reason = "no rule allows it"
		if _, other := set.Name(name); other {
			v.Reason = "no rule allows this port of it"
		}
	}
	if v.Rule == rule.All {
		v.Rule = "every public address"
	}
	return v, nil
}

// placeOfURL takes a URL apart. path is set for plain HTTP.
func placeOfURL(target string) (host string, port uint16, path string, err error) {
	bad := errs.New("cli.env", errs.Usage, "give a URL, HOST or HOST:PORT", "%q is no place to reach", target)
	if !strings.Contains(target, "://") {
		target = "https://" + target
	}
	u, err := url.Parse(target)
	if err != nil || u.Hostname() == "" {
		return "", 0, "", bad
	}
	text := u.Port()
	if text == "" {
		text = map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443", "ssh": "22", "git+ssh": "22", "git": "9418", "ftp": "21"}[u.Scheme]
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", 0, "", bad
	}
	if u.Scheme == "http" {
		path = u.RequestURI()
	}
	return u.Hostname(), uint16(n), path, nil
}
