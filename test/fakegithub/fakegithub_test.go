package fakegithub

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// complaints is a test that only writes down what a server reports to it.
type complaints struct {
	testing.TB
	mu  sync.Mutex
	all []string
}

func (c *complaints) Errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, fmt.Sprintf(format, args...))
}

func (c *complaints) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	said := strings.Join(c.all, "\n")
	c.all = nil
	return said
}

const good = `"name":"n","url":"http://localhost","redirect_url":"http://localhost:1/callback"`

// GitHub's rules for a manifest, which its description does not have.
func TestWhatIsNoManifest(t *testing.T) {
	t.Parallel()
	c := &complaints{TB: t}
	s := New(c, Options{})
	for text, says := range map[string]string{
		`{` + good + `}`: "",
		`{` + good + `,"default_permissions":{"contents":"write"},"default_events":["push"]}`: "",
		`{` + good + `,"hook_attributes":{"active":false}}`:                                   `"url" wasn't supplied`,
		`{"name":"n"}`: `"url" wasn't supplied`,
		`{` + good + `,"hook_attributes":{"url":"http://x","secret":"s"}}`:      "secret",
		`{` + good + `,"callback_url":"http://x"}`:                              "callback_url",
		`{` + good + `,"callback_urls":"http://x"}`:                             "callback_urls",
		`{` + good + `,"callback_urls":["` + strings.Repeat(`x","`, 10) + `"]}`: "more than ten",
		`{` + good + `,"setup_url":"localhost"}`:                                "not a valid URL",
		`{` + good + `,"default_permissions":{"contents":"admin"}}`:             "admin",
		`{` + good + `,"default_permissions":{"pull-requests":"write"}}`:        "pull-requests",
		``: "manifest",
	} {
		form := Form{Action: s.URL + "/settings/apps/new?state=x", Fields: url.Values{"manifest": {text}}}
		page, err := form.Post(t.Context())
		said := c.take()
		if err != nil || (says == "") != (page.Status == http.StatusOK) || !strings.Contains(said, says) || (says == "") != (said == "") {
			t.Errorf("%s: %d, %v, %q; want %q", text, page.Status, err, said, says)
		}
	}
	if page, err := Get(t.Context(), s.URL+"/settings/apps/new?manifest=%7B%7D"); err != nil || page.Status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d, %v", page.Status, err)
	}
}

func TestANameIsTakenOnce(t *testing.T) {
	t.Parallel()
	s := New(t, Options{})
	back := httptest.NewServer(http.NotFoundHandler())
	defer back.Close()
	submit := func(name string) Page {
		t.Helper()
		form := Form{Action: s.URL + "/settings/apps/new", Fields: url.Values{
			"manifest": {`{"name":"` + name + `","url":"http://localhost","redirect_url":"` + back.URL + `"}`},
		}}
		page, err := form.Post(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		create, err := page.Form()
		if err != nil {
			t.Fatal(err)
		}
		if page, err = create.Post(t.Context()); err != nil {
			t.Fatal(err)
		}
		return page
	}
	if page := submit("One App"); !strings.HasPrefix(page.URL, back.URL) {
		t.Errorf("%+v", page)
	}
	for name, says := range map[string]string{"one app": "already taken", strings.Repeat("x", 35): "too long", " ": "blank"} {
		if page := submit(name); !strings.Contains(page.Body, says) {
			t.Errorf("%q: %s", name, page.Body)
		}
	}
	if n := len(s.Apps()); n != 1 {
		t.Errorf("%d apps", n)
	}
}

// Requests that GitHub's description does not know are the test's fault.
func TestAWrongRequestIsReported(t *testing.T) {
	t.Parallel()
	c := &complaints{TB: t}
	s := New(c, Options{})
	for request, says := range map[string]string{
		"GET /app-manifests/x/conversions":         "method not allowed",
		"POST /app-manifests/a/b/conversions":      "no matching operation",
		"POST /app":                                "method not allowed",
		"POST /api/v3/app-manifests/x/conversions": "",
	} {
		method, path, _ := strings.Cut(request, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		page, err := visit(req)
		if said := c.take(); err != nil || page.Status != http.StatusNotFound || !strings.Contains(said, says) || (says == "") != (said == "") {
			t.Errorf("%s: %d, %v, %q", request, page.Status, err, said)
		}
	}
	body := strings.NewReader("{}")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/app-manifests/x/conversions", body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := visit(req); err != nil || !strings.Contains(c.take(), "a body of 2 bytes") {
		t.Errorf("a body: %v", err)
	}
}

// An answer that GitHub would never give is the fake's fault.
func TestAWrongAnswerIsReported(t *testing.T) {
	t.Parallel()
	s := New(t, Options{})
	r := httptest.NewRequest(http.MethodGet, "/app", nil)
	in, err := s.spec.request(r)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{"Content-Type": {"application/json"}}
	if err := s.spec.response(t.Context(), in, 200, h, []byte(`{"id":1,"slug":"x"}`)); err == nil || !strings.Contains(err.Error(), "node_id") {
		t.Errorf("a part of an app: %v", err)
	}
	if err := s.spec.response(t.Context(), in, 418, h, []byte(`{}`)); err == nil {
		t.Error("a status that GitHub does not have")
	}
}
