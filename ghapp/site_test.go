package ghapp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/Insights/insightscli/internal/errs"
)

func TestWhereAGitHubHasItsAPI(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ base, api, web, want string }{
		{"", "", "https://github.com", "https://api.github.com"},
		{"https://github.com/", "", "https://github.com", "https://api.github.com"},
		{"github.com", "", "https://github.com", "https://api.github.com"},
		{"https://www.github.com", "", "https://github.com", "https://api.github.com"},
		{"https://acme.ghe.com", "", "https://acme.ghe.com", "https://api.acme.ghe.com"},
		{"https://GIT.Example.com", "", "https://git.example.com", "https://git.example.com/api/v3"},
		{"https://git.example.com:8443", "", "https://git.example.com:8443", "https://git.example.com:8443/api/v3"},
		{"http://127.0.0.1:99", "", "http://127.0.0.1:99", "http://127.0.0.1:99/api/v3"},
		{"https://github.com", "https://proxy.example/gh/", "https://github.com", "https://proxy.example/gh"},
	} {
		s, err := newSite(tt.base, tt.api)
		if err != nil || s.web != tt.web || s.api != tt.want {
			t.Errorf("%q: %+v, %v", tt.base, s, err)
		}
	}
	for _, base := range []string{
		"http://github.com", "ftp://github.com", "https://", "https://u:p@github.com", "https://github.com/acme",
		"https://github.com?x", "https://api.github.com", "https://git hub.com", "https://x\n.com", "::",
	} {
		if s, err := newSite(base, ""); errs.KindOf(err) != errs.Usage || errs.HintOf(err) == "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %+v, %v", base, s, err)
		}
	}
	if _, err := newSite("", "http://api.example.com"); errs.KindOf(err) != errs.Usage {
		t.Errorf("an API in the clear: %v", err)
	}
}

func TestTheNameOfAnOrganization(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "acme": "acme", "Acme-Inc-2": "Acme-Inc-2", "https://github.com/acme": "acme", "https://github.com/acme/": "acme",
		strings.Repeat("a", 39): strings.Repeat("a", 39),
	} {
		o := Options{Org: text}
		if _, err := o.complete(); err != nil || o.Org != want {
			t.Errorf("%q: %q, %v", text, o.Org, err)
		}
	}
	for _, text := range []string{
		"my org", "../x", "a/b", "-a", "a-", "a--b", strings.Repeat("a", 40), "ä", "a_b", "a\nb", "https://github.com/", "/",
		"https://evil.example/acme", "a?b", "a%2Fb",
	} {
		o := Options{Org: text}
		if _, err := o.complete(); errs.KindOf(err) != errs.Usage || errs.HintOf(err) == "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTheNameOfAnApp(t *testing.T) {
	t.Parallel()
	for who, begin := range map[string]string{
		"":                        "insights-dev-app-",
		"ada":                     "insights-dev-ada-",
		"Ada Lovelace@Host.local": "insights-dev-ada-lovelace-h-",
		"---":                     "insights-dev-app-",
		"żółć":                    "insights-dev-app-",
		"abcdefghijklm-nopq":      "insights-dev-abcdefghijklm-",
	} {
		name := newName(who)
		if !strings.HasPrefix(name, begin) || len(name) > 34 || checkName(name) != nil {
			t.Errorf("%q: %q, want %q", who, name, begin)
		}
		if newName(who) == name {
			t.Errorf("%q was made twice", name)
		}
	}
	for name, ok := range map[string]bool{
		"My app": true, strings.Repeat("ä", 34): true, strings.Repeat("a", 35): false, " ": false, "a\nb": false, "\xff": false,
	} {
		o := Options{Name: name}
		if _, err := o.complete(); ok != (err == nil) || err != nil && errs.HintOf(err) == "" {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("Ada Lovelace")
	f.Fuzz(func(t *testing.T, who string) {
		if name := newName(who); checkName(name) != nil || utf8.RuneCountInString(name) > maxName || !validOrg(name) {
			t.Errorf("%q: %q", who, name)
		}
	})
}

// The words of the manifest are GitHub's: none is spelled otherwise, none is left out.
func TestTheFieldsOfTheManifest(t *testing.T) {
	t.Parallel()
	o := Options{Name: "n"}
	if _, err := o.complete(); err != nil {
		t.Fatal(err)
	}
	text, err := o.encodeManifest("http://localhost:1/callback")
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	wanted := `{"name":"n","url":"http://localhost:8010","redirect_url":"http://localhost:1/callback",
		"callback_urls":["http://localhost:8010/complete/github-link/"],
		"setup_url":"http://localhost:8010/integrations/github/callback","setup_on_update":true,
		"description":"Background agents on a developer's machine","public":false,"request_oauth_on_install":true,
		"default_permissions":{"contents":"write","pull_requests":"write","metadata":"read"}}`
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(wanted), &want); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("%s\nwant\n%s", a, b)
	}
}
