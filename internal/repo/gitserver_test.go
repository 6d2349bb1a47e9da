package repo

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
)

// gitServer serves real bare repositories over HTTP, as GitHub would.
type gitServer struct {
	*httptest.Server
	root string
	// before answers a request in git's place, or returns false.
	before func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	requests []string // method, path and what was given as the password
}

func newGitServer(t *testing.T) *gitServer {
	t.Helper()
	core, err := exec.Command("git", "--exec-path").Output()
	backend := filepath.Join(strings.TrimSpace(string(core)), "git-http-backend")
	if err == nil {
		_, err = os.Stat(backend)
	}
	testenv.Need(t, "git http-backend", err == nil)
	s := &gitServer{root: t.TempDir()}
	handler := &cgi.Handler{Path: backend, Dir: s.root, Stderr: io.Discard}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.Path+" "+password)
		before := s.before
		s.mu.Unlock()
		if before != nil && before(w, r) {
			return
		}
		one := *handler
		one.Env = []string{
			"GIT_PROJECT_ROOT=" + s.root, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + s.root, "GIT_CONFIG_NOSYSTEM=1",
			"GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		}
		spool(t, r)
		one.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// spool gives a chunked body a length: net/http/cgi takes no other.
func spool(t *testing.T, r *http.Request) {
	if r.ContentLength >= 0 {
		return
	}
	file, err := os.CreateTemp(t.TempDir(), "body")
	if err != nil {
		t.Error(err)
		return
	}
	n, err := io.Copy(file, r.Body)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		t.Error(err)
	}
	r.Body, r.ContentLength, r.TransferEncoding = file, n, nil
}

// seen are the requests so far, and forgets them.
func (s *gitServer) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

// only lets in who gives one of the passwords, with GitHub's answers for all others.
func (s *gitServer) only(passwords ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		_, given, has := r.BasicAuth()
		for _, p := range passwords {
			if given == p {
				return false
			}
		}
		if has {
			http.Error(w, "Repository not found.", http.StatusNotFound)
			return true
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "No anonymous read access.", http.StatusUnauthorized)
		return true
	}
}

func (s *gitServer) answer(before func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// publish puts what is in the repository at top on the server.
func (s *gitServer) publish(t *testing.T, top, name string) task.Repo {
	t.Helper()
	dir := filepath.Join(s.root, filepath.FromSlash(name)+".git")
	if _, err := os.Stat(dir); err != nil {
		gitAt(t, "", "clone", "-q", "--bare", top, dir)
		gitAt(t, dir, "config", "uploadpack.allowFilter", "true")
	}
	gitAt(t, top, "push", "-q", "--force", "--mirror", dir)
	r, err := Parse(s.URL + "/" + name + ".git")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// app hands out one token, or an error.
type app struct {
	token string
	err   error
	mu    sync.Mutex
	asked []string
}

// Token implements Credentials.
func (a *app) Token(_ context.Context, org, name string) (secret.String, time.Time, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, org+"/"+name)
	return secret.New(a.token), time.Now().Add(time.Hour), a.err
}

// program writes a program for /bin/sh.
func program(t testing.TB, name, script string) string {
	t.Helper()
	dir := t.TempDir()
	writeAt(t, dir, name, "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// noGH stands for a machine without gh.
func noGH(t testing.TB) string { return filepath.Join(t.TempDir(), "none") }

// on gives the fixture a cache with access to a server that is GitHub to it.
func (f *fixture) on(s *gitServer, a Access) {
	f.t.Helper()
	if a.GitHub == "" {
		a.GitHub = s.URL
	}
	if a.GH == "" {
		a.GH = noGH(f.t)
	}
	f.cache = New(Options{Dir: f.state, Environ: testEnviron(f.t), Access: a})
	f.cache.access.pause = func(context.Context, time.Duration) error { return errors.New("a pause") }
}

func (f *fixture) refused(r task.Repo) error {
	f.t.Helper()
	_, err := f.cache.Resolve(f.t.Context(), r, ResolveOptions{})
	if err == nil || errs.HintOf(err) == "" {
		f.t.Fatalf("error %v, hint %q", err, errs.HintOf(err))
	}
	return err
}

// commits adds n commits to the fixture's repository.
func (f *fixture) commits(n int) {
	f.t.Helper()
	for range n {
		f.git(f.top, "commit", "-q", "--allow-empty", "-m", "more")
	}
}
