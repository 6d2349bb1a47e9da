package cli

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/docker"
	"github.com/Insights/insightscli/internal/sandbox/local"
)

// providers makes each provider once, when it is first asked for.
type providers struct {
	config config.Config
	runs   string // the directory of the runs' own directories

	mu     sync.Mutex
	docker *docker.Provider
	local  *local.Provider
}

func newProviders(c config.Config, stateDir string) *providers {
	return &providers{config: c, runs: filepath.Join(stateDir, "run")}
}

// engine returns the Docker provider.
func (p *providers) engine() *docker.Provider {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.docker == nil {
		m := p.config.Machine
		p.docker = docker.New(docker.Options{
			Host: m.DockerHost, Context: m.DockerContext, ConfigDir: m.DockerConfig, CertPath: m.DockerCertPath,
			TLSVerify: m.DockerTLSVerify != "", Home: m.Home, RuntimeDir: m.RuntimeDir,
		})
	}
	return p.docker
}

// get returns the provider of that name.
func (p *providers) get(_ context.Context, name string) (sandbox.Provider, error) {
	switch name {
	case config.ProviderDocker:
		return p.engine(), nil
	case config.ProviderLocal:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.local == nil {
			p.local = local.New(local.Options{Root: p.runs})
		}
		return p.local, nil
	}
	return nil, errs.New("cli.provider", errs.Config, "use --provider=docker or --provider=local",
		"provider %q is not in this build", name)
}

// builder builds the images of templates on the engine; processes that build at the
// same time wait for each other.
func (p *providers) builder(stateDir string) *image.Builder {
	return &image.Builder{Engine: p.engine().Images(), Lock: filepath.Join(stateDir, "image.lock")}
}

func (p *providers) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.docker == nil {
		return nil
	}
	return p.docker.Close()
}
