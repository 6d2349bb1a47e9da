package cli

import (
	"context"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/term"
)

// app is what the commands share. Making one opens nothing: every dependency is
// opened by the first command that asks for it, and closed by Main.
type app struct {
	process Process
	streams *term.Streams
	debug   bool   // --debug
	state   *state // once opened; see openState
	made    *providers
	repos   *repo.Cache     // once asked for; see repoCache
	minted  []secret.String // by GitHub, for the look at repositories; a run takes them over
	revoke  func(context.Context, secret.String)

	wiring
}

func newApp(p Process) *app {
	a := &app{process: p, streams: p.Streams}
	a.wiring = defaultWiring(a)
	return a
}

// config reads the settings; flags are those given on the command line, by the
// name of the setting.
func (a *app) config(flags map[string]string) (config.Config, error) {
	return config.Load(config.LoadOptions{Environ: a.process.Environ, Dir: a.process.Dir, Flags: flags})
}

// providersFor returns the providers; whoever asks first makes them, and nothing is
// contacted by that.
func (a *app) providersFor(c config.Config) *providers {
	if a.made == nil {
		dir, _ := c.StateDir() // without one no provider is asked for a sandbox
		a.made = newProviders(c, dir)
	}
	return a.made
}

// close closes what was opened.
func (a *app) close() error {
	switch {
	case a.state != nil:
		return a.state.close() // the providers, too
	case a.made != nil:
		return a.made.close()
	}
	return nil
}
