package repo

import (
	"encoding/base64"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
)

const canary = "ghs_1234_eyJhbGciOi.J9-canary_0123456789abcdefghij"

// keyed gives a fixture one source of the canary.
func keyed() map[string]func(f *fixture, s *gitServer) {
	return map[string]func(f *fixture, s *gitServer){
		"app": func(f *fixture, s *gitServer) { f.on(s, Access{App: &app{token: canary}, AppSlug: "slug"}) },
		"gh": func(f *fixture, s *gitServer) {
			f.on(s, Access{GH: program(f.t, "gh", `[ "$*" = "auth token --hostname `+strings.TrimPrefix(s.URL, "http://")+`" ] && echo `+canary)})
		},
		"token": func(f *fixture, s *gitServer) { f.on(s, Access{Token: secret.New(canary)}) },
		"helper": func(f *fixture, s *gitServer) {
			home := f.t.TempDir()
			f.on(s, Access{})
			writeAt(f.t, home, ".gitconfig", "[credential]\n\thelper = \"!f() { cat >/dev/null; echo username=me; echo password="+canary+"; }; f\"\n")
			f.cache.access.environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
		},
	}
}

func TestEveryKeyOpensAPrivateRepository(t *testing.T) {
	for name, give := range keyed() {
		t.Run(name, func(t *testing.T) {
			f, s := newFixture(t), newGitServer(t)
			r := s.publish(t, f.top, "Org/Repo")
			s.only(canary)
			give(f, s)
			b, res := f.roundTrip(r)
			if b.p.Repo.Org != "org" || b.p.Repo.Name != "repo" || res.Commit == "" {
				t.Fatalf("prepared %+v, result %+v", b.p.Repo, res)
			}
		})
	}
}

// E2: the key is nowhere: no argument of a process, no file, no answer of ours.
func TestKeyLeavesNoTrace(t *testing.T) {
	for name, give := range keyed() {
		t.Run(name, func(t *testing.T) {
			f, s := newFixture(t), newGitServer(t)
			f.commits(recent + 5)
			r := s.publish(t, f.top, "o/r")
			s.only(canary)
			give(f, s)
			argv := filepath.Join(t.TempDir(), "argv")
			real, err := exec.LookPath("git")
			if err != nil {
				t.Fatal(err)
			}
			f.cache.git.bin = program(t, "git", `for a in "$@"; do echo "$a" >>'`+argv+`'; done; ps -eo args >>'`+argv+`'; exec `+real+` "$@"`)
			r.FullHistory = true
			b, _ := f.roundTrip(r)
			traces := readAt(t, filepath.Dir(argv), filepath.Base(argv))
			if !strings.Contains(traces, "ls-remote") {
				t.Fatal("the arguments were not written down")
			}
			for _, dir := range []string{f.state, b.dir} {
				err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
					if err == nil && d.Type().IsRegular() {
						traces += readAt(t, filepath.Dir(p), d.Name())
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			encoded := base64.StdEncoding.EncodeToString([]byte(tokenUser + ":" + canary))
			mine := base64.StdEncoding.EncodeToString([]byte("me:" + canary))
			for _, key := range []string{canary, encoded, mine} {
				if strings.Contains(traces, key) {
					t.Fatalf("the key left a trace:\n%s", traces[max(0, strings.Index(traces, key)-200):strings.Index(traces, key)])
				}
			}
		})
	}
}

func TestKeysAreTriedInOrder(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	r := s.publish(t, f.top, "o/r")
	f.on(s, Access{App: &app{token: "first"}, GH: program(t, "gh", "echo second"), Token: secret.New("third")})
	for _, want := range []string{"first", "second", "third", ""} {
		s.answer(nil)
		if want != "" {
			s.only(want)
		} else {
			s.answer(func(w http.ResponseWriter, r *http.Request) bool {
				_, _, has := r.BasicAuth()
				if has {
					w.WriteHeader(http.StatusUnauthorized) // what GitHub says to a key that was revoked
				}
				return has
			})
		}
		f.resolve(r)
		seen := s.seen()
		if last := seen[len(seen)-1]; !strings.HasSuffix(last, " "+want) {
			t.Fatalf("%s opened it: %q", last, seen)
		}
		f.resolve(r)
		for _, one := range s.seen() {
			if !strings.HasSuffix(one, " "+want) {
				t.Fatalf("%q was asked again, although %q opened it", one, want)
			}
		}
	}
}

func TestKeyThatExpiresIsMadeAgain(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	r := s.publish(t, f.top, "o/r")
	a := &app{token: "old"}
	f.on(s, Access{App: a})
	s.only("old")
	f.resolve(r)
	a.token = "new"
	s.only("new")
	f.resolve(r)
	if len(a.asked) != 2 {
		t.Fatalf("asked %q", a.asked)
	}
	f.cache.access.remember(r.URL, grant{header: secret.New("Basic x"), expires: time.Now().Add(time.Minute)})
	f.resolve(r)
	if len(a.asked) != 3 {
		t.Fatalf("asked %q", a.asked)
	}
}

func TestPrivateRepositoryWithoutAccess(t *testing.T) {
	no := errs.New("app", errs.Auth, "install it at https://github.com/apps/x/installations/new", "the GitHub App is not installed on o/r")
	away := errs.New("app", errs.Unavailable, "wait a while, then try again", "GitHub limits how often it may be asked")
	gone := errs.New("app", errs.NotFound, "check the name", "there is no repository o/r that the GitHub App can see")
	for name, tt := range map[string]struct {
		access Access
		kind   errs.Kind
		err    string
		hint   string
	}{
		"nothing at all": {Access{}, errs.Auth, "repository o/r is private or does not exist", "gh auth login"},
		"a wrong token": {
			Access{Token: secret.New("wrong")},
			errs.Auth,
			"repository o/r is private or does not exist; it was not opened by GH_TOKEN", "insightscli create-github-app",
		},
		"an app elsewhere":     {Access{App: &app{err: no}, AppSlug: "x"}, errs.Auth, "not installed on o/r", "/apps/x/installations/new"},
		"an app that is blind": {Access{App: &app{token: "wrong"}, AppSlug: "x"}, errs.Auth, "not opened by the GitHub App x", "give the App access to o/r: "},
		"no such repository":   {Access{App: &app{err: gone}}, errs.Auth, "there is no repository o/r", "check the name"},
		"an app nobody knows":  {Access{App: &app{err: away}}, errs.Unavailable, "limits how often", "wait a while"},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := newFixture(t), newGitServer(t)
			r := s.publish(t, f.top, "o/r")
			s.only("right")
			f.on(s, tt.access)
			err := f.refused(r)
			if errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.err) || !strings.Contains(errs.HintOf(err), tt.hint) {
				t.Fatalf("%s: %v; hint %q", errs.KindOf(err), err, errs.HintOf(err))
			}
		})
	}
}

func TestKeysStayWithTheirHosts(t *testing.T) {
	c := New(Options{Dir: t.TempDir(), Access: Access{App: &app{}, Token: secret.New(canary)}})
	for address, want := range map[string]string{
		"https://github.com/o/r.git":           "the GitHub App,gh,GH_TOKEN or GITHUB_TOKEN,the credential helper of git,",
		"https://GitHub.com/o/r.git":           "the GitHub App,gh,GH_TOKEN or GITHUB_TOKEN,the credential helper of git,",
		"http://github.com/o/r.git":            "",
		"https://github.com:444/o/r.git":       ",the credential helper of git",
		"https://github.com.evil.test/o/r":     ",the credential helper of git",
		"https://gitlab.example/o/r.git":       ",the credential helper of git",
		"http://gitlab.example/o/r.git":        "",
		"http://127.0.0.1:81/o/r.git":          ",the credential helper of git",
		"http://127.0.0.1.evil.test/o/r.git":   "",
		"git@github.com:o/r.git":               "",
		"ssh://git@github.com/o/r.git":         "",
		"git://github.com/o/r.git":             "",
		"file:///github.com/o/r.git":           "",
		"https://user@github.com.evil/o/r":     ",the credential helper of git",
		"https://github.com\\@evil.test/o/r":   "",
		"https://github.com%2eevil.test/o/r":   "",
		"https://evil.test/https://github.com": ",the credential helper of git",
	} {
		var names []string
		for _, s := range c.access.sources(address) {
			names = append(names, s.name)
		}
		if got := strings.Join(names, ","); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

// A helper that answers for another host, asks, or takes for ever, gives nothing.
func TestHelpersThatAreNoUse(t *testing.T) {
	for name, helper := range map[string]string{
		"none":         "",
		"silent":       "!true",
		"failing":      "!false",
		"another host": "!f() { echo host=evil.test; echo username=u; echo password=" + canary + "; }; f",
		"no password":  "!f() { echo username=u; }; f",
	} {
		t.Run(name, func(t *testing.T) {
			f, s := newFixture(t), newGitServer(t)
			r := s.publish(t, f.top, "o/r")
			s.only(canary)
			f.on(s, Access{})
			home := t.TempDir()
			if helper != "" {
				writeAt(t, home, ".gitconfig", "[credential]\n\thelper = \""+helper+"\"\n")
			}
			asked := filepath.Join(home, "asked")
			ask := program(t, "ask", "touch '"+asked+"'; echo "+canary)
			f.cache.access.environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_ASKPASS=" + ask, "SSH_ASKPASS=" + ask, "DISPLAY=:0"}
			if err := f.refused(r); errs.KindOf(err) != errs.Auth {
				t.Fatal(err)
			}
			if _, err := os.Stat(asked); err == nil {
				t.Fatal("somebody was asked for a password")
			}
		})
	}
}

func TestGHIsFoundInThePathOfTheCaller(t *testing.T) {
	gh := program(t, "gh", "echo key")
	if got := lookPath([]string{"PATH=relative:" + t.TempDir() + string(os.PathListSeparator) + filepath.Dir(gh)}, "gh"); got != gh {
		t.Fatalf("found %q", got)
	}
	if got := lookPath([]string{"PATH=" + t.TempDir()}, "gh"); got != "" {
		t.Fatalf("found %q", got)
	}
}

func TestProgramsThatKnowKeysSeeNoneOfGitsVariables(t *testing.T) {
	got := withoutGit([]string{"HOME=/h", "GIT_TRACE_CURL=1", "GIT_DIR=/x", "GH_TOKEN=t", "GITHUB_TOKEN=t", "GH_DEBUG=api", "GH_CONFIG_DIR=/c"})
	if strings.Join(got, " ") != "HOME=/h GH_CONFIG_DIR=/c" {
		t.Fatal(got)
	}
}
