package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/platform"
	"github.com/Insights/insightscli/internal/secret/seal"
	"github.com/Insights/insightscli/internal/task"
)

// envChange is what the flags of `env create` and `env edit` ask for.
type envChange struct {
	app   *app
	flags *pflag.FlagSet

	name           string
	level          string
	allow          []string
	disallow       []string
	includeDefault bool
	envVars        []string
	secrets        []string
	unset          []string
	image          string
	private        bool
	repos          []string
	dropRepos      []string
}

// addFlags binds what `env create` and `env edit` have in common.
func (o *envChange) addFlags(f *pflag.FlagSet) {
	o.flags = f
	f.SortFlags = false
	f.StringVar(&o.level, "level", string(task.NetworkTrusted), "network `LEVEL`: full, trusted or custom")
	f.StringArrayVar(&o.allow, "allow", nil, "`DOMAIN` that may be reached: example.com, *.example.com or example.com:8443 (repeatable; makes the level custom)")
	f.BoolVar(&o.includeDefault, "include-default-domains", false, "allow the trusted list, too (level custom)")
	f.StringArrayVar(&o.envVars, "env-var", nil, "variable for the agent: `K[=V]`, without V the value it has here (repeatable)")
	f.StringArrayVar(&o.secrets, "secret", nil, "secret for the agent: `K[=V]`, kept sealed and masked everywhere (repeatable)")
	f.StringVar(&o.image, "image", "", "`IMAGE` of the sandbox (default: the template's)")
	f.BoolVar(&o.private, "private", true, "only you may use it")
	f.StringArrayVar(&o.repos, "repo", nil, "only for runs on `ORG/REPO` (repeatable)")
}

func newEnvCreateCmd(a *app, runF func(context.Context, *envChange) error) *cobra.Command {
	o := &envChange{app: a}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a sandbox environment",
		Long: `Creates an environment: what a run may reach, and what its agent gets. A run takes
it with --env NAME, as it is at that moment. The level trusted allows a list of
package sources and code hosts, custom what --allow names and nothing else, full
every public address. Names are reached on ports 443, 80 and 22, unless a port is
named.` + exits("0", "1", "2", "5"),
		Example: `  insightscli env create ci --level trusted
  insightscli env create docs --allow example.com --allow '*.example.org' --include-default-domains
  insightscli env create sealed --level custom`,
		Args:              takes(1, 1, "a NAME"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runEnvCreate(cmd.Context(), o)
		},
	}
	o.addFlags(cmd.Flags())
	completeLevel(cmd)
	return cmd
}

func newEnvEditCmd(a *app, runF func(context.Context, *envChange) error) *cobra.Command {
	o := &envChange{app: a}
	cmd := &cobra.Command{
		Use:   "edit NAME",
		Short: "Change a sandbox environment",
		Long: `Changes an environment for the runs that begin from now on. --allow, --env-var,
--secret and --repo add to what there is or replace what has the same name;
--disallow, --unset and --drop-repo take away; the other flags replace.` + exits("0", "1", "2", "5"),
		Example: `  insightscli env edit ci --allow example.com
  insightscli env edit ci --disallow example.com --unset TOKEN`,
		Args:              takes(1, 1, "a NAME"),
		ValidArgsFunction: a.completeEnvironments,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runEnvEdit(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	o.addFlags(f)
	completeLevel(cmd)
	f.StringArrayVar(&o.disallow, "disallow", nil, "`DOMAIN` that may not be reached any more (repeatable)")
	f.StringArrayVar(&o.unset, "unset", nil, "variable or secret to take away: `K` (repeatable)")
	f.StringArrayVar(&o.dropRepos, "drop-repo", nil, "no more for `ORG/REPO` (repeatable)")
	return cmd
}

func runEnvCreate(ctx context.Context, o *envChange) error {
	s, err := o.app.openStateAndAdopt(ctx)
	if err != nil {
		return err
	}
	env := platform.Environment{Team: seedTeam, Name: o.name, CreatedBy: seedUser, Network: task.Network(o.level), Private: o.private}
	if err := o.apply(s, &env); err != nil {
		return err
	}
	if err := platform.NewEnvironments(s.db.DB).Create(ctx, env); err != nil {
		return err
	}
	fmt.Fprintf(o.app.streams.Out, "created %s; use it with: insightscli run --env %s …\n", o.name, o.name)
	return nil
}

func runEnvEdit(ctx context.Context, o *envChange) error {
	s, err := o.app.openStateAndAdopt(ctx)
	if err != nil {
		return err
	}
	if err := s.ownEnvironment(ctx, o.name); err != nil {
		return err
	}
	err = platform.NewEnvironments(s.db.DB).Edit(ctx, seedTeam, seedUser, o.name, func(env *platform.Environment) error {
		return o.apply(s, env)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(o.app.streams.Out, "changed %s, for the runs that begin from now on\n", o.name)
	return nil
}

// ownEnvironment refuses a name that only the settings have: a file of a repository is
// edited by hand.
func (s *state) ownEnvironment(ctx context.Context, name string) error {
	_, err := platform.NewEnvironments(s.db.DB).Get(ctx, seedTeam, seedUser, name)
	if _, there := s.config.Run.Environments[name]; there && errs.KindOf(err) == errs.NotFound {
		from := "the settings"
		if v, ok := s.config.ByProject("INSIGHTSCLI_ENVIRONMENTS"); ok {
			from = v.Source
		}
		return errs.New("cli.env", errs.Usage, "edit it there", "the environment %s comes from %s", name, from)
	}
	if errs.KindOf(err) == errs.NotFound {
		return noEnvironment(name)
	}
	return err
}

func noEnvironment(name string) error {
	return errs.New("cli.env", errs.NotFound, "see the environments with: insightscli env list", "there is no environment %q", name)
}

// apply makes the change and checks what comes of it.
func (o *envChange) apply(s *state, env *platform.Environment) error {
	if err := o.applyNetwork(env); err != nil {
		return err
	}
	if err := o.applyVars(s, env); err != nil {
		return err
	}
	if o.flags.Changed("image") {
		env.Image = o.image
	}
	if o.flags.Changed("private") {
		env.Private = o.private
	}
	for _, r := range lowered(o.repos) {
		if !slices.Contains(env.Repos, r) {
			env.Repos = append(env.Repos, r)
		}
	}
	for _, r := range lowered(o.dropRepos) {
		i := slices.Index(env.Repos, r)
		if i < 0 {
			return usageError("--drop-repo: the environment is not for %s", r)
		}
		env.Repos = slices.Delete(env.Repos, i, i+1)
	}
	if err := env.Check(); err != nil {
		return err
	}
	_, err := policy(env.Network, env.Domains, env.IncludeDefault)
	return err
}

// applyNetwork changes level and rules. Naming a domain makes the level custom, unless one
// is named beside it, which then must be custom; a trusted environment goes on allowing
// the trusted list.
func (o *envChange) applyNetwork(env *platform.Environment) error {
	was := env.Network
	if o.flags.Changed("level") {
		env.Network = task.Network(o.level)
	}
	if o.flags.Changed("include-default-domains") {
		env.IncludeDefault = o.includeDefault
	}
	if (len(o.allow) > 0 || o.includeDefault) && !o.flags.Changed("level") {
		if was == task.NetworkTrusted && !o.creates() {
			env.IncludeDefault = true
		}
		env.Network = task.NetworkCustom
	}
	if o.flags.Changed("level") && env.Network != task.NetworkCustom && len(o.allow) == 0 && !o.includeDefault {
		env.Domains, env.IncludeDefault = nil, false
	}
	allow, err := rule.Normalize(o.allow)
	if err != nil {
		return usageError("--allow: %w", err)
	}
	for _, r := range allow {
		if !slices.Contains(env.Domains, r) {
			env.Domains = append(env.Domains, r)
		}
	}
	for _, d := range o.disallow {
		name := strings.ToLower(strings.TrimSpace(d))
		if r, err := rule.Parse(d); err == nil {
			name = r.String()
		}
		i := slices.Index(env.Domains, name)
		if i < 0 {
			return usageError("--disallow: %s is not among what is allowed", name)
		}
		env.Domains = slices.Delete(env.Domains, i, i+1)
	}
	return nil
}

// creates tells `env create` from `env edit`.
func (o *envChange) creates() bool { return o.flags.Lookup("unset") == nil }

func (o *envChange) applyVars(s *state, env *platform.Environment) error {
	for _, name := range o.unset {
		_, plain := env.Env[name]
		_, sealed := env.Sealed[name]
		if !plain && !sealed {
			return usageError("--unset: there is no variable %s", name)
		}
		delete(env.Env, name)
		delete(env.Sealed, name)
	}
	if env.Env == nil {
		env.Env = map[string]string{}
	}
	if env.Sealed == nil {
		env.Sealed = map[string][]byte{}
	}
	for _, arg := range o.envVars {
		name, value, err := config.ParseVar(arg, o.app.process.Environ)
		if err != nil {
			return usageError("--env-var: %w", err)
		}
		env.Env[name] = value
		delete(env.Sealed, name)
	}
	if len(o.secrets) == 0 {
		return nil
	}
	key, err := seal.Open(filepath.Join(s.dir, keyFile))
	if err != nil {
		return err
	}
	for _, arg := range o.secrets {
		name, value, err := config.ParseVar(arg, o.app.process.Environ)
		if err != nil {
			return usageError("--secret: %w", err)
		}
		if env.Sealed[name], err = key.Seal(env.SealedAs(), name, []byte(value)); err != nil {
			return err
		}
		delete(env.Env, name)
	}
	return nil
}
