package repo

import (
	"regexp"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

func TestParseRemoteAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ address, org, name, url string }{
		{"Insights/Insights-JS", "insights", "insights-js", "https://github.com/Insights/Insights-JS.git"},
		{"o/r.git", "o", "r", "https://github.com/o/r.git"},
		{"o/r/", "o", "r", "https://github.com/o/r.git"},
		{"o/.github", "o", ".github", "https://github.com/o/.github.git"},
		{"o/.github.git", "o", ".github", "https://github.com/o/.github.git"},
		{"github.com/o/r", "o", "r", "https://github.com/o/r.git"},
		{"github.com/o/r/", "o", "r", "https://github.com/o/r.git"},
		{"https://github.com/o/r.git/", "o", "r", "https://github.com/o/r.git"},
		{"https://github.com/O/R", "o", "r", "https://github.com/O/R"},
		{"HTTPS://github.com/o/r", "o", "r", "https://github.com/o/r"},
		{"git@github.com:o/example.com.git", "o", "example.com", "git@github.com:o/example.com.git"},
		{"org-1@github.com:o/r.git", "o", "r", "org-1@github.com:o/r.git"},
		{"github.com:o/r", "o", "r", "github.com:o/r"},
		{"ssh://git@github.com:22/o/r.git", "o", "r", "ssh://git@github.com:22/o/r.git"},
		{"git+ssh://git@host.example/o/r", "o", "r", "ssh://git@host.example/o/r"},
		{"ssh://git@[fe80::1]:22/o/r", "o", "r", "ssh://git@[fe80::1]:22/o/r"},
		{"git://host.example/r", "local", "r", "git://host.example/r"},
		{"https://gitlab.example/group/sub/Proj.git", "sub", "proj", "https://gitlab.example/group/sub/Proj.git"},
		{"git@host.example:/srv/git/r.git", "git", "r", "git@host.example:/srv/git/r.git"},
		{"https://host.example/a%20b/c", "a-b", "c", "https://host.example/a%20b/c"},
		{"file:///srv/git/My Repo.git", "local", "my-repo", "file:///srv/git/My Repo.git"},
		{"file:///srv/x/.git", "local", "x", "file:///srv/x/.git"},
	} {
		got, err := Parse(tt.address)
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.address, err)
			continue
		}
		want := task.Repo{Source: task.RepoRemote, Org: tt.org, Name: tt.name, URL: tt.url}
		if got != want {
			t.Errorf("Parse(%q) = %+v, want %+v", tt.address, got, want)
		}
	}
}

// GitHub answers over https only; what opens a repository there is sent to no other.
func TestParseKnowsWhereGitHubIs(t *testing.T) {
	for _, address := range []string{
		"http://github.com/o/r.git", "git://github.com/o/r.git", "https://www.github.com/o/r.git", "HTTP://GitHub.com/o/r.git",
	} {
		if r, err := Parse(address); err != nil || r.URL != "https://github.com/o/r.git" {
			t.Errorf("%s: %+v, %v", address, r, err)
		}
	}
}

func TestParsePathsAsTyped(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"/", "/srv/x", ".", "..", "./x", "../x", "../-x", "~", "~/x", "./a:b", `C:\x`, "/a/../b"} {
		got, err := Parse(p)
		if err != nil || got != (task.Repo{Source: task.RepoLocal, Path: p}) {
			t.Errorf("Parse(%q) = %+v, %v", p, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"", "x", "o/r/extra", "o//r", "/\x00", "o/", "/r\n", "o/..", "o/.git", "o/-r", "github.com/o/r/extra",
		"-oProxyCommand=x/y", "--upload-pack=x/y", "-", "-u@host:o/r", "git@-oProxyCommand=x:o/r", "ssh://-oProxyCommand=x/o/r",
		"ssh://git@-oProxyCommand=x/o/r", "ext::sh -c id", "fd::3", "https://host::x/o", "ssh://host/-x/y",
		"https://github.com/o/r/tree/main", "https://github.com/o", "https://github.com/", "https://github.com/o/r?x=1",
		"https://github.com/o/r#main", "https://host.example/a/../b", "https://host.example/%2e%2e/b", "https://host.example/a//b",
		"ftp://host/o/r", "javascript://x/y", "https:///o/r", "https://host:port/o/r", "file://host/x", "file:///", "file:x",
		"https://host.example/a%0ab/c", "o r/x", "gitlab.example/o/r", "host:", "git@host:", "ö/r", "o/r\u0085",
		strings.Repeat("a", maxAddress+1),
	} {
		got, err := Parse(address)
		if err == nil {
			t.Errorf("Parse(%q) = %+v, want a refusal", address, got)
			continue
		}
		if errs.KindOf(err) != errs.Usage || errs.HintOf(err) == "" {
			t.Errorf("Parse(%q): %v is %q with hint %q", address, err, errs.KindOf(err), errs.HintOf(err))
		}
	}
}

// A credential in an address is refused, and the refusal does not show it.
func TestParseKeepsCredentialsOutOfItsErrors(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://x-access-token:ghp_secret@github.com/o/r.git", "https://ghp_secret@github.com/o/r", "ssh://git:ghp_secret@host/o/r",
		"http://u:ghp_secret@host/o/r", "https://u:ghp_secret@/o/r",
	} {
		_, err := Parse(address)
		if err == nil || strings.Contains(err.Error(), "ghp_secret") {
			t.Errorf("Parse(%q): %v", address, err)
		}
	}
}

func TestOriginGivesOrganisationAndName(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"https://x-access-token:t@github.com/Acme/App.git": "acme/app",
		"git@github.com:Acme/App":                          "acme/app",
		"ssh://git@ssh.github.com:443/Acme/App.git":        "acme/app",
		"https://gitlab.com/Acme/App.git":                  "",
		"/srv/git/app":                                     "",
		"":                                                 "",
	} {
		org, name, ok := fromOrigin(remote)
		got := org + "/" + name
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("fromOrigin(%q) = %q, want %q", remote, got, want)
		}
	}
}

func TestWithoutCredentials(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://u:p@h/o/r":   "https://h/o/r",
		"https://u:p@x@h/o/r": "https://h/o/r",
		"ssh://git:p@h/o/r":   "ssh://git@h/o/r",
		"git@github.com:o/r":  "git@github.com:o/r",
		"https://h/o@x/r":     "https://h/o@x/r",
		"/srv/x":              "/srv/x",
		"https://token@h":     "https://h",
		"custom://u:p@h/x":    "custom://h/x",
	} {
		if got := withoutCredentials(in); got != want {
			t.Errorf("withoutCredentials(%q) = %q, want %q", in, got, want)
		}
	}
}

// helperForm is what git takes for the name of a transport helper.
var helperForm = regexp.MustCompile(`^[A-Za-z0-9+.-]*::`)

func FuzzParse(f *testing.F) {
	for _, s := range []string{"o/r", "git@github.com:o/r.git", "https://github.com/o/r", "ssh://git@h:22/o/r", "file:///x", "./x", "-x/y", "a::b", "h:p"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, address string) {
		r, err := Parse(address)
		if err != nil {
			if errs.KindOf(err) != errs.Usage || strings.ContainsAny(err.Error(), "\n\x00\x1b") {
				t.Fatalf("Parse(%q): %v", address, err)
			}
			return
		}
		if r.Source == task.RepoLocal {
			if r.Path != address {
				t.Fatalf("Parse(%q) changed the path to %q", address, r.Path)
			}
			return
		}
		if strings.HasPrefix(r.URL, "-") || helperForm.MatchString(r.URL) || strings.ContainsAny(r.URL, "\n\x00") {
			t.Fatalf("Parse(%q) gives the URL %q", address, r.URL)
		}
		for _, e := range []string{r.Org, r.Name} {
			if e != slug(e) || e != strings.ToLower(e) || strings.ContainsAny(e, "/\\ ") {
				t.Fatalf("Parse(%q) gives %q/%q", address, r.Org, r.Name)
			}
		}
		again, err := Parse(r.URL)
		if err != nil || again.Org != r.Org || again.Name != r.Name {
			t.Fatalf("Parse(%q) gives %+v, and that %+v, %v", address, r, again, err)
		}
	})
}
