package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/sandbox/local"
	"github.com/Insights/insightscli/internal/skills"
	"github.com/Insights/insightscli/setup"
)

// envStep is the step that writes .env.
func (o *setupOptions) envStep(provider string) setup.Env {
	path := o.path()
	return setup.Env{
		Path: path, Example: o.example(path), Provider: provider, Today: time.Now(),
		Given: func(name string) bool { return environValue(o.app.process.Environ, name) != "" },
	}
}

func (o *setupOptions) engineStep(c config.Config, provider string, err error) setup.Engine {
	return setup.Engine{Answer: func(ctx context.Context) (string, error) {
		if err != nil {
			return "", err
		}
		return o.app.providerAnswers(ctx, c, provider)
	}}
}

// provider is the one that a run would take once the steps are done: on a machine
// whose settings name none, the step env writes docker.
func (o *setupOptions) provider(ctx context.Context, c config.Config) (string, error) {
	name, err := c.ChooseProvider()
	switch {
	case err != nil:
		return config.ProviderDocker, err
	case name != "":
		return name, nil
	case o.selected("env"), o.app.engine(ctx, c) == nil:
		return config.ProviderDocker, nil
	}
	return config.ProviderLocal, nil
}

// selected reports whether a step is to be carried out.
func (o *setupOptions) selected(step string) bool {
	return len(o.only) == 0 || slices.Contains(o.only, step)
}

// example is the .env.example beside a .env, else the one of the project.
func (o *setupOptions) example(path string) string {
	beside := path + ".example"
	if filepath.Base(path) != ".env" {
		beside = filepath.Join(filepath.Dir(path), ".env.example")
	}
	if _, err := os.Stat(beside); err == nil {
		return beside
	}
	return filepath.Join(config.Project(o.app.process.Dir), ".env.example")
}

// present returns those of the names that have a value.
func present(lookup func(string) string, names ...string) []string {
	var list []string
	for _, name := range names {
		if lookup(name) != "" {
			list = append(list, name)
		}
	}
	return list
}

// providerAnswers asks a provider whether it can make sandboxes.
func (a *app) providerAnswers(ctx context.Context, c config.Config, provider string) (string, error) {
	dir, err := c.StateDir()
	if err != nil {
		return "", err
	}
	tryLocal := func(ctx context.Context) error {
		return haveAgentServer(dir, func(path string) error { return local.New(local.Options{}).Probe(ctx, path) })
	}
	switch provider {
	case config.ProviderDocker:
		engine := a.providersFor(c).engine()
		err := engine.Ping(ctx)
		if err == nil {
			return engine.Endpoint(ctx)
		}
		if tryLocal(ctx) == nil {
			err = errs.New("cli.setup", errs.KindOf(err), "start the Docker engine, or set SANDBOX_PROVIDER=local: that works here", "%w", err)
		}
		return "", inSettings(err)
	case config.ProviderLocal:
		return "the provider local works here", tryLocal(ctx)
	}
	if err := a.built(ctx, c, provider); err != nil {
		return "", errs.New("cli.setup", errs.Config, "set DEBUG=1 and SANDBOX_PROVIDER=docker, or SANDBOX_PROVIDER=local", "%w", err)
	}
	return "the provider is " + provider + ", which is elsewhere", nil
}

// inSettings puts the advice of an error in terms of a setting: the set-up has no
// flag for the provider.
func inSettings(err error) error {
	hint := strings.ReplaceAll(errs.HintOf(err), "use --provider=", "set SANDBOX_PROVIDER=")
	return errs.New("cli.setup", errs.KindOf(err), hint, "%w", err)
}

func (o *setupOptions) skillsStep(c config.Config) setup.Skills {
	sources := c.Agents.Skills
	if c.Agents.SkillsOverlay != "" {
		sources = append(sources[:len(sources):len(sources)], c.Agents.SkillsOverlay)
	}
	return setup.Skills{
		Sources: sources,
		Current: func(context.Context) (string, error) {
			dir, err := c.StateDir()
			if err != nil {
				return "", err
			}
			b, err := skills.Current(dir)
			return b.Hash, err
		},
		Build: func(ctx context.Context) (string, int, error) {
			s, err := o.app.openState(ctx, c)
			if err != nil {
				return "", 0, err
			}
			options, err := s.skillOptions(ctx)
			if err != nil {
				return "", 0, err
			}
			b, err := skills.Build(ctx, options)
			for _, w := range b.Warnings {
				fmt.Fprintf(o.app.streams.Err, "note: %s\n", w)
			}
			return b.Hash, len(b.Skills), err
		},
	}
}

func (o *setupOptions) imageStep(c config.Config, provider string) setup.Image {
	s := setup.Image{Needless: "the provider " + provider + " has no images here"}
	t, err := image.Parse(c.Run.Template)
	if err == nil && t.Dockerfile() == "" {
		err = errs.New("cli.setup", errs.Config, "set INSIGHTSCLI_TEMPLATE=default_base", "the template %s is not in this build", t)
	}
	engine := o.app.providersFor(c).engine()
	if provider == config.ProviderDocker {
		s.Needless = ""
	}
	if c.Run.Image != "" {
		s.Needless = "the settings name an image, " + c.Run.Image
	}
	s.Tag, s.Command = t.Tag(), t.Command()
	s.State = func(ctx context.Context) (setup.ImageState, error) {
		if err != nil {
			return "", err
		}
		if err := engine.Ping(ctx); err != nil {
			return "", inSettings(err)
		}
		state, _, err := imageState(ctx, t, engine.Images().Inspect)
		return setup.ImageState(state), err
	}
	s.Build = func(ctx context.Context) error {
		st, err := o.app.openState(ctx, c)
		if err != nil {
			return err
		}
		b := st.providers.builder(st.dir, chosenEngine(c.Machine))
		_, err = b.Build(ctx, t, false, func(line string) { fmt.Fprintln(o.app.streams.Err, render.Clean(line)) })
		return err
	}
	return s
}

// environValue is a variable of the environment.
func environValue(environ []string, name string) string {
	value := ""
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}
