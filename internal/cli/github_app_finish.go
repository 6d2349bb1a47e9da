package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/Insights/insightscli/ghapp"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/setup/dotenv"
)

// appObject is the App in the output of --json. It holds no secret.
type appObject struct {
	Slug       string `json:"slug"`
	ClientID   string `json:"client_id"`
	Owner      string `json:"owner,omitempty"`
	HTMLURL    string `json:"html_url,omitempty"`
	InstallURL string `json:"install_url,omitempty"`
	EnvFile    string `json:"env_file"`
	Created    bool   `json:"created"`
	Verified   bool   `json:"verified"`
}

func (w *appWork) print(o appObject) error { return writeJSON(w.app.streams.Out, o) }

// finish stores the keys of a new App, and only then lets go of the copy; it verifies
// them and leads to the installation.
func (w *appWork) finish(ctx context.Context, r ghapp.Result, confirm func() error) error {
	if err := w.store(ctx, r); err != nil {
		return errs.New("cli.createGitHubApp", errs.Incomplete, "correct it and run insightscli create-github-app again: the keys are kept",
			"GitHub made the App %s, and its keys are not in .env: %w", r.Slug, err)
	}
	if err := confirm(); err != nil {
		return err
	}
	o := appObject{
		Slug: r.Slug, ClientID: r.ClientID, Owner: r.Owner, HTMLURL: r.HTMLURL, InstallURL: r.InstallURL, EnvFile: w.env, Created: true,
	}
	asked := w.options()
	found, verifyErr := ghapp.Verify(ctx, ghapp.Check{
		ClientID: r.ClientID, PrivateKey: r.PrivateKey, AppID: r.ID, APIURL: r.APIURL, Fresh: true,
		Slug: r.Slug, Permissions: asked.Permissions(), Client: w.client,
	})
	o.Verified = verifyErr == nil
	w.tell(r, found, o)
	if w.json {
		if err := w.print(o); err != nil {
			return err
		}
	}
	if verifyErr != nil {
		return errs.New("cli.createGitHubApp", errs.Incomplete, "insightscli create-github-app --check",
			"the App is in %s and could not be verified: %w", w.env, verifyErr)
	}
	return nil
}

// store writes the four values.
func (w *appWork) store(ctx context.Context, r ghapp.Result) error {
	text := values(r)
	_, err := dotenv.Edit(context.WithoutCancel(ctx), w.env, func(f *dotenv.File) error {
		f.Heading("GitHub App " + r.Slug + ", created by insightscli create-github-app on " + time.Now().Format(time.DateOnly))
		for _, name := range appNames() {
			if err := f.Set(name, text[name]); err != nil {
				return err
			}
			f.Heading("")
		}
		return w.storeGitHub(f)
	})
	return err
}

// storeGitHub writes which GitHub the App is on, unless nobody would ask.
func (w *appWork) storeGitHub(f *dotenv.File) error {
	if at := w.github(); at != "" || w.lookup(appGitHub) != "" {
		return f.Set(appGitHub, cmp.Or(at, "https://github.com"))
	}
	return nil
}

// tell says what was done and what comes next, and opens the page for it.
func (w *appWork) tell(r ghapp.Result, found ghapp.App, o appObject) {
	names := appNames()
	if w.github() != "" {
		names = append(names, appGitHub)
	}
	w.app.notef("wrote %s to %s", strings.Join(names, ", "), w.env)
	for _, name := range appNames() {
		if v := environValue(w.app.process.Environ, name); v != "" && v != values(r)[name] {
			w.app.notef("note: the environment has another %s, which comes before .env", name)
		}
	}
	if o.Verified {
		w.app.notef("GitHub accepts the key of %s", r.Slug)
		w.differences(found)
	}
	if !w.json {
		fmt.Fprintf(w.app.streams.Out, "%s\n", oneLine(r.InstallURL))
	}
	w.app.notef("install the App on your repositories: %s", r.InstallURL)
	if w.headless() {
		return
	}
	// The command that opens a page may last as long as the browser.
	opened := make(chan error, 1)
	go func() { opened <- w.open(r.InstallURL) }()
	select {
	case err := <-opened:
		if err != nil {
			w.app.notef("note: %v", err)
		}
	case <-time.After(browserStart):
	}
}

// browserStart is how long a browser may take to refuse.
const browserStart = 2 * time.Second

func (w *appWork) differences(found ghapp.App) {
	for _, d := range found.Differences {
		have := d.Have
		if have == "" {
			have = "not set"
		}
		w.app.notef("note: %s of the App is %s, wanted %s", d.What, have, d.Want)
	}
	if found.Skew != 0 {
		w.app.notef("note: the clock of this machine is %s", ghapp.Ahead(found.Skew))
	}
}

// forget removes the copy of GitHub's answer that an earlier run left.
func (w *appWork) forget() error {
	if err := os.Remove(w.keep); err != nil {
		return errs.New("cli.createGitHubApp", errs.Incomplete, "remove "+w.keep, "%w", err)
	}
	return nil
}

// verifyThere asks GitHub about the App that is set.
func (w *appWork) verifyThere(ctx context.Context) error {
	const op, hint = "cli.createGitHubApp", "insightscli create-github-app"
	lack := missing(w.lookup, appNames()...)
	switch {
	case len(lack) == len(appNames()):
		return errs.New(op, errs.Config, hint, "there is no GitHub App")
	case len(lack) > 0:
		return errs.New(op, errs.Config, "copy them from the settings of the App", "missing: %s", strings.Join(lack, ", "))
	}
	id := w.lookup(appClientID)
	asked := w.options()
	found, err := ghapp.Verify(ctx, ghapp.Check{
		ClientID: id, PrivateKey: secret.New(w.lookup(appKey)), APIURL: apiURL(w.githubURL),
		Slug: w.lookup(appSlug), Permissions: asked.Permissions(), Client: w.client,
	})
	if err == nil {
		err = ghapp.VerifySecret(ctx, id, secret.New(w.lookup(appSecret)), w.githubURL, w.client)
	}
	if err != nil {
		return err
	}
	if w.json {
		return w.print(appObject{Slug: found.Slug, ClientID: id, Owner: found.Owner, HTMLURL: found.HTMLURL, EnvFile: w.env, Verified: true})
	}
	w.app.notef("GitHub accepts the key and the client secret of %s (%s, %s)", found.Slug, found.Owner, count(found.Installations, "installation"))
	w.differences(found)
	return nil
}

// apiURL is the API of a GitHub: a host of its own for a tenant of ghe.com, a path of a
// GitHub Enterprise Server.
func apiURL(base string) string {
	base = strings.TrimRight(base, "/")
	scheme, host, ok := strings.Cut(base, "://")
	if !ok {
		scheme, host = "https", base
	}
	switch host = strings.ToLower(host); {
	case host == "", host == "github.com", host == "www.github.com":
		return ""
	case strings.HasSuffix(host, ".ghe.com"):
		return scheme + "://api." + host
	}
	return scheme + "://" + host + "/api/v3"
}

// maxPaste bounds what is read of somebody's answer.
const maxPaste = 64 << 10

// readLine reads one line, or ends with ctx; nothing can end a read of a terminal, so
// nobody waits for it then.
func readLine(ctx context.Context, in *bufio.Reader) (string, error) {
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		text, err := in.ReadString('\n')
		got <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case a := <-got:
		if errors.Is(a.err, io.EOF) && strings.TrimSpace(a.text) != "" {
			a.err = nil
		}
		if a.err != nil {
			return "", errs.New("cli.createGitHubApp", errs.Usage, "paste the address, or the code in it, and press Enter", "nothing was pasted")
		}
		return a.text, nil
	}
}
