package cli

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/docker"
	"github.com/Insights/insightscli/internal/sandbox/local"
	"github.com/Insights/insightscli/internal/task"
)

// providers makes each provider once, when it is first asked for: one for local
// sandboxes, and one for each engine.
type providers struct {
	config config.Config
	runs   string // the directory of the runs' own directories

	mu      sync.Mutex
	engines map[task.Engine]*docker.Provider
	local   *local.Provider
}

func newProviders(c config.Config, stateDir string) *providers {
	return &providers{config: c, runs: filepath.Join(stateDir, "run"), engines: map[task.Engine]*docker.Provider{}}
}

// chosenEngine is the engine that the settings name.
func chosenEngine(m config.Machine) task.Engine {
	return task.Engine{
		Host: m.DockerHost, Context: m.DockerContext, ConfigDir: m.DockerConfig,
		CertPath: m.DockerCertPath, TLSVerify: m.DockerTLSVerify != "",
	}
}

// engine returns the Docker provider of the engine that the settings name.
func (p *providers) engine() *docker.Provider { return p.engineOf(chosenEngine(p.config.Machine)) }

func (p *providers) engineOf(e task.Engine) *docker.Provider {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.engines[e] == nil {
		p.engines[e] = docker.New(docker.Options{
			Host: e.Host, Context: e.Context, ConfigDir: e.ConfigDir, CertPath: e.CertPath, TLSVerify: e.TLSVerify,
			Home: p.config.Machine.Home, RuntimeDir: p.config.Machine.RuntimeDir,
		})
	}
	return p.engines[e]
}

// of returns the provider that a Spec names, on the engine that it names.
func (p *providers) of(_ context.Context, spec task.Spec) (sandbox.Provider, error) {
	switch spec.Provider {
	case config.ProviderDocker:
		return p.engineOf(spec.Engine), nil
	case config.ProviderLocal:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.local == nil {
			p.local = local.New(local.Options{Root: p.runs})
		}
		return p.local, nil
	}
	return nil, errs.New("cli.provider", errs.Config, "use --provider=docker or --provider=local",
		"provider %q is not in this build", spec.Provider)
}

// builder builds the images of templates on an engine; processes that build at the
// same time wait for each other.
func (p *providers) builder(stateDir string, e task.Engine) *image.Builder {
	return &image.Builder{
		Engine: p.engineOf(e).Images(), Lock: filepath.Join(stateDir, "image.lock"), Args: proxyArgs(p.config.Machine),
	}
}

// proxyArgs are the proxies of this machine as build arguments, which an engine
// knows without a declaration and keeps out of the image.
func proxyArgs(m config.Machine) map[string]string {
	args := map[string]string{}
	for name, value := range map[string]string{
		"http_proxy": m.HTTPProxy.Reveal(), "https_proxy": m.HTTPSProxy.Reveal(), "no_proxy": m.NoProxy,
	} {
		if value != "" {
			args[name], args[strings.ToUpper(name)] = value, value // programs know one or the other
		}
	}
	return args
}

func (p *providers) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []error
	for _, e := range p.engines {
		all = append(all, e.Close())
	}
	return errors.Join(all...)
}
