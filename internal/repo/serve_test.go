package repo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	gateway "github.com/Insights/insightscli/internal/gateway/git"
	"github.com/Insights/insightscli/internal/task"
)

// served is the gateway of a run on r, and a sandbox's way to it.
type served struct {
	t   *testing.T
	url string // stands for that of the sandbox
	env []string
}

func (f *fixture) serve(r task.Repo) *served {
	f.t.Helper()
	all := Upstreams([]task.Repo{r})
	var repos []gateway.Repo
	for _, u := range all {
		repos = append(repos, gateway.Repo{Path: u.Repo.Org + "/" + u.Repo.Name, Web: u.Web})
	}
	srv := httptest.NewServer(gateway.New(gateway.Config{
		Repos: repos, Refusal: "no commits here\nuse the tool\n",
		Refs: func(ctx context.Context, n int, prefixes []string) error {
			return f.cache.RefreshRefs(ctx, all[n].Repo, prefixes)
		},
		Objects: func(ctx context.Context, n int, w gateway.Wanted) error {
			return f.cache.RefreshObjects(ctx, all[n].Repo, Wanted(w))
		},
		Upload: func(ctx context.Context, n int, x gateway.Exchange) error {
			return f.cache.UploadPack(ctx, all[n].Repo, Exchange(x))
		},
	}))
	f.t.Cleanup(srv.Close)
	s := &served{t: f.t, url: srv.URL}
	for _, a := range all[0].Addresses {
		s.env = append(s.env, "url."+srv.URL+"/"+repos[0].Path+".insteadOf="+a)
	}
	return s
}

// try runs git as an agent does: it finds no credential and never prompts.
func (s *served) try(dir string, args ...string) (string, error) {
	// A sandbox sees objects of the mirror, and not where the refs are.
	conf := []string{"-c", "core.alternateRefsCommand=true"}
	for _, kv := range s.env {
		conf = append(conf, "-c", kv)
	}
	cmd := exec.CommandContext(s.t.Context(), "git", append(append(conf, "-c", "safe.directory=*"), args...)...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (s *served) git(dir string, args ...string) string {
	s.t.Helper()
	out, err := s.try(dir, args...)
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// stale lets the next request ask the server again.
func (f *fixture) stale() {
	f.cache.access.mu.Lock()
	defer f.cache.access.mu.Unlock()
	for k, l := range f.cache.access.lists {
		l.at = time.Time{}
		f.cache.access.lists[k] = l
	}
}

func (f *fixture) private(t *testing.T) (*gitServer, task.Repo) {
	s := newGitServer(t)
	f.commits(recent + 10)
	r := s.publish(t, f.top, "Org/Repo")
	s.only(canary)
	f.on(s, Access{App: &app{token: canary}, AppSlug: "slug"})
	return s, r
}

// What the server gets after the run has begun can be fetched in the sandbox, without a
// credential, by every form of the address.
func TestSandboxFetchesWhatIsNew(t *testing.T) {
	for name, full := range map[string]bool{"cut history": false, "full history": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s, r := f.private(t)
			r.FullHistory = full
			b, in := f.open(r), f.serve(r)
			f.write("new.txt", "new\n")
			f.write("big.bin", noise(1, 300<<10))
			f.git(f.top, "add", "-A")
			f.git(f.top, "commit", "-q", "-m", "news")
			f.git(f.top, "checkout", "-q", "-b", "side", "HEAD~20")
			f.write("side.txt", "side\n")
			f.git(f.top, "add", "-A")
			f.git(f.top, "commit", "-q", "-m", "on the side")
			f.git(f.top, "tag", "v1")
			s.publish(t, f.top, "Org/Repo")
			in.git(b.dir, "pull", "-q")
			if readAt(t, b.dir, "new.txt") != "new\n" || in.git(b.dir, "log", "-1", "--format=%s", "origin/trunk") != "news" {
				t.Fatal("it was not pulled")
			}
			in.git(b.dir, "fetch", "-q", "origin")
			if got := in.git(b.dir, "log", "-1", "--format=%s", "origin/side"); got != "on the side" {
				t.Fatal(got)
			}
			if got := in.git(b.dir, "ls-remote", "--tags", "origin"); !strings.Contains(got, "refs/tags/v1") {
				t.Fatal(got)
			}
			host := strings.TrimPrefix(s.URL, "http://")
			for _, form := range []string{s.URL + "/Org/Repo", s.URL + "/org/repo.git", "git@" + host[:strings.Index(host, ":")] + ":Org/Repo.git"} {
				if got := in.git(b.dir, "ls-remote", form, "refs/heads/side"); !strings.HasSuffix(got, "refs/heads/side") {
					t.Fatalf("%s: %q", form, got)
				}
			}
			in.git(b.dir, "fsck", "--connectivity-only")
		})
	}
}

// A branch that began before the history of the sandbox does.
func TestSandboxFetchesAnOldBranch(t *testing.T) {
	f := newFixture(t)
	s, r := f.private(t)
	f.git(f.top, "checkout", "-q", "-b", "old", "HEAD~"+"55")
	f.commits(2)
	s.publish(t, f.top, "Org/Repo")
	b, in := f.open(r), f.serve(r)
	in.git(b.dir, "fetch", "-q", "origin", "old")
	if got := in.git(b.dir, "rev-list", "--count", "FETCH_HEAD"); got != "8" {
		t.Fatal(got)
	}
	in.git(b.dir, "fetch", "-q", "--unshallow", "origin")
	if got := in.git(b.dir, "rev-list", "--count", "origin/trunk"); got != "61" {
		t.Fatal(got)
	}
}

// Whoever prepares another run may cut the mirror's history after what this one has.
func TestMirrorThatWasCutSince(t *testing.T) {
	f := newFixture(t)
	s, r := f.private(t)
	b, in := f.open(r), f.serve(r)
	f.commits(recent + 20)
	s.publish(t, f.top, "Org/Repo")
	f.next(r)
	in.git(b.dir, "fetch", "-q", "origin")
	if got := in.git(b.dir, "rev-list", "--count", "HEAD..origin/trunk"); got != "70" {
		t.Fatal(got)
	}
}

func TestSandboxClonesAgain(t *testing.T) {
	for name, args := range map[string][]string{"whole": nil, "shallow": {"--depth=1"}, "old protocol": {"-c", "protocol.version=0"}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			_, r := f.private(t)
			f.open(r)
			in, dir := f.serve(r), filepath.Join(t.TempDir(), "clone")
			in.git("/", append(append([]string{"clone", "-q"}, args...), r.URL, dir)...)
			if got := in.git(dir, "log", "-1", "--format=%s"); got != "more" {
				t.Fatal(got)
			}
		})
	}
}

// A commit that no branch shows any more, and a file that was left out.
func TestSandboxFetchesObjects(t *testing.T) {
	f := newFixture(t)
	f.write("big.bin", noise(2, 300<<10))
	f.git(f.top, "add", "-A")
	f.git(f.top, "commit", "-q", "-m", "big")
	f.write("big.bin", "small\n")
	f.git(f.top, "commit", "-q", "-a", "-m", "small")
	s, r := f.private(t)
	r.FullHistory = true
	b, in := f.open(r), f.serve(r)
	if got := in.git(b.dir, "cat-file", "-s", "HEAD~61:big.bin"); got != "307200" {
		t.Fatal(got)
	}
	f.git(filepath.Join(s.root, "Org/Repo.git"), "config", "uploadpack.allowAnySHA1InWant", "true")
	oid := f.git(f.top, "commit-tree", "-p", "HEAD", "-m", "hidden", "HEAD^{tree}")
	f.git(f.top, "push", "-q", filepath.Join(s.root, "Org/Repo.git"), oid+":refs/pull/1/head")
	in.git(b.dir, "fetch", "-q", "origin", oid)
	if got := in.git(b.dir, "ls-remote", "origin", "refs/pull/*"); got != "" {
		t.Fatal(got)
	}
}

func TestSandboxCannotPush(t *testing.T) {
	f := newFixture(t)
	s, r := f.private(t)
	b, in := f.open(r), f.serve(r)
	out, err := in.try(b.dir, "push", "origin", "HEAD:refs/heads/x")
	if err == nil || !strings.Contains(out, "remote: no commits here") || !strings.Contains(out, "remote: use the tool") || !strings.Contains(out, "403") {
		t.Fatal(out)
	}
	resp, err := http.Post(in.url+"/org/repo.git/git-receive-pack", "application/x-git-receive-pack-request", strings.NewReader("0000"))
	if err != nil || resp.StatusCode != http.StatusForbidden {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
	if got := f.git(filepath.Join(s.root, "Org/Repo.git"), "for-each-ref", "refs/heads/x"); got != "" {
		t.Fatal(got)
	}
}

// Other repositories, whose names only begin like this one, are where they were.
func TestAddressesThatBeginAlike(t *testing.T) {
	f := newFixture(t)
	s, r := f.private(t)
	f.open(r)
	in := f.serve(r)
	s.answer(nil)
	s.publish(t, f.top, "Org/Repo-two")
	if got := in.git("/", "ls-remote", s.URL+"/Org/Repo-two.git", "HEAD"); !strings.Contains(got, "HEAD") {
		t.Fatal(got)
	}
	for _, path := range []string{"/other/repo.git/info/refs?service=git-upload-pack", "/org/repo.git/HEAD", "/org/repo.git/config", "/org/repo.git/../../key"} {
		resp, err := http.Get(in.url + path)
		if err != nil || resp.StatusCode != http.StatusNotFound {
			t.Fatal(path, resp, err)
		}
		_ = resp.Body.Close()
	}
}

// The host says why it cannot fetch, and a server that says nothing is given up.
func TestSandboxIsToldWhyNothingComes(t *testing.T) {
	f := newFixture(t)
	s, r := f.private(t)
	b := f.open(r)
	s.only("another")
	f.cache = f.cache.With(Access{GitHub: s.URL, App: &app{err: errs.New("x", errs.Auth, "install it", "the App is not installed")}, GH: noGH(t)})
	in := f.serve(r)
	out, err := in.try(b.dir, "fetch", "origin")
	if err == nil || !strings.Contains(out, "remote error: repository Org/Repo is private or does not exist: the App is not installed") {
		t.Fatal(out)
	}
	over := make(chan struct{})
	defer close(over)
	s.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-over:
		case <-r.Context().Done():
		}
		return true
	})
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, context.DeadlineExceeded)
	defer cancel()
	if err := f.cache.RefreshRefs(ctx, Upstreams([]task.Repo{r})[0].Repo, nil); err == nil {
		t.Fatal("a silent server has answered")
	}
}

// Many runs fetch at the same time, and the server is not asked by each of them.
func TestManySandboxesFetchAtOnce(t *testing.T) {
	f := newFixture(t)
	s, r := f.private(t)
	b, in := f.open(r), f.serve(r)
	f.commits(3)
	s.publish(t, f.top, "Org/Repo")
	f.stale()
	s.seen()
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			if i%2 == 0 {
				in.git(b.dir, "ls-remote", "origin")
				return
			}
			other := New(Options{Dir: f.state, Environ: testEnviron(t), Access: f.cache.access.Access})
			if err := other.RefreshRefs(t.Context(), r, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	in.git(b.dir, "fetch", "-q", "origin")
	in.git(b.dir, "ls-remote", "origin")
	if n := len(s.seen()); n > 40 {
		t.Fatalf("%d requests", n)
	}
}
