package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/Insights/insightscli/internal/agentserver/embedded"
	"github.com/Insights/insightscli/internal/background"
	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/doctor"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/sandbox/local"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/setup"
	"github.com/Insights/insightscli/setup/dotenv"
)

// machine is what doctor asks. Nothing is made by it, not even a state directory.
func (a *app) machine(ctx context.Context, c config.Config) (doctor.Machine, error) {
	dir, err := c.StateDir()
	if err != nil {
		return doctor.Machine{}, err
	}
	envFile, _ := config.EnvFile(a.process.Dir)
	engine := a.providersFor(c).engine()
	m := doctor.Machine{
		Config: c, EnvFile: envFile, Project: config.Project(a.process.Dir), State: dir,
		Lookup: a.lookup(envFile), Holder: holderOf, Pending: pendingApp(dir),
		Built: func(provider string) error { return a.built(ctx, c, provider) },
		Engine: func(ctx context.Context) (string, error) {
			if err := engine.Ping(ctx); err != nil {
				return "", err
			}
			return engine.Endpoint(ctx)
		},
		Image:       func(ctx context.Context) (string, error) { return runImageState(ctx, c, engine.Images().Inspect) },
		AgentServer: func(context.Context) error { return haveAgentServer(dir, func(string) error { return nil }) },
		Local: func(ctx context.Context) error {
			return haveAgentServer(dir, func(path string) error { return local.New(local.Options{}).Probe(ctx, path) })
		},
		Runner: func(ctx context.Context) (string, error) { return runnerState(ctx, dir) },
	}
	if c.Account.GitHubClientID != "" && !c.Account.GitHubPrivateKey.Empty() {
		m.GitHub = githubCheck(c)
	}
	store := sync.OnceValues(func() (setupStore, error) { return a.storeOf(ctx, c, true) })
	m.Stores = func(context.Context) error { _, err := store(); return err }
	m.FlagOff = func(ctx context.Context) ([]int64, error) { return flagOff(ctx, store) }
	m.App = func(ctx context.Context, label string) error { return haveApp(ctx, store, label, c.CloudDeployment) }
	return m, nil
}

// built reports whether this build has a provider.
func (a *app) built(ctx context.Context, c config.Config, provider string) error {
	_, err := a.providersFor(c).of(ctx, task.Spec{Provider: provider, Engine: chosenEngine(c.Machine)})
	return err
}

func flagOff(ctx context.Context, store func() (setupStore, error)) ([]int64, error) {
	s, err := store()
	if err != nil {
		return nil, err
	}
	_, off, err := setup.FlagOff(ctx, s)
	return off, err
}

func haveApp(ctx context.Context, store func() (setupStore, error), label, region string) error {
	s, err := store()
	if err != nil {
		return err
	}
	app := setup.InsightsAIApp()
	if label != app.Label {
		app = setup.ArrayApp(true)
	}
	_, err = setup.FindApp(ctx, s, app, region)
	return err
}

// lookup finds variables that are no settings of ours: in the environment, else in
// the .env file.
func (a *app) lookup(envFile string) func(string) string {
	f, err := dotenv.Read(envFile)
	if err != nil { // told by its own check
		f = dotenv.Parse(nil)
	}
	return func(name string) string {
		for _, kv := range a.process.Environ {
			if k, v, _ := strings.Cut(kv, "="); k == name && v != "" {
				return v
			}
		}
		value, _ := f.Get(name)
		return value
	}
}

// runImageState is the state of the image that a run would take.
func runImageState(ctx context.Context, c config.Config, inspect inspectFunc) (string, error) {
	if ref := c.Run.Image; ref != "" {
		_, err := inspect(ctx, ref)
		switch {
		case errors.Is(err, image.ErrMissing):
			return imageMissing, nil
		case err != nil:
			return "", err
		}
		return imageFresh, nil
	}
	t, err := image.Parse(c.Run.Template)
	if err != nil {
		return "", err
	}
	state, _, err := imageState(ctx, t, inspect)
	return state, err
}

// haveAgentServer finds the agent server of this build for use; where there is no
// state directory to unpack it in, that is done aside.
func haveAgentServer(stateDir string, use func(path string) error) error {
	dir := filepath.Join(stateDir, "cache", "bin")
	if _, err := os.Stat(stateDir); err != nil {
		aside, err := os.MkdirTemp("", "insightscli-doctor-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(aside) }() // a leftover in the temporary directory harms nothing
		dir = aside
	}
	path, err := embedded.Unpack(dir, runtime.GOARCH)
	if errors.Is(err, embedded.ErrNone) {
		if path, err = embedded.Self(runtime.GOARCH); err != nil {
			err = errs.New("cli.agentServer", errs.Config, "make build", "%w", err)
		}
	}
	if err != nil {
		return err
	}
	return use(path)
}

// runnerState describes the background runner.
func runnerState(ctx context.Context, dir string) (string, error) {
	const op, hint = "cli.doctor", "insightscli stop; insightscli start -d"
	st, err := background.Client{Dir: dir, Version: build.Get().Version}.Status(ctx)
	switch {
	case errors.Is(err, background.ErrAbsent):
		return "none is at work; 'insightscli run -d' starts one", nil
	case err != nil:
		return "", errs.New(op, errs.Unavailable, hint, "the background runner does not answer: %w", err)
	case st.Version != build.Get().Version:
		return "", errs.New(op, errs.Conflict, hint, "the background runner, process %d, is of version %s, this program is %s",
			st.PID, st.Version, build.Get().Version)
	}
	return fmt.Sprintf("process %d, %s", st.PID, count(len(st.Runs), "run")), nil
}
