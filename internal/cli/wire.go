package cli

import (
	"context"
	"strings"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/task"
)

// wiring is where concrete types meet. Every field is a function, so that making
// an app opens nothing; tests put their own in place.
type wiring struct {
	parseRepo   func(address string) (task.Repo, error)
	resolveRepo func(ctx context.Context, c config.Config, r task.Repo) (task.Repo, []string, error)
	// scopes expands a preset or a list to what the agent's token gets.
	scopes func(text string) ([]string, error)
	// engine reports whether a Docker engine answers.
	engine func(ctx context.Context, c config.Config) error
	// toolDirs lists the directories of PATH that local sandboxes get.
	toolDirs func(c config.Config) []string
	executor func(ctx context.Context, c config.Config, spec task.Spec) (executor, error)
}

func defaultWiring(a *app) wiring {
	return wiring{
		parseRepo:   repo.Parse,
		resolveRepo: a.resolve,
		scopes:      func(text string) ([]string, error) { return strings.Split(text, ","), nil },
	}
}

// place decides the provider, unless the settings name one, and what depends on it.
func (a *app) place(ctx context.Context, p *plan, name string) error {
	if name == "" {
		name = config.ProviderLocal
		if err := a.engine(ctx, p.config); err == nil {
			name = config.ProviderDocker
		} else if p.spec.Image != "" {
			return err
		} else {
			p.notices = append(p.notices, "no Docker engine answers; the sandbox is made by the provider local")
		}
	}
	p.spec.Provider = name
	if name == config.ProviderDocker {
		return placeDocker(p)
	}
	if p.spec.Image != "" {
		return errs.New("cli.run", errs.Usage, "leave the image out, or use --provider=docker", "provider local has no images")
	}
	if p.config.Run.Tools == "auto" {
		p.spec.ToolDirs = a.toolDirs(p.config)
	}
	return nil
}

// placeDocker names the image: the template's, unless another is given.
func placeDocker(p *plan) error {
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
