package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/term"
	"github.com/Insights/insightscli/setup/dotenv"
	"github.com/Insights/insightscli/test/fakegithub"
)

// desk is somebody at a terminal in a project.
type desk struct {
	app      *app
	dir      string
	out, err *bytes.Buffer
	github   *fakegithub.Server

	mu     sync.Mutex
	opened []string
}

func newDesk(t *testing.T, environ ...string) *desk {
	t.Helper()
	dir := t.TempDir()
	streams, _, out, errOut := term.Test()
	streams.InTTY, streams.ErrTTY = true, true
	environ = append([]string{"HOME=" + dir, "INSIGHTSCLI_STATE_DIR=" + filepath.Join(dir, "state")}, environ...)
	d := &desk{dir: dir, out: out, err: errOut, github: fakegithub.New(t, fakegithub.Options{})}
	d.app = newApp(Process{Streams: streams, Dir: dir, Environ: environ})
	t.Cleanup(func() {
		if err := d.app.close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// options are those of a run whose browser belongs to somebody who clicks.
func (d *desk) options() *githubAppOptions {
	return &githubAppOptions{app: d.app, githubURL: d.github.URL, timeout: time.Hour, open: func(address string) error {
		if !d.first(address) {
			return nil
		}
		_, err := fakegithub.Click(context.Background(), address)
		return err
	}}
}

// first notes a page that is opened, and reports whether it is the first.
func (d *desk) first(address string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened = append(d.opened, address)
	return len(d.opened) == 1
}

func (d *desk) path(name string) string { return filepath.Join(d.dir, name) }

// env reads .env.
func (d *desk) env(t *testing.T) *dotenv.File {
	t.Helper()
	f, err := dotenv.Read(d.path(".env"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCreateGitHubAppStoresWhatAClickMade(t *testing.T) {
	d := newDesk(t)
	o := d.options()
	o.issues = true
	if err := runCreateGitHubApp(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	made := d.github.Apps()[0]
	f := d.env(t)
	for name, want := range map[string]string{appClientID: made.ClientID, appSecret: made.ClientSecret, appSlug: made.Slug} {
		if got, _ := f.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if key, _ := f.Get(appKey); !strings.HasPrefix(key, "-----BEGIN RSA PRIVATE KEY-----\n") {
		t.Errorf("%s is not a key", appKey)
	}
	if made.Permissions["issues"] != "write" {
		t.Errorf("permissions %v", made.Permissions)
	}
	install := d.github.URL + "/apps/" + made.Slug + "/installations/new"
	if len(d.opened) != 2 || d.opened[1] != install || d.out.String() != install+"\n" {
		t.Errorf("opened %v, printed %q", d.opened, d.out)
	}
	if _, err := os.Stat(d.path("state/" + keptApp)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy of the answer is still there: %v", err)
	}
	for _, told := range []*bytes.Buffer{d.out, d.err} {
		if strings.Contains(told.String(), made.ClientSecret) || strings.Contains(told.String(), "PRIVATE KEY-----") {
			t.Errorf("it printed a secret: %s", told)
		}
	}
}

// Where the App is is stored with it, so that nobody has to say it again.
func TestCreateGitHubAppStoresWhereItIs(t *testing.T) {
	d := newDesk(t)
	if err := runCreateGitHubApp(t.Context(), d.options()); err != nil {
		t.Fatal(err)
	}
	if got, _ := d.env(t).Get(appGitHub); got != d.github.URL || !strings.Contains(d.err.String(), appGitHub) {
		t.Errorf("%s is %q: %s", appGitHub, got, d.err)
	}
	o := d.options()
	o.githubURL, o.check = "", true
	if err := runCreateGitHubApp(t.Context(), o); err != nil || !strings.Contains(d.err.String(), "GitHub accepts the key and the client secret") {
		t.Errorf("%v: %s", err, d.err)
	}
	c, err := d.app.config(nil)
	if err != nil {
		t.Fatal(err)
	}
	if slug, _, err := githubCheck(c)(t.Context()); err != nil || slug != d.github.Apps()[0].Slug {
		t.Errorf("doctor finds %q: %v", slug, err)
	}
}

func TestCreateGitHubAppLeavesTheOneThatIsThere(t *testing.T) {
	d := newDesk(t)
	for range 2 {
		if err := runCreateGitHubApp(t.Context(), d.options()); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.github.Count(fakegithub.OpConversion); n != 1 {
		t.Errorf("%d Apps were made", n)
	}
	d.opened = nil
	o := d.options()
	o.force = true
	if err := runCreateGitHubApp(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got, _ := d.env(t).Get(appClientID); got != d.github.Apps()[1].ClientID {
		t.Errorf("--force left %s in .env", got)
	}
}

// The key is shown once: when .env cannot be written, the next run has it.
func TestCreateGitHubAppGoesOnWithAnAppThatWasNotStored(t *testing.T) {
	d := newDesk(t)
	o := d.options()
	click := o.open
	o.open = func(address string) error {
		return errors.Join(os.Mkdir(d.path(".env"), 0o700), click(address))
	}
	err := runCreateGitHubApp(t.Context(), o)
	if errs.KindOf(err) != errs.Incomplete || !strings.Contains(errs.HintOf(err), "again") {
		t.Fatalf("%v, %s", err, errs.HintOf(err))
	}
	kept := d.path("state/" + keptApp)
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Fatalf("%v, %v", info, err)
	}
	if pendingApp(d.path("state")) != kept {
		t.Error("doctor would not see it")
	}
	if err := os.Remove(d.path(".env")); err != nil {
		t.Fatal(err)
	}
	if err := runCreateGitHubApp(t.Context(), d.options()); err != nil {
		t.Fatal(err)
	}
	if got, _ := d.env(t).Get(appClientID); got != d.github.Apps()[0].ClientID || d.github.Count(fakegithub.OpConversion) != 1 {
		t.Errorf("%q in .env, %d codes were traded", got, d.github.Count(fakegithub.OpConversion))
	}
	if _, err := os.Stat(kept); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is still there: %v", err)
	}
}

func TestCreateGitHubAppWritesNothingWhenGitHubGivesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		fault fakegithub.Fault
		kind  errs.Kind
	}{
		"used code": {fakegithub.Fault{Status: 404}, errs.Conflict},
		"refused":   {fakegithub.Fault{Status: 422}, errs.Conflict},
		"too often": {fakegithub.Fault{Status: 429}, errs.Unavailable},
		"broken":    {fakegithub.Fault{Status: 500}, errs.Unavailable},
		"cut":       {fakegithub.Fault{Cut: true}, errs.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.github.Break(fakegithub.OpConversion, tt.fault)
			err := runCreateGitHubApp(t.Context(), d.options())
			if errs.KindOf(err) != tt.kind || !strings.Contains(errs.HintOf(err), "delete it at") {
				t.Errorf("%v (%s), %s", err, errs.KindOf(err), errs.HintOf(err))
			}
			if _, err := os.Stat(d.path(".env")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf(".env: %v", err)
			}
		})
	}
}

func TestCreateGitHubAppTellsAnAppThatCouldNotBeVerified(t *testing.T) {
	d := newDesk(t)
	o := d.options()
	o.json = true
	d.github.Break(fakegithub.OpApp, fakegithub.Fault{Status: 403})
	err := runCreateGitHubApp(t.Context(), o)
	if errs.KindOf(err) != errs.Incomplete || errs.HintOf(err) != "insightscli create-github-app --check" {
		t.Errorf("%v, %s", err, errs.HintOf(err))
	}
	if !strings.Contains(d.out.String(), `"verified": false`) {
		t.Errorf("%s", d.out)
	}
}

func TestCreateGitHubAppChecksWhatIsThere(t *testing.T) {
	d := newDesk(t)
	if err := runCreateGitHubApp(t.Context(), d.options()); err != nil {
		t.Fatal(err)
	}
	o := d.options()
	o.check = true
	if err := runCreateGitHubApp(t.Context(), o); err != nil {
		t.Error(err)
	}
	_, err := dotenv.Edit(t.Context(), d.path(".env"), func(f *dotenv.File) error { return f.Set(appSecret, "of another App") })
	if err != nil {
		t.Fatal(err)
	}
	if err := runCreateGitHubApp(t.Context(), o); errs.KindOf(err) != errs.Auth {
		t.Errorf("a wrong client secret: %v", err)
	}
}

// paste is somebody who opens the page elsewhere, and pastes where that ends: nothing
// answers there.
type paste struct {
	d    *desk
	text io.Reader
}

func (p *paste) Read(b []byte) (int, error) {
	if p.text == nil {
		elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeFile(w, r, p.d.path(manualPage))
		}))
		defer elsewhere.Close()
		_, err := fakegithub.Click(context.Background(), elsewhere.URL)
		var at *url.Error
		if !errors.As(err, &at) {
			return 0, errors.Join(errors.New("the browser did not end on a dead address"), err)
		}
		p.text = strings.NewReader(at.URL + "\n")
	}
	return p.text.Read(b)
}

func TestCreateGitHubAppByHand(t *testing.T) {
	d := newDesk(t)
	o := d.options()
	o.manual = true
	d.app.streams.In = &paste{d: d}
	d.app.streams.InTTY, d.app.streams.ErrTTY = false, false
	if err := runCreateGitHubApp(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got, _ := d.env(t).Get(appSlug); got != d.github.Apps()[0].Slug {
		t.Errorf("%q in .env", got)
	}
	if _, err := os.Stat(d.path(manualPage)); !errors.Is(err, os.ErrNotExist) || len(d.opened) > 0 {
		t.Errorf("the page: %v; opened %v", err, d.opened)
	}
}

// A slip of the hand does not end it: the App is on GitHub by then.
func TestCreateGitHubAppTakesAnotherPaste(t *testing.T) {
	d := newDesk(t)
	o := d.options()
	o.manual = true
	d.app.streams.In = io.MultiReader(strings.NewReader("oops\nhttp://localhost:47013/callback?code=abcdefabcdef&state=forged\n"), &paste{d: d})
	if err := runCreateGitHubApp(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(d.err.String(), "note: what was pasted"); n != 2 || d.github.Count(fakegithub.OpConversion) != 1 {
		t.Errorf("%d notes: %s", n, d.err)
	}
	d = newDesk(t)
	o = d.options()
	o.manual = true
	d.app.streams.In = strings.NewReader("oops\n")
	if err := runCreateGitHubApp(t.Context(), o); errs.KindOf(err) != errs.Usage || !strings.Contains(err.Error(), "has no code") {
		t.Errorf("at the end of what was pasted: %v", err)
	}
}

// Without a browser the note says what to do.
func TestCreateGitHubAppTellsThatNoBrowserOpened(t *testing.T) {
	d := newDesk(t)
	o := d.options()
	click := o.open
	o.open = func(address string) error {
		err := errs.New("ghapp.OpenBrowser", errs.Unavailable, "open "+address+" yourself", "open a browser: there is none")
		return errors.Join(click(address), err)
	}
	if err := runCreateGitHubApp(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := d.err.String(); !strings.Contains(got, "note: open a browser: there is none") {
		t.Errorf("%s", got)
	}
}

func TestCreateGitHubAppEndsWithItsContext(t *testing.T) {
	d := newDesk(t, "SSH_CONNECTION=192.0.2.1 50000 192.0.2.7 22")
	ctx, cancel := context.WithCancelCause(t.Context())
	o := d.options()
	d.app.streams.Err = onWrite(func(text string) {
		if strings.HasPrefix(text, "waiting") {
			cancel(errs.New("cli.Main", errs.Canceled, "", "interrupted"))
		}
		d.err.WriteString(text)
	})
	if err := runCreateGitHubApp(ctx, o); errs.KindOf(err) != errs.Canceled {
		t.Errorf("%v", err)
	}
	if !strings.Contains(d.err.String(), "ssh -N -L ") || !strings.Contains(d.err.String(), " 192.0.2.7\n") || len(d.opened) > 0 {
		t.Errorf("%s, opened %v", d.err, d.opened)
	}
}

// onWrite is told what is written.
type onWrite func(text string)

func (f onWrite) Write(b []byte) (int, error) {
	f(string(b))
	return len(b), nil
}
