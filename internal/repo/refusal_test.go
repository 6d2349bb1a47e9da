package repo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

func TestSingleSignOnIsSaid(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	r := s.publish(t, f.top, "o/r")
	f.on(s, Access{Token: secret.New("key")})
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if _, _, has := r.BasicAuth(); !has {
			w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("The 'o' organization has enabled or enforced SAML SSO.\nVisit https://github.com/enterprises/o/sso?authorization_request=A2 and try again.\n"))
		return true
	})
	err := f.refused(r)
	if errs.KindOf(err) != errs.Auth || !strings.Contains(err.Error(), "organization o asks for single sign-on") ||
		!strings.Contains(errs.HintOf(err), "https://github.com/enterprises/o/sso?authorization_request=A2") {
		t.Fatalf("%v; hint %q", err, errs.HintOf(err))
	}
}

// What a server gives as its reason is passed on: it may be none that we know.
func TestReasonOfTheServerIsPassedOn(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	r := s.publish(t, f.top, "o/r")
	f.on(s, Access{Token: secret.New("key")})
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if _, _, has := r.BasicAuth(); !has {
			w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		http.Error(w, "The 'o' organization has an IP allow list enabled,\nand your IP address is not permitted.", http.StatusForbidden)
		return true
	})
	if err := f.refused(r); !strings.HasSuffix(err.Error(),
		": the server says: The 'o' organization has an IP allow list enabled, and your IP address is not permitted.") {
		t.Fatal(err)
	}
}

func TestRateLimitIsWaitedFor(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	r := s.publish(t, f.top, "o/r")
	var told []string
	f.on(s, Access{Notify: func(text string) { told = append(told, text) }})
	var waited time.Duration
	f.cache.access.pause = func(_ context.Context, d time.Duration) error { waited += d; return nil }
	limit := func(times int) {
		waited, told = 0, nil
		s.answer(func(w http.ResponseWriter, _ *http.Request) bool {
			times--
			if times >= 0 {
				w.WriteHeader(http.StatusTooManyRequests)
			}
			return times >= 0
		})
	}
	limit(2)
	f.resolve(r)
	if waited != 20*time.Second || len(told) != 2 || !strings.Contains(told[0], "limits how often it may be asked: waiting 5s") {
		t.Fatalf("waited %s, told %q", waited, told)
	}
	limit(100)
	if err := f.refused(r); errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), "limits how often") || waited != time.Minute {
		t.Fatalf("after %s: %v", waited, err)
	}
}

// A redirect of GitHub is that of a repository with a new name.
func TestRenamedRepositoryIsFollowed(t *testing.T) {
	for name, access := range map[string]Access{"public": {}, "private": {Token: secret.New(canary)}} {
		t.Run(name, func(t *testing.T) {
			f, s := newFixture(t), newGitServer(t)
			r := s.publish(t, f.top, "o/new")
			f.on(s, access)
			s.answer(func(w http.ResponseWriter, r *http.Request) bool {
				rest, old := strings.CutPrefix(r.URL.Path, "/o/old.git")
				if old {
					http.Redirect(w, r, "/o/new.git"+rest+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
				}
				return old
			})
			old := r
			old.URL, old.Name = strings.Replace(r.URL, "new", "old", 1), "old"
			got := f.resolve(old)
			if got.Repo.URL != r.URL || got.Repo.Name != "new" || len(got.Notices) != 1 || !strings.Contains(got.Notices[0], "repository o/old is called o/new now") {
				t.Fatalf("resolved %+v", got)
			}
			f.roundTrip(old)
			// It may be renamed when the run is about to begin, with a mirror of the old name.
			f.run = task.NewID()
			if err := os.Rename(f.mirrorOf(r), f.mirrorOf(old)); err != nil {
				t.Fatal(err)
			}
			gitAt(t, f.mirrorOf(old), "config", "remote.origin.url", old.URL)
			f.write("a.txt", "renamed\n")
			f.git(f.top, "commit", "-q", "-a", "-m", "renamed")
			s.publish(t, f.top, "o/new")
			p, err := f.cache.Prepare(t.Context(), old, f.options())
			if err != nil || readAt(t, p.Mounts[0].Source, "a.txt") != "renamed\n" {
				t.Fatal(err)
			}
		})
	}
}

func TestKeyDoesNotFollowARedirectToAnotherHost(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	r := s.publish(t, f.top, "o/r")
	asked := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer other.Close()
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, other.URL+r.URL.String(), http.StatusFound)
		return true
	})
	f.on(s, Access{Token: secret.New(canary)})
	if err := f.refused(r); errs.KindOf(err) != errs.Conflict || !strings.Contains(err.Error(), other.URL) || asked != 0 {
		t.Fatalf("%v, asked %d times", err, asked)
	}
}
