package cli

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/platform"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/secret/seal"
	"github.com/Insights/insightscli/internal/task"
)

// environment is a sandbox environment that a run asks for, with its secrets opened.
type environment struct {
	platform.Environment
	secrets map[string]secret.String
	from    string // the file of a repository that brought it; empty: it is the user's
}

// environment finds a sandbox environment: among the user's own, then in the settings.
func (a *app) environment(ctx context.Context, c config.Config, name string) (environment, error) {
	s, err := a.openState(ctx, c)
	if err != nil {
		return environment{}, err
	}
	own, err := platform.NewEnvironments(s.db.DB).Get(ctx, seedTeam, seedUser, name)
	if errs.KindOf(err) == errs.NotFound {
		if e, ok := c.Run.Environments[name]; ok {
			return a.projectEnvironment(c, name, e)
		}
	}
	if err != nil {
		return environment{}, err
	}
	out := environment{Environment: own, secrets: map[string]secret.String{}}
	if len(own.Sealed) == 0 {
		return out, nil
	}
	key, err := seal.Open(filepath.Join(s.dir, keyFile))
	if err != nil {
		return environment{}, err
	}
	for name, sealed := range own.Sealed {
		value, err := key.Open(own.SealedAs(), name, sealed)
		if err != nil {
			return environment{}, errs.New("cli.run", errs.Config, "insightscli env edit "+own.Name+" --secret "+name+"=VALUE",
				"the secret %s of environment %s cannot be opened: sealed with another key, or damaged", name, own.Name)
		}
		out.secrets[name] = secret.New(string(value))
	}
	return out, nil
}

// projectEnvironment is one of an insights.yaml. Its secrets are the caller's.
func (a *app) projectEnvironment(c config.Config, name string, e config.Environment) (environment, error) {
	out := environment{
		Environment: platform.Environment{
			Team: seedTeam, Name: name, CreatedBy: seedUser, Network: task.Network(e.Network), Domains: e.Allow,
			IncludeDefault: e.IncludeDefault, Image: e.Image, Repos: lowered(e.Repos), Env: e.Env,
		},
		secrets: map[string]secret.String{}, from: "the settings",
	}
	if v, ok := c.ByProject("INSIGHTSCLI_ENVIRONMENTS"); ok {
		out.from = v.Source
	}
	for _, name := range e.Secrets {
		_, value, err := config.ParseVar(name, a.process.Environ)
		if err != nil {
			return out, errs.New("cli.run", errs.Config, "set it, or leave it out of the environment",
				"environment %s of %s: %w", out.Name, out.from, err)
		}
		out.secrets[name] = secret.New(value)
	}
	err := out.Check()
	if err == nil {
		_, err = policy(out.Network, out.Domains, out.IncludeDefault)
	}
	if err != nil {
		return out, errs.New("cli.run", errs.Config, errs.HintOf(err), "environment %s of %s: %w", out.Name, out.from, err)
	}
	return out, nil
}

func lowered(all []string) []string {
	out := slices.Clone(all)
	for i := range out {
		out[i] = strings.ToLower(out[i])
	}
	return out
}

// policy are the rules of a network level, all of them, as a Spec has them. The level full
// needs none.
func policy(level task.Network, domains []string, includeDefault bool) ([]string, error) {
	var rules []string
	switch level {
	case task.NetworkFull, task.NetworkLink:
		return nil, nil
	case task.NetworkTrusted:
		rules = rule.Default()
	case task.NetworkCustom:
		var err error
		if rules, err = rule.Normalize(domains); err != nil {
			return nil, errs.New("cli.policy", errs.Usage, "write names such as example.com, *.example.com or example.com:8443", "%w", err)
		}
		if includeDefault {
			rules = append(rules, rule.Default()...)
		}
	}
	return rules, nil
}

// freezeEnvironment takes over what the environment has and the command line does not say
// otherwise, and makes the rules of the network.
func (o *runOptions) freezeEnvironment(ctx context.Context, p *plan) error {
	if o.environment != "" {
		env, err := o.app.environment(ctx, p.config, o.environment)
		if err != nil {
			return err
		}
		p.environment = env
		o.takeEnvironment(p, env)
	}
	return o.freezeNetwork(p)
}

func (o *runOptions) takeEnvironment(p *plan, env environment) {
	p.spec.Environment = env.Name
	if o.image == "" && env.Image != "" {
		p.spec.Image = env.Image
	}
	given := map[string]bool{}
	for name := range p.spec.Env {
		given[name] = true
	}
	for name := range p.secrets {
		given[name] = true
	}
	for name, value := range env.Env {
		if !given[name] {
			p.spec.Env[name] = value
		}
	}
	for name, value := range env.secrets {
		if !given[name] {
			p.secrets[name] = value
			p.spec.Secrets = append(p.spec.Secrets, name)
		}
	}
	slices.Sort(p.spec.Secrets)
	if env.from == "" {
		return
	}
	text := fmt.Sprintf("the environment %s comes from %s: the agent may reach %s", env.Name, env.from,
		cell(environmentOf(env.Environment, "", nil).allowed(), 120))
	if len(env.secrets) > 0 {
		text += ", and gets your " + strings.Join(slices.Sorted(maps.Keys(env.secrets)), ", ")
	}
	p.notices = append(p.notices, text)
}

// freezeNetwork decides the level and its rules. A flag goes before the environment, and
// the environment before the settings.
func (o *runOptions) freezeNetwork(p *plan) (err error) {
	env := p.environment
	_, given := o.settings["INSIGHTSCLI_NETWORK"]
	level, domains, defaults := p.config.Run.Network, o.allow, o.includeDefault
	switch {
	case given:
	case env.Network != "":
		if err := env.notWider(p.config); err != nil {
			return err
		}
		level = string(env.Network)
		domains = slices.Concat(env.Domains, o.allow)
		defaults = defaults || env.IncludeDefault
	}
	asked := len(o.allow) > 0 || o.includeDefault
	if asked && !given {
		if task.Network(level) == task.NetworkTrusted {
			defaults = true
		}
		level = string(task.NetworkCustom)
	}
	if p.spec.Network, err = checkNetwork(level); err != nil {
		return err
	}
	if asked && p.spec.Network != task.NetworkCustom {
		return errs.New("cli.Parse", errs.Usage, "for the trusted list and more: --network=custom --include-default-domains --allow ...",
			"--allow and --include-default-domains belong to --network=custom, not to %s", level)
	}
	p.spec.Allow, err = policy(p.spec.Network, domains, defaults)
	return err
}

// notWider refuses an environment of a repository that allows more than the user's own
// settings do: as with the settings themselves, what a repository brings only narrows.
func (e environment) notWider(c config.Config) error {
	own, ok := c.ByUser("INSIGHTSCLI_NETWORK")
	if e.from == "" || !ok || !config.WiderNetwork(string(e.Network), own.Text) {
		return nil
	}
	return errs.New("cli.run", errs.Usage, "if you mean it, make one of your own: insightscli env create "+e.Name,
		"the environment %s of %s wants the network level %s, and your own %s (%s) allows less", e.Name, e.from, e.Network, own.Text, own.Source)
}

// checkEnvironment refuses to bring an environment to a repository that it is not for.
func (o *runOptions) checkEnvironment(_ context.Context, p *plan) error {
	env := p.environment
	if len(env.Repos) == 0 {
		return nil
	}
	if len(p.spec.Repos) == 0 {
		return errs.New("cli.run", errs.Usage, "add --repo "+env.Repos[0], "the environment %s is for %s only", env.Name, strings.Join(env.Repos, ", "))
	}
	for _, r := range p.spec.Repos {
		if name := r.Org + "/" + r.Name; !slices.Contains(env.Repos, name) {
			return errs.New("cli.run", errs.Usage, "insightscli env edit "+env.Name+" --repo "+name,
				"the environment %s is for %s, not for %s", env.Name, strings.Join(env.Repos, ", "), name)
		}
	}
	return nil
}
