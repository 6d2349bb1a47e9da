package ghapp

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/test/fakegithub"
)

// clickFile opens a file in a browser, somewhere, creates the app, and returns the
// address on which that ends: nothing listens there.
func clickFile(t *testing.T, file []byte) string {
	t.Helper()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(file) }))
	defer elsewhere.Close()
	_, err := fakegithub.Click(t.Context(), elsewhere.URL)
	var failed *url.Error
	if !errors.As(err, &failed) {
		t.Fatalf("the browser did not end on a dead address: %v", err)
	}
	return failed.URL
}

func TestAnAppIsCreatedByPasting(t *testing.T) {
	t.Parallel()
	for name, pasted := range map[string]func(address string) string{
		"the address":        func(a string) string { return a },
		"quoted":             func(a string) string { return " '" + a + "'\n" },
		"without http://":    func(a string) string { return strings.TrimPrefix(a, "http://") },
		"broken over lines":  func(a string) string { return a[:60] + "\r\n  " + a[60:] },
		"the code":           func(a string) string { u, _ := url.Parse(a); return u.Query().Get("code") },
		"the query":          func(a string) string { u, _ := url.Parse(a); return u.RawQuery },
		"with a fragment":    func(a string) string { return a + "#top" },
		"in angle brackets":  func(a string) string { return "<" + a + ">" },
		"beginning with a ?": func(a string) string { return a[strings.Index(a, "?"):] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gh := fakegithub.New(t, fakegithub.Options{})
			m, err := Manual(Options{BaseURL: gh.URL})
			if err != nil {
				t.Fatal(err)
			}
			r, err := m.Finish(t.Context(), pasted(clickFile(t, m.Page())))
			if err != nil || r.Slug != gh.Apps()[0].Slug {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// What was pasted by mistake uses no code, and the right one is still taken after it.
func TestPastingTheWrongThing(t *testing.T) {
	t.Parallel()
	gh := fakegithub.New(t, fakegithub.Options{})
	m, err := Manual(Options{BaseURL: gh.URL})
	if err != nil {
		t.Fatal(err)
	}
	address := clickFile(t, m.Page())
	other, err := Manual(Options{BaseURL: gh.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, pasted := range []string{
		"", " ", "y", "yes", "https://github.com/settings/apps/x", "https://x/?code=", "code", "?%zz", "https://x/?state=y", "a=b",
		clickFile(t, other.Page()), strings.Repeat("x", 10<<20),
	} {
		if _, err := m.Finish(t.Context(), pasted); errs.KindOf(err) != errs.Usage || errs.HintOf(err) == "" {
			t.Errorf("%.80q: %v", pasted, err)
		}
	}
	if n := gh.Count(fakegithub.OpConversion); n != 0 {
		t.Errorf("%d codes were used", n)
	}
	if _, err := m.Finish(t.Context(), "0123456789abcdef"); errs.KindOf(err) != errs.Conflict {
		t.Errorf("a code that GitHub does not know: %v", err)
	}
	if _, err := m.Finish(t.Context(), address); err != nil {
		t.Error(err)
	}
	if _, err := m.Finish(t.Context(), address); errs.KindOf(err) != errs.Conflict {
		t.Errorf("used twice: %v", err)
	}
	if n := gh.Count(fakegithub.OpConversion); n != 2 {
		t.Errorf("%d conversions", n)
	}
}

// The file has no headers: its policy is in it.
func TestTheManualPageStandsAlone(t *testing.T) {
	t.Parallel()
	m, err := Manual(Options{BaseURL: "https://git.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	page := string(m.Page())
	if !strings.Contains(page, "form-action https://git.example.com;") || strings.Contains(page, "src=") || strings.Contains(page, "<link") {
		t.Error(page)
	}
}

func FuzzParseRedirect(f *testing.F) {
	for _, seed := range []string{
		"http://localhost:47013/callback?code=abc&state=def", "abcdefghijkl", "?code=x", "", "code=%", "a&b=c?code=..", "https://x/#?code=1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pasted string) {
		code, _, err := ParseRedirect(pasted)
		if err == nil && !validCode(code) || err != nil && (errs.KindOf(err) != errs.Usage || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: %q, %v", pasted, code, err)
		}
	})
}
