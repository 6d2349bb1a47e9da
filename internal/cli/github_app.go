package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/Insights/insightscli/ghapp"
	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/setup"
	"github.com/Insights/insightscli/setup/dotenv"
)

// keptApp is the file in the state directory that holds what GitHub answered until
// the keys are in .env.
const keptApp = "github-app.json"

// pendingApp is the path of that file where there is one.
func pendingApp(stateDir string) string {
	path := filepath.Join(stateDir, keptApp)
	if _, err := os.Lstat(path); err != nil {
		return ""
	}
	return path
}

// The variables of a GitHub App.
const (
	appClientID = "GITHUB_APP_CLIENT_ID"
	appSecret   = "GITHUB_APP_CLIENT_SECRET"
	appSlug     = "GITHUB_APP_SLUG"
	appKey      = "GITHUB_APP_PRIVATE_KEY"
	appGitHub   = "INSIGHTS_GITHUB_URL" // where it is not github.com
)

func appNames() []string { return []string{appClientID, appSecret, appSlug, appKey} }

// missing returns those of the names that have no value.
func missing(lookup func(string) string, names ...string) []string {
	var list []string
	for _, name := range names {
		if lookup(name) == "" {
			list = append(list, name)
		}
	}
	return list
}

// notef tells somebody what happens, on standard error.
func (a *app) notef(format string, args ...any) {
	fmt.Fprintf(a.streams.Err, "%s\n", oneLine(fmt.Sprintf(format, args...)))
}

// appWork is one run of create-github-app.
type appWork struct {
	*githubAppOptions
	keep    string // the file for GitHub's answer
	env     string // the .env file
	lookup  func(name string) string
	client  *http.Client
	machine config.Machine
}

func (o *githubAppOptions) work() (*appWork, error) {
	c, err := o.app.config(nil)
	if err != nil {
		return nil, err
	}
	dir, err := c.StateDir()
	if err != nil {
		return nil, err
	}
	if o.githubURL == "" {
		o.githubURL = c.GitHub()
	}
	w := &appWork{githubAppOptions: o, keep: filepath.Join(dir, keptApp), client: githubClient(c.Machine), machine: c.Machine}
	if w.env, _ = config.EnvFile(o.app.process.Dir); o.envFile != "" {
		w.env = o.app.local(o.envFile)
	}
	if _, err := dotenv.Read(w.env); err != nil {
		return nil, err
	}
	w.lookup = o.app.lookup(w.env)
	return w, nil
}

// githubBound bounds one request to GitHub.
const githubBound = 30 * time.Second

// githubClient asks through the proxy that the settings name.
func githubClient(m config.Machine) *http.Client {
	proxy := (&httpproxy.Config{HTTPProxy: m.HTTPProxy.Reveal(), HTTPSProxy: m.HTTPSProxy.Reveal(), NoProxy: m.NoProxy}).ProxyFunc()
	return &http.Client{Timeout: githubBound, Transport: &http.Transport{
		Proxy:             func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
		ForceAttemptHTTP2: true,
	}}
}

// there reports whether there is an App already, which is the end of it then.
func (w *appWork) there() (bool, error) {
	lack := missing(w.lookup, appNames()...)
	switch {
	case w.force:
		return false, nil
	case len(lack) == 0:
		if w.json {
			return true, w.print(appObject{Slug: w.lookup(appSlug), ClientID: w.lookup(appClientID), EnvFile: w.env})
		}
		w.app.notef("there is an App already: %s; --check verifies it, --force creates another", w.lookup(appSlug))
		return true, nil
	case len(lack) < len(appNames()):
		return true, errs.New("cli.createGitHubApp", errs.Conflict,
			"copy them from the settings of the App, or create another one: insightscli create-github-app --force",
			"an App is set without %s", strings.Join(lack, ", "))
	}
	return false, nil
}

// prepare sees, before anything is created, that what comes of it can be stored.
func (w *appWork) prepare() error {
	if err := dotenv.MayEdit(w.env); err != nil {
		return err
	}
	asked := w.options()
	asked.Keep = ""
	if _, err := ghapp.Manual(asked); err != nil { // asks nobody: it looks at the options
		return err
	}
	if err := os.MkdirAll(filepath.Dir(w.keep), 0o700); err != nil {
		return errs.New("cli.createGitHubApp", errs.Config, "set INSIGHTSCLI_STATE_DIR to a directory on a local disk", "%w", err)
	}
	return nil
}

func (w *appWork) options() ghapp.Options {
	return ghapp.Options{
		Org: w.org, BaseURL: w.githubURL, Name: w.name, Who: filepath.Base(w.machine.Home),
		Issues: w.issues, Workflows: w.workflows, Checks: w.checks,
		Keep: w.keep, Headless: w.headless(), Open: w.open, Timeout: w.timeout, Client: w.client,
		Notify: w.note,
	}
}

// note tells of what does not end the run, and what to do about it.
func (w *appWork) note(err error) {
	text := err.Error()
	if hint := errs.HintOf(err); hint != "" {
		text += "; " + hint
	}
	w.app.notef("note: %s", text)
}

// headless reports whether no browser is to be opened: nobody is there, or sits at
// another machine.
func (w *appWork) headless() bool {
	return w.noBrowser || !w.app.streams.ErrTTY || w.sshHost() != ""
}

// sshHost is this machine as somebody who came by SSH sees it.
func (w *appWork) sshHost() string {
	f := strings.Fields(environValue(w.app.process.Environ, "SSH_CONNECTION")) // client, port, server, port
	if len(f) != 4 {
		return ""
	}
	return f[2]
}

// create waits for the click in a browser.
func (w *appWork) create(ctx context.Context) error {
	s, err := ghapp.Start(ctx, w.options())
	if err != nil {
		return err
	}
	defer s.Close()
	if w.headless() {
		host := w.sshHost()
		if host == "" {
			host, _ = os.Hostname() // without a name the line says so
		}
		w.app.notef("open %s in a browser on this machine", s.URL())
		w.app.notef("from another machine, first: %s", s.Forward(host))
	} else {
		w.app.notef("opening %s", s.URL())
	}
	w.app.notef("waiting for the click on \"Create GitHub App\"; Ctrl-C ends it")
	r, err := s.Wait(ctx)
	if err != nil {
		return err
	}
	return w.finish(ctx, r, s.Confirm)
}

// manualPage is the page of --manual, in the working directory.
const manualPage = "create-github-app.html"

// createManually takes what somebody pastes.
func (w *appWork) createManually(ctx context.Context) error {
	m, err := ghapp.Manual(w.options())
	if err != nil {
		return err
	}
	page := w.app.local(manualPage)
	if err := writeNew(page, m.Page()); err != nil {
		return err
	}
	defer func() { _ = os.Remove(page) }() // it is of no use any more
	w.app.notef("open %s in any browser and click; then paste the address on which GitHub ends:", page)
	r, err := w.pasted(ctx, m)
	if err != nil {
		return err
	}
	return w.finish(ctx, r, m.Confirm)
}

// pasted takes lines until one is the address that is wanted: the App is on GitHub by
// then, and a slip of the hand must not lose it.
func (w *appWork) pasted(ctx context.Context, m *ghapp.ManualSession) (ghapp.Result, error) {
	in := bufio.NewReader(io.LimitReader(w.app.streams.In, maxPaste))
	var wrong error
	for {
		text, err := readLine(ctx, in)
		if err != nil {
			return ghapp.Result{}, cmp.Or(wrong, err)
		}
		r, err := m.Finish(ctx, text)
		if errs.KindOf(err) != errs.Usage {
			return r, err
		}
		wrong = err
		w.note(err)
	}
}

// writeNew writes a file that is not there yet.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return errs.New("cli.createGitHubApp", errs.Conflict, "remove "+path, "%s is there already", path)
	}
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return errs.New("cli.createGitHubApp", errs.Config, "run it in a directory that you can write to", "write the page: %w", err)
	}
	return nil
}

// values are the variables of an App.
func values(r ghapp.Result) map[string]string {
	return map[string]string{
		appClientID: r.ClientID, appSecret: r.ClientSecret.Reveal(), appSlug: r.Slug, appKey: r.PrivateKey.Reveal(),
	}
}

// github is the GitHub that was given, where it is another than github.com, or "".
func (w *appWork) github() string {
	if apiURL(w.githubURL) == "" {
		return ""
	}
	if strings.Contains(w.githubURL, "://") {
		return strings.TrimRight(w.githubURL, "/")
	}
	return "https://" + strings.TrimRight(w.githubURL, "/")
}

// appStep is the step github-app of the set-up.
func (o *setupOptions) appStep(lookup func(string) string) setup.GitHubApp {
	return setup.GitHubApp{
		Missing: missing(lookup, appNames()...),
		Create: func(ctx context.Context) (string, error) {
			err := runCreateGitHubApp(ctx, &githubAppOptions{
				app: o.app, open: ghapp.OpenBrowser, timeout: time.Hour, envFile: o.envFile,
			})
			return "its four values are in " + o.path(), err
		},
	}
}

// githubCheck asks GitHub about the App of the settings, for doctor.
func githubCheck(c config.Config) func(ctx context.Context) (string, time.Duration, error) {
	return func(ctx context.Context) (string, time.Duration, error) {
		found, err := ghapp.Verify(ctx, ghapp.Check{
			ClientID: c.Account.GitHubClientID, PrivateKey: secret.New(c.Account.GitHubPrivateKey.Reveal()),
			APIURL: apiURL(c.GitHub()), Client: githubClient(c.Machine),
		})
		return found.Slug, found.Skew, err
	}
}

// appInstructions say how to make a GitHub App by hand.
func appInstructions(envFile string) string {
	return `A GitHub App lets agents publish what they did. 'insightscli create-github-app' makes
one with a single click. By hand:

  1. GitHub, Settings, Developer Settings, GitHub Apps, New GitHub App
     (https://github.com/settings/apps/new)
  2. Setup URL, not the Callback or Homepage URL:
     ` + ghapp.DefaultSetupURL + `
  3. Callback URL: ` + ghapp.DefaultCallbackURL + `
  4. Permissions: Contents and Pull requests, read and write; Metadata, read;
     Issues and Workflows, read and write, are optional. No webhook.
  5. Check "Request user authorization (OAuth) during installation"
  6. Generate a client secret
  7. Generate a private key
  8. Install the App on your repositories
  9. Put into ` + envFile + `, with the Client ID (Iv1... or Iv23...), not the App ID:
     GITHUB_APP_CLIENT_ID, GITHUB_APP_CLIENT_SECRET, GITHUB_APP_SLUG,
     GITHUB_APP_PRIVATE_KEY (lines joined by \n are fine)

`
}
