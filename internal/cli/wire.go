package cli

import (
	"context"
	"net/netip"

	"github.com/Insights/insightscli/internal/agentcli"
	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/platform"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/task"
)

// wiring is where concrete types meet. Every field is a function, so that making
// an app opens nothing; tests put their own in place.
type wiring struct {
	parseRepo   func(github, address string) (task.Repo, error)
	resolveRepo func(ctx context.Context, c config.Config, r task.Repo) (task.Repo, []string, error)
	// scopes expands a preset or a list to what the agent's token gets.
	scopes func(text string) ([]string, error)
	// engine reports whether a Docker engine answers.
	engine func(ctx context.Context, c config.Config) error
	// tools lists the directories that local sandboxes get, and the PATH there.
	tools func(c config.Config) (dirs []string, path string)
	// findAgent finds the program of an agent on this machine.
	findAgent func(name string, o agentcli.Options) (agentcli.Program, error)
	// permitAddr lets sandboxes reach addresses that are not public. Only tests have one.
	permitAddr func(netip.Addr) bool
	executor   func(ctx context.Context, c config.Config, spec task.Spec) (executor, error)
}

func defaultWiring(a *app) wiring {
	return wiring{
		parseRepo:   repo.ParseOn,
		resolveRepo: a.resolve,
		scopes:      platform.Scopes,
		engine:      func(ctx context.Context, c config.Config) error { return a.providersFor(c).engine().Ping(ctx) },
		tools:       localTools,
		findAgent:   agentcli.Find,
		executor: func(ctx context.Context, c config.Config, spec task.Spec) (executor, error) {
			if err := a.ready(ctx, c, spec); err != nil {
				return nil, err
			}
			return a.host(ctx, c)
		},
	}
}

// resolve looks up what a repository address names.
func (a *app) resolve(ctx context.Context, c config.Config, r task.Repo) (task.Repo, []string, error) {
	dir, err := c.StateDir()
	if err != nil {
		return r, nil, err
	}
	found, err := a.repoCache(dir, c).Resolve(ctx, r, repo.ResolveOptions{WorkDir: a.process.Dir, Home: c.Machine.Home})
	if err != nil {
		return r, nil, err
	}
	if r.Org != "" { // an entry of the mount map has said what it is
		found.Repo.Org, found.Repo.Name = r.Org, r.Name
	}
	return found.Repo, found.Notices, nil
}

// ready refuses, before anything is recorded, a run whose sandbox cannot be made:
// its engine does not answer, or its image is not for it.
func (a *app) ready(ctx context.Context, c config.Config, spec task.Spec) error {
	if spec.Provider != config.ProviderDocker {
		return nil
	}
	engine := a.providersFor(c).engineOf(spec.Engine)
	if spec.Runtime != "" {
		if _, err := engine.Runtime(ctx, spec.Runtime); err != nil {
			return err
		}
	}
	return engine.Ready(ctx, spec.Image)
}

// place decides the provider, unless the settings name one, and what depends on it.
func (a *app) place(ctx context.Context, p *plan, name string) error {
	if name == "" {
		name = config.ProviderLocal
		if err := a.engine(ctx, p.config); err == nil {
			name = config.ProviderDocker
		} else if p.spec.Image != "" || p.spec.Runtime != "" {
			return err
		} else {
			p.notices = append(p.notices, "no Docker engine answers; the sandbox is made by the provider local")
		}
	}
	p.spec.Provider = name
	if p.spec.Network == task.NetworkLink {
		p.notices = append(p.notices, "with --network=link the host makes every connection of the sandbox: TCP to public addresses, and names, nothing else")
	}
	if name == config.ProviderDocker {
		return placeDocker(p)
	}
	if p.spec.Runtime != "" {
		return errs.New("cli.run", errs.Usage, "leave --runtime and INSIGHTSCLI_RUNTIME out, or use --provider=docker", "provider %s has no OCI runtimes", name)
	}
	if p.spec.Image != "" {
		return errs.New("cli.run", errs.Usage, "leave the image out, or use --provider=docker", "provider local has no images")
	}
	if p.spec.Network == task.NetworkFull {
		p.notices = append(p.notices, "the host makes every connection of a sandbox of the provider local: TCP to public addresses, and names, nothing else")
	}
	if p.config.Run.Tools == "auto" {
		dirs, path := a.tools(p.config)
		p.spec.ToolDirs = dirs
		if _, given := p.spec.Env["PATH"]; !given {
			p.spec.Env["PATH"] = path
		}
	}
	return nil
}

// placeDocker names the image: the template's, unless another is given.
func placeDocker(p *plan) error {
	p.spec.Engine = chosenEngine(p.config.Machine)
	if p.spec.Image != "" {
		return nil
	}
	t, err := image.Parse(p.spec.Template)
	if err != nil {
		return err
	}
	p.spec.Image = t.Tag()
	return nil
}
