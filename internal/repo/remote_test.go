package repo

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

func (f *fixture) remote() task.Repo {
	f.t.Helper()
	r, err := Parse("file://" + f.top)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func TestRemoteIsMirroredAndUpdated(t *testing.T) {
	f := newFixture(t)
	f.git(f.top, "branch", "far")
	f.git(f.top, "tag", "v1")
	before := snapshot(t, f.top)
	b, res := f.roundTrip(f.remote())
	sameSnapshot(t, before, snapshot(t, f.top))
	if b.p.Repo.Branch != "trunk" || b.p.Repo.Name != "project" || b.p.Repo.Org != "local" {
		t.Fatalf("prepared %+v", b.p.Repo)
	}
	if got := gitAt(t, b.dir, "for-each-ref", "--format=%(refname)"); got !=
		"refs/heads/trunk\nrefs/remotes/origin/HEAD\nrefs/remotes/origin/far\nrefs/remotes/origin/trunk\nrefs/tags/v1" {
		t.Fatalf("refs:\n%s", got)
	}
	if got := gitAt(t, b.p.Origin, "rev-parse", res.Ref); got != res.Commit {
		t.Fatalf("ref is %s", got)
	}
	// The next run sees what happened there since.
	f.write("a.txt", "later\n")
	f.git(f.top, "commit", "-q", "-a", "-m", "later")
	f.git(f.top, "branch", "-D", "-q", "far")
	f.run = task.NewID()
	b, _ = f.roundTrip(f.remote())
	if got := readAt(t, b.dir, "a.txt"); got != "later\n" {
		t.Fatal(got)
	}
	if got := gitAt(t, b.dir, "branch", "-r"); strings.Contains(got, "far") || strings.Contains(got, "insights") {
		t.Fatal(got)
	}
}

func TestRemoteBranches(t *testing.T) {
	f := newFixture(t)
	f.git(f.top, "checkout", "-q", "-b", "far")
	f.write("a.txt", "far\n")
	f.git(f.top, "commit", "-q", "-a", "-m", "far")
	f.git(f.top, "checkout", "-q", "trunk")
	r := f.remote()
	r.Branch = "far"
	b, _ := f.roundTrip(r)
	if got := readAt(t, b.dir, "a.txt"); got != "far\n" {
		t.Fatal(got)
	}
	r.Branch = "nowhere"
	got := f.resolve(r)
	if len(got.Notices) != 1 || got.Repo.Branch != "nowhere" {
		t.Fatalf("resolved %+v", got)
	}
	f.run = task.NewID()
	b, _ = f.roundTrip(r)
	if got := readAt(t, b.dir, ".git/HEAD"); got != "ref: refs/heads/nowhere\n" {
		t.Fatal(got)
	}
}

func TestCorruptMirrorIsMadeAgain(t *testing.T) {
	for name, harm := range map[string]func(mirror string) error{
		"no head":    func(m string) error { return os.Remove(filepath.Join(m, "HEAD")) },
		"bad config": func(m string) error { return os.WriteFile(filepath.Join(m, "config"), []byte("[x"), 0o600) },
		"no objects": func(m string) error { return os.RemoveAll(filepath.Join(m, "objects")) },
		"bad packs": func(m string) error {
			packs, err := filepath.Glob(filepath.Join(m, "objects/pack/*"))
			if err != nil {
				return err
			}
			for _, p := range packs {
				if err := os.Chmod(p, 0o600); err != nil {
					return err
				}
				if err := os.WriteFile(p, nil, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
		"empty object": func(m string) error {
			return filepath.Walk(filepath.Join(m, "objects"), func(p string, fi os.FileInfo, err error) error {
				if err != nil || !fi.Mode().IsRegular() {
					return err
				}
				if err := os.Chmod(p, 0o600); err != nil {
					return err
				}
				return os.Truncate(p, 0)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			b, _ := f.roundTrip(f.remote())
			if err := harm(b.p.Origin); err != nil {
				t.Fatal(err)
			}
			if err := RemoveAll(filepath.Join(f.state, "cache", "checkout")); err != nil {
				t.Fatal(err)
			}
			f.run = task.NewID()
			f.roundTrip(f.remote())
		})
	}
}

func TestManyRunsAtOnceShareMirrorAndCheckout(t *testing.T) {
	f := newFixture(t)
	r := f.resolve(f.remote()).Repo
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			run := task.NewID()
			// Every one has a cache of its own, as another process would.
			c := New(Options{Dir: f.state, Environ: testEnviron(t)})
			p, err := c.Prepare(t.Context(), r, PrepareOptions{
				Run: run, UID: os.Getuid(), GID: os.Getgid(),
				WorkDir: filepath.Join(f.state, "run", string(run)),
			})
			if err != nil {
				t.Error(err)
				return
			}
			if got := readAt(t, p.Mounts[0].Source, "a.txt"); got != "one\ntwo\nthree\n" {
				t.Error(got)
			}
		})
	}
	wait.Wait()
	if n := len(f.cache.entries()); n != 1 {
		t.Fatalf("%d checkouts", n)
	}
}

func refusal(t *testing.T, c *Cache, address string) error {
	t.Helper()
	r, err := Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Resolve(t.Context(), r, ResolveOptions{})
	if err == nil || errs.HintOf(err) == "" {
		t.Fatalf("Resolve(%s): %v, hint %q", address, err, errs.HintOf(err))
	}
	return err
}

// E2: a private repository fails at once, whatever asks for a password.
func TestRemoteRefusals(t *testing.T) {
	f := newFixture(t)
	asked := filepath.Join(f.state, "asked")
	tool := filepath.Join(t.TempDir(), "ask")
	writeAt(t, filepath.Dir(tool), "ask", "#!/bin/sh\ntouch '"+asked+"'\necho secret\n")
	if err := os.Chmod(tool, 0o755); err != nil {
		t.Fatal(err)
	}
	writeAt(t, f.state, "x", "")
	f.cache = New(Options{Dir: f.state, Environ: append(testEnviron(t), "GIT_ASKPASS="+tool, "SSH_ASKPASS="+tool, "DISPLAY=:0", "GIT_SSH_COMMAND="+tool)})
	var status atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if status.Load() == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		}
		w.WriteHeader(int(status.Load()))
	}))
	defer server.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + closed.Addr().String() + "/o/r"
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		status  int
		address string
		kind    errs.Kind
	}{
		{http.StatusUnauthorized, server.URL + "/o/r", errs.Auth},
		{http.StatusForbidden, server.URL + "/o/r", errs.Auth},
		{http.StatusNotFound, server.URL + "/o/r", errs.NotFound},
		{http.StatusInternalServerError, server.URL + "/o/r", errs.Unavailable},
		{http.StatusOK, server.URL + "/o/r", errs.Conflict}, // an empty repository, to git
		{0, gone, errs.Unavailable},
		{0, "file:///nowhere/at/all", errs.NotFound},
	} {
		status.Store(int64(tt.status))
		if err := refusal(t, f.cache, tt.address); errs.KindOf(err) != tt.kind {
			t.Errorf("%s, %d: %v is %s, want %s", tt.address, tt.status, err, errs.KindOf(err), tt.kind)
		}
	}
	if _, err := os.Stat(asked); err == nil {
		t.Fatal("git asked for a password")
	}
}

// E4: a server that accepts and then says nothing is given up.
func TestSilentServerIsGivenUp(t *testing.T) {
	f := newFixture(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 500*time.Millisecond, errs.New("test", errs.Unavailable, "", "too long"))
	defer cancel()
	begun := time.Now()
	r := task.Repo{Source: task.RepoRemote, Org: "o", Name: "r", URL: "http://" + l.Addr().String() + "/o/r"}
	if _, err := f.cache.Resolve(ctx, r, ResolveOptions{}); err == nil {
		t.Fatal("no error")
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Fatalf("it took %s", took)
	}
}

func TestStalledGitIsEnded(t *testing.T) {
	fake := filepath.Join(t.TempDir(), "git")
	writeAt(t, filepath.Dir(fake), "git", "#!/bin/sh\nsleep 60 & sleep 60\n")
	if err := os.Chmod(fake, 0o755); err != nil {
		t.Fatal(err)
	}
	g := newGit(fake, testEnviron(t))
	begun := time.Now()
	err := g.run(t.Context(), call{args: []string{"fetch"}, stall: 100 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "sent nothing") {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Fatalf("it took %s", took)
	}
}

func TestGitThatIsMissingOrOld(t *testing.T) {
	local := task.Repo{Source: task.RepoLocal, Path: t.TempDir()}
	c := New(Options{Dir: t.TempDir(), Git: "/nowhere/git"})
	if _, err := c.Resolve(t.Context(), local, ResolveOptions{}); errs.KindOf(err) != errs.Unavailable {
		t.Fatal(err)
	}
	old := filepath.Join(t.TempDir(), "git")
	writeAt(t, filepath.Dir(old), "git", "#!/bin/sh\necho git version 2.20.1\n")
	if err := os.Chmod(old, 0o755); err != nil {
		t.Fatal(err)
	}
	c = New(Options{Dir: t.TempDir(), Git: old})
	if _, err := c.Resolve(t.Context(), local, ResolveOptions{}); errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), "too old") {
		t.Fatal(err)
	}
}
