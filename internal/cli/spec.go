package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// The seeded team and user of a state directory.
const (
	seedTeam = 1
	seedUser = 1
)

// plan is everything that is decided before a run starts.
type plan struct {
	config      config.Config
	spec        task.Spec
	secrets     map[string]secret.String
	environment environment // empty without --env
	notices     []string    // for people: choices that were made for them
	// warnings are for people too: what is not as they asked for it.
	warnings []string
}

// freeze makes the Spec. Nothing has happened when it returns, and nothing is left
// to be asked.
func (o *runOptions) freeze(ctx context.Context) (plan, error) {
	c, err := o.app.config(o.settings)
	if err != nil {
		return plan{}, err
	}
	p := plan{config: c, spec: o.newSpec(c), notices: append(slices.Clone(c.Notices), foundInProject(c, o.app.process.Dir)...)}
	for _, step := range []func(context.Context, *plan) error{
		o.freezeAgent, o.freezeVars, o.freezeEnvironment, o.freezeScopes, o.freezePlace, o.freezeRepos, o.freezePublish, o.checkEnvironment, o.freezeModel, o.freezeSchema,
		o.freezeMCP, o.freezeFollow, o.freezeProgram, o.freezeSkills, o.freezeTelemetry, o.freezeOwnTraces, o.freezeTexts,
	} {
		if err := step(ctx, &p); err != nil {
			return plan{}, err
		}
	}
	return p, nil
}

// newSpec takes over what needs no decision.
func (o *runOptions) newSpec(c config.Config) task.Spec {
	spec := task.Spec{
		V: task.SpecVersion, Task: task.NewID(), Run: task.NewID(), Team: seedTeam, User: seedUser,
		Title: o.title, Description: o.prompt, OriginProduct: o.originProduct, Mode: task.Mode(o.mode),
		Template: c.Run.Template, Image: c.Run.Image, Runtime: c.Run.Runtime, CPUs: c.Run.CPUs, MemoryMiB: c.Run.MemoryMiB,
		Timeout: task.Duration(c.Run.Timeout), IdleTimeout: task.Duration(c.Run.IdleTimeout), HostGrace: task.Duration(c.Run.HostGrace),
		Keep: o.keep, PublishAgent: o.publishAgent, TrustMount: o.trustMount, ExitCode: o.exitCode, Detached: o.detach,
	}
	if spec.Title == "" {
		spec.Title = title(o.prompt, o.command)
	}
	spec.AgentUID, spec.AgentGID = agentIDs(os.Getuid(), os.Getgid(), c.Machine)
	return spec
}

func (o *runOptions) freezeAgent(_ context.Context, p *plan) error {
	name := o.agent
	switch {
	case name != "":
	case len(o.command) > 0:
		name = agentExec
	case p.config.Run.Agent != "":
		name = p.config.Run.Agent
	default:
		name = task.AgentClaude
	}
	p.spec.Agent = task.Agent{Name: name, Command: o.command}
	return checkAgent(name)
}

func (o *runOptions) freezeVars(_ context.Context, p *plan) error {
	p.spec.Env, p.secrets = map[string]string{}, map[string]secret.String{}
	for _, arg := range o.envVars {
		name, value, err := config.ParseVar(arg, o.app.process.Environ)
		if err != nil {
			return usageError("--env-var: %w", err)
		}
		p.spec.Env[name] = value
	}
	for _, arg := range o.secrets {
		name, value, err := config.ParseVar(arg, o.app.process.Environ)
		if err != nil {
			return usageError("--secret: %w", err)
		}
		if _, both := p.spec.Env[name]; both {
			return usageError("%s is given with --env-var and with --secret", name)
		}
		p.secrets[name] = secret.New(value)
	}
	for name := range p.secrets {
		p.spec.Secrets = append(p.spec.Secrets, name)
	}
	slices.Sort(p.spec.Secrets)
	return nil
}

// freezeTexts keeps the values of secrets out of the texts of the Spec, where the
// user's shell may have put them.
func (o *runOptions) freezeTexts(_ context.Context, p *plan) error {
	for _, text := range append(slices.Collect(maps.Values(p.spec.Env)), p.spec.Description) {
		if strings.ContainsRune(text, 0) { // it would be taken for the name of a secret
			return usageError("the prompt, or a variable, holds a NUL character")
		}
	}
	secrets := maps.Clone(p.secrets)
	maps.DeleteFunc(secrets, func(name string, _ secret.String) bool { return strings.HasPrefix(name, steps.SecretPlain) })
	if len(secrets) == 0 {
		return nil
	}
	p.spec.Description = secret.Fold(p.spec.Description, secrets)
	p.spec.Agent.Command = slices.Clone(p.spec.Agent.Command)
	for i, word := range p.spec.Agent.Command {
		p.spec.Agent.Command[i] = secret.Fold(word, secrets)
	}
	for name, value := range p.spec.Env {
		p.spec.Env[name] = secret.Fold(value, secrets)
	}
	p.spec.Title = secret.ShowFolded(secret.Fold(o.title, secrets))
	if shown := shownSpec(p.spec); o.title == "" {
		p.spec.Title = title(shown.Description, shown.Agent.Command)
	}
	return nil
}

// shownSpec is a Spec for people: secrets in its texts are hidden.
func shownSpec(spec task.Spec) task.Spec {
	spec.Description = secret.ShowFolded(spec.Description)
	spec.Agent.Command = slices.Clone(spec.Agent.Command)
	for i, word := range spec.Agent.Command {
		spec.Agent.Command[i] = secret.ShowFolded(word)
	}
	spec.Env = maps.Clone(spec.Env)
	for name, value := range spec.Env {
		spec.Env[name] = secret.ShowFolded(value)
	}
	for _, address := range []*string{
		&spec.LLM.AnthropicURL, &spec.LLM.OpenAIURL, &spec.LLM.ForwardURL, &spec.MCP.URL,
		&spec.Telemetry.LogsURL, &spec.Telemetry.TracesURL, &spec.Telemetry.MirrorURL, &spec.Telemetry.OwnURL,
	} {
		*address = config.HideUserinfo(*address)
	}
	return spec
}

func (o *runOptions) freezeScopes(_ context.Context, p *plan) (err error) {
	p.spec.Scopes, err = o.app.scopes(p.config.Run.Scopes)
	return err
}

// freezePlace decides where the sandbox is made and what it looks like.
func (o *runOptions) freezePlace(ctx context.Context, p *plan) (err error) {
	if err := checkTemplate(p.spec.Template); err != nil {
		return err
	}
	tools := p.config.Run.Tools
	if tools != "auto" && tools != "none" {
		return usageError("--tools: %q is neither auto nor none", tools)
	}
	name, err := p.config.ChooseProvider()
	if err != nil {
		return err
	}
	if name == config.ProviderModal || name == config.ProviderModalDocker {
		return notInBuild("use --provider=docker or --provider=local", "provider %s is not in this build", name)
	}
	return o.app.place(ctx, p, name)
}

func (o *runOptions) freezeRepos(ctx context.Context, p *plan) error {
	mounted := false
	for _, address := range o.repos {
		r, notices, err := o.freezeRepo(ctx, p.config, address, p.spec.AgentUID)
		if err != nil {
			return err
		}
		for _, other := range p.spec.Repos {
			if other.Dir() == r.Dir() {
				return usageError("two repositories are called %s/%s", r.Org, r.Name)
			}
		}
		mounted = mounted || r.Mount
		if r.URL != "" {
			githubKeysOf(p.config).seal(p.secrets)
			o.app.sealMinted(p.secrets)
		}
		p.spec.Repos = append(p.spec.Repos, r)
		p.notices = append(p.notices, notices...)
	}
	if o.trustMount && !mounted {
		return usageError("--trust-mount needs a mounted repository (--mount)")
	}
	return nil
}

// freezeRepo resolves one repository. An entry of SANDBOX_REPO_MOUNT_MAP takes the
// place of a remote one.
func (o *runOptions) freezeRepo(ctx context.Context, c config.Config, address string, agentUID int) (task.Repo, []string, error) {
	r, err := o.app.parseRepo(c.GitHub(), address)
	if err != nil {
		return r, nil, err
	}
	var found []string
	if m, ok := config.FindMount(c.RepoMounts, r.Org, r.Name); ok && r.Source == task.RepoRemote {
		if info, err := os.Stat(m.Path); err != nil || !info.IsDir() {
			return r, nil, errs.New("cli.run", errs.Config, "create the directory or remove the entry",
				"SANDBOX_REPO_MOUNT_MAP: entry %s/%s: %s is not a directory", m.Org, m.Name, m.Path)
		}
		if o.branch != "" {
			return r, nil, usageError("%s/%s is mounted from %s, where --branch would switch your own checkout", m.Org, m.Name, m.Path)
		}
		r = task.Repo{Source: task.RepoLocal, Org: m.Org, Name: m.Name, Path: m.Path, Mount: true}
		found = foundMount(c, m)
	}
	local := r.Source == task.RepoLocal
	if !local && (o.mount || o.uncommitted) {
		return r, nil, usageError("--mount and --uncommitted need a local path, which %s is not", address)
	}
	r.Branch, r.Mount, r.Uncommitted = o.branch, r.Mount || o.mount, o.uncommitted
	r.FullHistory = o.fullHistory && !local
	r, notices, err := o.app.resolveRepo(ctx, c, r)
	notices = append(notices, found...)
	if err == nil && r.Mount {
		err = checkMountOwner(r.Path, agentUID)
	}
	return r, notices, err
}

// checkMountOwner refuses to mount a tree read-write that the agent could only read.
func checkMountOwner(dir string, agentUID int) error {
	owner, ok := repo.Owner(dir)
	if !ok || owner == agentUID {
		return nil
	}
	return errs.New("cli.run", errs.Usage, fmt.Sprintf("run insightscli as the owner, leave out the mount, or: chown -R %d %s", agentUID, dir),
		"the agent is user %d and cannot work in %s, which belongs to user %d", agentUID, dir, owner)
}

// title makes the title of a task from what it is to do.
func title(prompt string, command []string) string {
	text := prompt
	if text == "" {
		text = strings.Join(command, " ")
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxTitle {
		text = string(r[:maxTitle-1]) + "…"
	}
	return text
}

// agentIDs is who the agent is in the sandbox: the invoking user, whose files the
// checkouts are; for root the user behind sudo, else 1000.
func agentIDs(uid, gid int, m config.Machine) (int, int) {
	switch {
	case uid > 0:
		return uid, gid
	case uid == 0 && m.SudoUID > 0:
		return m.SudoUID, m.SudoGID
	}
	return 1000, 1000
}
