package ghapp

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/test/fakegithub"
)

func TestAnAppIsCreatedWithOneClick(t *testing.T) {
	t.Parallel()
	gh := fakegithub.New(t, fakegithub.Options{})
	got := create(t, gh, Options{Who: "Ada Lovelace"})
	if got.err != nil {
		t.Fatal(got.err)
	}
	app := gh.Apps()[0]
	r := got.result
	if r.ClientID != app.ClientID || r.ClientSecret.Reveal() != app.ClientSecret || r.Slug != app.Slug {
		t.Errorf("%+v", r)
	}
	if r.ID != app.ID || r.Owner != "octocat" || r.Name != app.Name || r.APIURL != gh.URL+"/api/v3" {
		t.Errorf("%+v", r)
	}
	if want := gh.URL + "/apps/" + app.Slug + "/installations/new"; r.InstallURL != want {
		t.Errorf("install at %s, want %s", r.InstallURL, want)
	}
	if _, key, err := readKey(r.PrivateKey); err != nil || !key.Equal(app.Key) {
		t.Errorf("the key: %v", err)
	}
	if got.page.Status != http.StatusOK || !strings.Contains(got.page.Body, app.Name) {
		t.Errorf("the tab shows %d\n%s", got.page.Status, got.page.Body)
	}
	if found, err := Verify(t.Context(), Check{
		ClientID: r.ClientID, PrivateKey: r.PrivateKey, APIURL: r.APIURL, Slug: r.Slug, Owner: r.Owner,
		Permissions: (&Options{}).Permissions(),
	}); err != nil || len(found.Differences) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// B7: GitHub refuses a webhook that is off and has no address, and makes apps public by
// default in other tools.
func TestTheManifest(t *testing.T) {
	t.Parallel()
	gh := fakegithub.New(t, fakegithub.Options{})
	got := create(t, gh, Options{Name: "My app", Org: "acme-inc", Issues: true, Workflows: true, Checks: true})
	if got.err != nil {
		t.Fatal(got.err)
	}
	app := gh.Apps()[0]
	m := app.Manifest
	if m.Public || m.HookAttributes != nil || !m.RequestOAuthOnInstall || !m.SetupOnUpdate || m.DefaultEvents != nil {
		t.Errorf("%+v", m)
	}
	if len(m.CallbackURLs) != 1 || m.CallbackURLs[0] != "http://localhost:8010/complete/github-link/" ||
		m.SetupURL != "http://localhost:8010/integrations/github/callback" {
		t.Errorf("%+v", m)
	}
	want := map[string]string{
		"contents": "write", "pull_requests": "write", "metadata": "read", "issues": "write", "workflows": "write",
		"checks": "read", "actions": "read", "statuses": "read",
	}
	if !maps.Equal(m.DefaultPermissions, want) {
		t.Errorf("permissions %v", m.DefaultPermissions)
	}
	if app.Owner != "acme-inc" || got.result.Owner != "acme-inc" || app.Name != "My app" {
		t.Errorf("%+v", app)
	}
}

// B8: the port of the callback may be taken; the product's own address stays.
func TestATakenPortIsReplaced(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	port := ln.Addr().(*net.TCPAddr).Port
	var notices []error
	gh := fakegithub.New(t, fakegithub.Options{})
	got := create(t, gh, Options{Port: port, Notify: func(err error) { notices = append(notices, err) }})
	if got.err != nil || len(notices) != 1 || errs.HintOf(notices[0]) == "" {
		t.Fatalf("%v, notices %v", got.err, notices)
	}
	m := gh.Apps()[0].Manifest
	if strings.Contains(m.RedirectURL, ln.Addr().String()[len("127.0.0.1"):]+"/") || m.SetupURL != DefaultSetupURL {
		t.Errorf("redirect %s, setup %s", m.RedirectURL, m.SetupURL)
	}
	if !strings.HasPrefix(got.page.URL, m.RedirectURL+"?") {
		t.Errorf("the browser ended at %s", got.page.URL)
	}
}

// B5: whatever form GitHub gives the key, what is stored is one that parses.
func TestEveryFormOfAKey(t *testing.T) {
	t.Parallel()
	pkcs1 := func(k *rsa.PrivateKey) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)}))
	}
	for name, form := range map[string]func(*rsa.PrivateKey) string{
		"CRLF":            func(k *rsa.PrivateKey) string { return strings.ReplaceAll(pkcs1(k), "\n", "\r\n") },
		"no last newline": func(k *rsa.PrivateKey) string { return strings.TrimSpace(pkcs1(k)) },
		"PKCS#8":          func(k *rsa.PrivateKey) string { return pkcs8(t, k) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gh := fakegithub.New(t, fakegithub.Options{PEM: form})
			got := create(t, gh, Options{})
			if got.err != nil {
				t.Fatal(got.err)
			}
			text := got.result.PrivateKey.Reveal()
			if _, key, err := readKey(got.result.PrivateKey); err != nil || !key.Equal(gh.Apps()[0].Key) {
				t.Errorf("%v", err)
			}
			if strings.Contains(text, "\r") || strings.TrimSpace(text) != text {
				t.Errorf("%q", text[:40])
			}
			if _, err := Verify(t.Context(), Check{ClientID: got.result.ClientID, PrivateKey: got.result.PrivateKey, APIURL: gh.URL}); err != nil {
				t.Error(err)
			}
		})
	}
}

func pkcs8(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// B4: whatever goes wrong with the exchange, nothing is written, and the user learns
// that the app may exist and where to delete it.
func TestALostAnswerSaysHowToRecover(t *testing.T) {
	t.Parallel()
	set := func(name string, value any) func(map[string]any) {
		return func(a map[string]any) { a[name] = value }
	}
	for name, tt := range map[string]struct {
		fault fakegithub.Fault
		kind  errs.Kind
		says  string
	}{
		"404":              {fakegithub.Fault{Status: 404, Message: "Not Found"}, errs.Conflict, "does not know the code"},
		"422":              {fakegithub.Fault{Status: 422, Message: "Validation Failed"}, errs.Conflict, "422 Validation Failed"},
		"403":              {fakegithub.Fault{Status: 403, Message: "no"}, errs.Conflict, "403 no"},
		"429":              {fakegithub.Fault{Status: 429, Message: "slow down"}, errs.Unavailable, "limits how often"},
		"rate limit":       {fakegithub.Fault{Status: 403, Message: "rate", Header: http.Header{"X-Ratelimit-Remaining": {"0"}}}, errs.Unavailable, "limits how often"},
		"500":              {fakegithub.Fault{Status: 500, Message: "oops"}, errs.Unavailable, "500 oops"},
		"redirect":         {fakegithub.Fault{Status: 301, Header: http.Header{"Location": {"/elsewhere"}}}, errs.Conflict, "301"},
		"a cut body":       {fakegithub.Fault{Cut: true}, errs.Unavailable, "was cut"},
		"null pem":         {fakegithub.Fault{Alter: set("pem", nil)}, errs.Incomplete, "no private key"},
		"a bad pem":        {fakegithub.Fault{Alter: set("pem", "None")}, errs.Incomplete, "is not PEM"},
		"a number as id":   {fakegithub.Fault{Alter: set("client_id", "123456")}, errs.Incomplete, `"123456"`},
		"no client id":     {fakegithub.Fault{Alter: set("client_id", nil)}, errs.Incomplete, "client ID"},
		"no client secret": {fakegithub.Fault{Alter: set("client_secret", nil)}, errs.Incomplete, "no client secret"},
		"no slug":          {fakegithub.Fault{Alter: set("slug", nil)}, errs.Incomplete, "no slug"},
		"other types":      {fakegithub.Fault{Alter: set("id", "x")}, errs.Incomplete, "not what was expected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gh := fakegithub.New(t, fakegithub.Options{})
			gh.Break(fakegithub.OpConversion, tt.fault)
			dir := t.TempDir()
			got := create(t, gh, Options{Name: "the-name", Org: "acme", Keep: filepath.Join(dir, "answer")})
			if got.err == nil || errs.KindOf(got.err) != tt.kind || !strings.Contains(got.err.Error(), tt.says) {
				t.Errorf("%s error %v, want %s %q", errs.KindOf(got.err), got.err, tt.kind, tt.says)
			}
			hint := errs.HintOf(got.err)
			if !strings.Contains(hint, `"the-name"`) || !strings.Contains(hint, gh.URL+"/organizations/acme/settings/apps") {
				t.Errorf("hint %q", hint)
			}
			if strings.Contains(got.err.Error()+hint, "PRIVATE KEY") || strings.ContainsAny(got.err.Error()+hint, "\n") {
				t.Errorf("%v\n%s", got.err, hint)
			}
			if n := gh.Count(fakegithub.OpConversion); n != 1 {
				t.Errorf("the code was used %d times", n)
			}
			if got.page.Status != http.StatusBadGateway || !strings.Contains(got.page.Body, "There is no app") {
				t.Errorf("the tab shows %d\n%s", got.page.Status, got.page.Body)
			}
			// What holds a key stays for a rescue; nothing else is left.
			left, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			rescue := tt.kind == errs.Incomplete && name != "null pem"
			if rescue != (len(left) == 1) || rescue != strings.Contains(hint, dir) {
				t.Errorf("left: %v; hint %q", left, hint)
			}
		})
	}
}

// The answer is on disk, for its owner only, before anything looks at it, and until the
// caller says that it is safe elsewhere.
func TestTheAnswerIsKeptUntilItIsConfirmed(t *testing.T) {
	t.Parallel()
	gh := fakegithub.New(t, fakegithub.Options{})
	path := filepath.Join(t.TempDir(), "answer")
	if _, found, err := Kept(path, gh.URL); found || err != nil {
		t.Fatalf("%v, %v", found, err)
	}
	o := Options{BaseURL: gh.URL, Keep: path, Notify: func(err error) { t.Error(err) }}
	o.Open = func(address string) error { _, err := fakegithub.Click(t.Context(), address); return err }
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if kept, found, err := Kept(path, gh.URL); !found || err != nil || kept != r {
		t.Errorf("%+v, %v, %v", kept, found, err)
	}
	// B10: a second session would make a second app while the first one waits.
	if _, err := Start(t.Context(), o); errs.KindOf(err) != errs.Conflict || errs.HintOf(err) == "" {
		t.Errorf("second session: %v", err)
	}
	for range 2 {
		if err := s.Confirm(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestAnAnswerNeverReplacesAnother(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answer")
	first, err := keep(path, []byte("first"))
	if err != nil || first != path {
		t.Fatalf("%q, %v", first, err)
	}
	second, err := keep(path, []byte("second"))
	if err == nil || second == path {
		t.Errorf("%q, %v", second, err)
	}
	for file, want := range map[string]string{first: "first", second: "second"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
}

func TestNothingStartsWithoutAPlaceForTheAnswer(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Keep: filepath.Join(t.TempDir(), "missing", "answer")})
	if errs.KindOf(err) != errs.Config || errs.HintOf(err) == "" {
		t.Error(err)
	}
}

func TestADamagedKeptAnswer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answer")
	if err := os.WriteFile(path, []byte(`{"pem":"x`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, found, err := Kept(path, ""); found || errs.KindOf(err) != errs.Config || errs.HintOf(err) == "" {
		t.Errorf("%v, %v", found, err)
	}
	if _, found, err := Kept(filepath.Dir(path), ""); found || errs.KindOf(err) != errs.Config {
		t.Errorf("%v, %v", found, err)
	}
}

// Ctrl-C ends the listener at once.
func TestAnInterruptEndsTheListener(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{Headless: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errs.New("", errs.Terminated, "", "SIGTERM"))
	if _, err = s.Wait(ctx); errs.KindOf(err) != errs.Terminated {
		t.Errorf("%s: %v", errs.KindOf(err), err)
	}
	if _, err := fakegithub.Get(t.Context(), s.URL()); err == nil {
		t.Error("the page is still served")
	}
	s.Close()
}

func TestNobodyClicks(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{Headless: true, Timeout: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err = s.Wait(t.Context()); errs.KindOf(err) != errs.Timeout || errs.HintOf(err) == "" {
		t.Error(err)
	}
}

// Without a browser the session goes on: the page can be opened from elsewhere.
func TestNoBrowser(t *testing.T) {
	t.Parallel()
	gh := fakegithub.New(t, fakegithub.Options{})
	told := make(chan error, 1)
	s, err := Start(t.Context(), Options{
		BaseURL: gh.URL, Open: func(string) error { return errors.New("no browser") }, Notify: func(err error) { told <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	clicked := make(chan error, 1)
	go func() {
		<-told
		_, err := fakegithub.Click(t.Context(), s.URL())
		clicked <- err
	}()
	if r, err := s.Wait(t.Context()); err != nil || r.Slug == "" {
		t.Errorf("%+v, %v", r, err)
	}
	if err := <-clicked; err != nil {
		t.Error(err)
	}
	if want := "ssh -N -L " + s.port + ":127.0.0.1:" + s.port + " devbox"; s.Forward("devbox") != want {
		t.Error(s.Forward("devbox"))
	}
}
