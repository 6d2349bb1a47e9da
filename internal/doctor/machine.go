package doctor

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/config"
)

// Machine is what is known about a machine and how to ask it. Functions return an
// error with a hint where something is wrong; they are called at the same time.
type Machine struct {
	Config config.Config
	// Lookup returns a variable that is no setting of ours, from the environment or the
	// .env file.
	Lookup func(name string) string

	EnvFile string // the .env file, or where there would be one
	Project string // the directory that holds services/
	State   string // the state directory, whether or not it is there

	// Stores reports why the state directory cannot be used; nil also where there is
	// none yet.
	Stores func(ctx context.Context) error
	// FlagOff returns the teams for whom the tasks flag is off.
	FlagOff func(ctx context.Context) ([]int64, error)
	// App reports whether an OAuth application is there: "Array" or "Insights AI".
	App func(ctx context.Context, label string) error
	// Runner describes the background runner, or tells what is wrong with it.
	Runner func(ctx context.Context) (string, error)

	// Built reports whether this build has a provider.
	Built       func(provider string) error
	Engine      func(ctx context.Context) (endpoint string, err error)
	Image       func(ctx context.Context) (state string, err error)
	Local       func(ctx context.Context) error
	AgentServer func(ctx context.Context) error

	// GitHub asks GitHub whether the key of the App is good, and how far the clock of
	// this machine is ahead of GitHub's; nil where there is no App.
	GitHub func(ctx context.Context) (slug string, behind time.Duration, err error)
	// Pending is the file with an answer of GitHub that is not in .env yet, or "".
	Pending string

	// Holder names the process that has a TCP port, "" if that cannot be told.
	Holder func(port string) string
}

// machine is a Machine whose slow answers are asked for once.
type machine struct {
	Machine
	engine func(ctx context.Context) (string, error)
	github func(ctx context.Context) (string, time.Duration, error)
}

func newMachine(m Machine) *machine {
	own := &machine{Machine: m}
	own.engine = once(func(ctx context.Context) (string, error) { return m.Engine(ctx) })
	type answer struct {
		slug   string
		behind time.Duration
	}
	github := once(func(ctx context.Context) (answer, error) {
		slug, behind, err := m.GitHub(ctx)
		return answer{slug, behind}, err
	})
	own.github = func(ctx context.Context) (string, time.Duration, error) {
		a, err := github(ctx)
		return a.slug, a.behind, err
	}
	return own
}

// once remembers an answer for those who ask at the same time. They share one bound,
// so the context of the first is everybody's.
func once[T any](ask func(context.Context) (T, error)) func(context.Context) (T, error) {
	var o sync.Once
	var got T
	var err error
	return func(ctx context.Context) (T, error) {
		o.Do(func() { got, err = ask(ctx) })
		return got, err
	}
}

// provider is the provider that a run would take.
func (m *machine) provider(ctx context.Context) (string, error) {
	name, err := m.Config.ChooseProvider()
	if err != nil || name != "" {
		return name, err
	}
	if _, err := m.engine(ctx); err != nil {
		return config.ProviderLocal, nil
	}
	return config.ProviderDocker, nil
}

// source tells where a setting was found, "default" if nowhere.
func (m *machine) source(name string) string {
	for _, v := range m.Config.Values() {
		if v.Name == name {
			return v.Source
		}
	}
	return "default"
}

// given reports whether somebody has set a setting.
func (m *machine) given(name string) bool { return m.source(name) != "default" }

// setupStep is the command that carries out one step of the set-up.
func setupStep(name string) string { return "insightscli setup-background-agents --only " + name }

func ok(text string) (Finding, error)      { return Finding{State: OK, Text: text}, nil }
func skipped(text string) (Finding, error) { return Finding{State: Skipped, Text: text}, nil }

func problem(fix string, text ...string) (Finding, error) {
	return Finding{State: Problem, Text: strings.Join(text, " "), Fix: fix}, nil
}

// Checks returns every question that there is, in the order in which they are shown.
func Checks(given Machine) []Check {
	m := newMachine(given)
	var all []Check
	for _, group := range [][]Check{m.settings(), m.sandboxes(), m.store(), m.accounts(), m.network()} {
		all = append(all, group...)
	}
	return all
}
