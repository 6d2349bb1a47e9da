package ghapp

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/test/fakegithub"
)

// testHandler is a session's handler whose code nobody takes.
func testHandler(t testing.TB, o Options) *handler {
	t.Helper()
	tr, err := newTrade(o)
	if err != nil {
		t.Fatal(err)
	}
	return newHandler(tr, "1234")
}

// ask sends one request to the handler, as a browser at host would.
func ask(h http.Handler, host, target string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	u, err := url.ParseRequestURI(target)
	if err != nil {
		u = &url.URL{Path: target}
	}
	r.URL, r.Host = u, host
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const testHost = "localhost:1234"

func callback(state, code string) string {
	return callbackPath + "?" + url.Values{"state": {state}, "code": {code}}.Encode()
}

// B1: a callback without the session's state is refused, its code is never used, and
// the right one is still taken.
func TestAForgedStateIsRefusedAndTheWaitGoesOn(t *testing.T) {
	t.Parallel()
	gh := fakegithub.New(t, fakegithub.Options{})
	var mu sync.Mutex
	var told []error
	o := Options{BaseURL: gh.URL, Notify: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err)
	}}
	done := make(chan struct{})
	o.Open = func(address string) error {
		defer close(done)
		base := strings.TrimSuffix(address, address[strings.LastIndex(address, "/"):])
		other := newStateKey()
		for _, query := range []string{
			"?code=stolen", "?code=stolen&state=", "?code=stolen&state=AAAA", "?code=stolen&state=" + other.issue(time.Now()), "?state=%zz", "",
		} {
			page, err := fakegithub.Get(t.Context(), base+callbackPath+query)
			if err != nil || page.Status != http.StatusForbidden {
				t.Errorf("%q: %d, %v", query, page.Status, err)
			}
		}
		if n := gh.Count(fakegithub.OpConversion); n != 0 {
			t.Errorf("%d codes were used", n)
		}
		_, err := fakegithub.Click(t.Context(), address)
		return err
	}
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r, err := s.Wait(t.Context()); err != nil || r.Slug == "" {
		t.Errorf("%+v, %v", r, err)
	}
	<-done
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 1 || !strings.Contains(told[0].Error(), "does not belong to this session") {
		t.Errorf("told %v", told)
	}
}

// B2: a state that is too old is not called forged, and is good for the hour that
// GitHub gives, and longer.
func TestAnExpiredStateIsNotAForgedOne(t *testing.T) {
	t.Parallel()
	var told error
	h := testHandler(t, Options{Notify: func(err error) { told = err }})
	start := time.Now()
	state := h.states.issue(start)
	if err := h.states.check(state, start.Add(time.Hour+time.Minute)); err != nil {
		t.Errorf("after an hour: %v", err)
	}
	h.now = func() time.Time { return start.Add(2 * time.Hour) }
	w := ask(h, testHost, callback(state, "code"))
	if body := w.Body.String(); w.Code != http.StatusGone || !strings.Contains(body, "expired") || !strings.Contains(body, h.path) {
		t.Errorf("%d\n%s", w.Code, body)
	}
	if told == nil || strings.Contains(told.Error(), "belong") || !strings.Contains(told.Error(), "too long ago") {
		t.Errorf("told %v", told)
	}
	if len(h.codes) != 0 {
		t.Error("the code was taken")
	}
}

// A tab that is loaded again, or twice at once, shows the same outcome; the code is
// used once. So does a second app that was created with the back button.
func TestARefreshedTabDoesNotConvertTwice(t *testing.T) {
	t.Parallel()
	h := testHandler(t, Options{})
	state := h.states.issue(time.Now())
	bodies := make(chan string, 3)
	var tabs sync.WaitGroup
	for _, code := range []string{"one", "one", "two"} {
		tabs.Go(func() { bodies <- ask(h, testHost, callback(state, code)).Body.String() })
	}
	first := <-h.codes
	h.finish(Result{Name: "the app"}, nil)
	tabs.Wait()
	again := ask(h, testHost, callback(state, first))
	for range 3 {
		if body := <-bodies; !strings.Contains(body, "the app is yours") {
			t.Error(body)
		}
	}
	if len(h.codes) != 0 || again.Code != http.StatusOK || !strings.Contains(again.Body.String(), "the app is yours") {
		t.Errorf("%d codes; %d %s", len(h.codes), again.Code, again.Body)
	}
	if form := ask(h, testHost, h.path).Body.String(); strings.Contains(form, "<form") {
		t.Error("the form is still there")
	}
}

// A refreshed tab after the conversion, over the wire, while the caller is still at
// work.
func TestTheOutcomeStaysUntilClose(t *testing.T) {
	t.Parallel()
	gh := fakegithub.New(t, fakegithub.Options{})
	pages := make(chan fakegithub.Page, 1)
	s, err := Start(t.Context(), Options{BaseURL: gh.URL, Open: func(address string) error {
		page, err := fakegithub.Click(t.Context(), address)
		pages <- page
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := <-pages
	again, err := fakegithub.Get(t.Context(), first.URL)
	if err != nil || again.Status != http.StatusOK || !strings.Contains(again.Body, gh.Apps()[0].Name) {
		t.Errorf("%v, %d\n%s", err, again.Status, again.Body)
	}
	if n := gh.Count(fakegithub.OpConversion); n != 1 {
		t.Errorf("%d conversions", n)
	}
	s.Close()
	if _, err := fakegithub.Get(t.Context(), first.URL); err == nil {
		t.Error("still served after Close")
	}
}

func TestWhoMayAskForWhat(t *testing.T) {
	t.Parallel()
	h := testHandler(t, Options{})
	good := callback(h.states.issue(time.Now()), "code")
	for _, tt := range []struct {
		name, host, target string
		status             int
	}{
		{"the page", testHost, h.path, 200},
		{"by number", "127.0.0.1:1234", h.path, 200},
		{"another port", "localhost:1235", h.path, 403},
		{"no port", "localhost", h.path, 403},
		{"a rebound name", "evil.example:1234", h.path, 403},
		{"a rebound name calls back", "evil.example:1234", good, 403},
		{"no host", "", h.path, 403},
		{"without the secret path", testHost, "/", 404},
		{"below the path", testHost, h.path + "/x", 404},
		{"a code with a space", testHost, callback(h.states.issue(time.Now()), "a b"), 400},
		{"a code that climbs", testHost, callback(h.states.issue(time.Now()), ".."), 400},
		{"no code", testHost, callback(h.states.issue(time.Now()), ""), 400},
		{"a long code", testHost, callback(h.states.issue(time.Now()), strings.Repeat("x", 257)), 400},
	} {
		if w := ask(h, tt.host, tt.target); w.Code != tt.status {
			t.Errorf("%s: %d, want %d", tt.name, w.Code, tt.status)
		}
	}
	r := httptest.NewRequest(http.MethodPost, good, strings.NewReader("x"))
	r.Host = testHost
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
	if len(h.codes) != 0 {
		t.Error("a code was taken")
	}
}

// The page may send its form to the one GitHub, run its one script, and nothing else.
func TestThePolicyOfThePage(t *testing.T) {
	t.Parallel()
	h := testHandler(t, Options{BaseURL: "https://git.example.com", Org: "acme", Name: `"><script>alert(1)</script>`})
	w := ask(h, testHost, h.path)
	policy := strings.Split(w.Header().Get("Content-Security-Policy"), "; ")
	for _, want := range []string{"default-src 'none'", "form-action https://git.example.com", "base-uri 'none'", "frame-ancestors 'none'"} {
		if !slices.Contains(policy, want) {
			t.Errorf("no %q in %q", want, policy)
		}
	}
	body := w.Body.String()
	if !strings.Contains(body, `action="https://git.example.com/organizations/acme/settings/apps/new?state=`) {
		t.Error(body)
	}
	if strings.Contains(body, "<script>") || strings.Count(body, "<script") != 1 || strings.Count(body, "<button") != 1 {
		t.Error(body)
	}
	if other := ask(h, testHost, h.path); other.Header().Get("Content-Security-Policy") == w.Header().Get("Content-Security-Policy") {
		t.Error("the nonce was used twice")
	}
	if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Referrer-Policy") != "strict-origin" {
		t.Errorf("%v", w.Header())
	}
}

// A code goes into a path: it stays one segment, whatever it is made of.
func TestTheCodeIsEscaped(t *testing.T) {
	t.Parallel()
	paths := make(chan string, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths <- r.URL.EscapedPath() + "?" + r.URL.RawQuery
		w.WriteHeader(http.StatusNotFound)
	}))
	defer api.Close()
	tr, err := newTrade(Options{BaseURL: api.URL, APIURL: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]string{
		"abc-DEF_1": "/app-manifests/abc-DEF_1/conversions?",
		"a/../b":    "/app-manifests/a%2F..%2Fb/conversions?",
		"a?b#c%2F":  "/app-manifests/a%3Fb%23c%252F/conversions?",
		"...x":      "/app-manifests/...x/conversions?",
	} {
		if _, err := tr.convert(t.Context(), code); err == nil || strings.Contains(err.Error(), code) {
			t.Errorf("%q: %v", code, err)
		}
		if got := <-paths; got != want {
			t.Errorf("%q: %s, want %s", code, got, want)
		}
	}
}

// FuzzCallback: whatever is sent to the session, no code is taken without its state,
// and the answer is a page.
func FuzzCallback(f *testing.F) {
	for _, seed := range [][2]string{
		{testHost, "/callback?code=a&state=b"},
		{testHost, "/callback?code=a&code=b&state=%00"},
		{"127.0.0.1:1234", "/callback?state=AAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
		{"evil:1234", "/callback"},
		{testHost, "/"},
		{testHost, "//callback"},
		{testHost, "/callback?%"},
		{testHost, "/callback;state=x?a;b"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, host, target string) {
		h := testHandler(t, Options{})
		w := ask(h, host, target)
		if len(h.codes) != 0 {
			t.Errorf("%q %q: a code was taken", host, target)
		}
		if w.Code < 400 {
			t.Errorf("%q %q: %d", host, target, w.Code)
		}
	})
}

// FuzzState: only a state that was issued is good.
func FuzzState(f *testing.F) {
	key := newStateKey()
	now := time.Now()
	f.Add(key.issue(now)[1:])
	f.Add("")
	f.Fuzz(func(t *testing.T, state string) {
		if err := key.check(state, now); err == nil {
			t.Errorf("%q is good", state)
		}
		if err := key.check(key.issue(now), now); err != nil {
			t.Error(err)
		}
	})
}
