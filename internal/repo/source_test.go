package repo

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
)

// roundTrip runs a whole repository through: in, a change, out, and into the
// repository's refs.
func (f *fixture) roundTrip(r task.Repo) (*box, task.RepoResult) {
	f.t.Helper()
	b := f.open(r)
	if got := gitAt(f.t, b.dir, "status", "--porcelain"); got != "" {
		f.t.Fatalf("status in the sandbox:\n%s", got)
	}
	gitAt(f.t, b.dir, "fsck", "--connectivity-only")
	writeAt(f.t, b.dir, "new", "new\n")
	res := f.capture(b)
	if res.Files != 1 || res.Insertions != 1 || res.Ref == "" {
		f.t.Fatalf("result %+v", res)
	}
	return b, res
}

func TestLinkedWorktree(t *testing.T) {
	f := newFixture(t)
	wt := filepath.Join(filepath.Dir(f.top), "wt")
	f.git(f.top, "worktree", "add", "-q", "-b", "side", wt)
	writeAt(t, wt, "side", "side\n")
	f.git(wt, "add", "-A")
	f.git(wt, "commit", "-q", "-m", "side")
	b, res := f.roundTrip(task.Repo{Source: task.RepoLocal, Path: wt})
	if b.p.Repo.Branch != "side" || b.p.Repo.Path != wt || b.p.Repo.Name != "wt" {
		t.Fatalf("resolved %+v", b.p.Repo)
	}
	if got := f.git(f.top, "rev-parse", res.Ref); got != res.Commit {
		t.Fatalf("ref is %s, want %s", got, res.Commit)
	}
}

func TestSubmoduleCheckout(t *testing.T) {
	f := newFixture(t)
	outer := filepath.Join(filepath.Dir(f.top), "outer")
	f.git("", "init", "-q", outer)
	f.git(outer, "submodule", "--quiet", "add", f.top, "sub")
	f.git(outer, "commit", "-q", "-m", "outer")
	b, _ := f.roundTrip(task.Repo{Source: task.RepoLocal, Path: filepath.Join(outer, "sub")})
	if b.p.Repo.Path != filepath.Join(outer, "sub") {
		t.Fatalf("resolved %+v", b.p.Repo)
	}
}

func TestRepositoryWithSubmodule(t *testing.T) {
	f := newFixture(t)
	outer := filepath.Join(filepath.Dir(f.top), "outer")
	f.git("", "init", "-q", outer)
	f.git(outer, "submodule", "--quiet", "add", f.top, "sub")
	f.git(outer, "commit", "-q", "-m", "outer")
	writeAt(t, outer, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	f.git(outer, "add", "-A")
	f.git(outer, "commit", "-q", "-m", "lfs")
	b, _ := f.roundTrip(task.Repo{Source: task.RepoLocal, Path: outer})
	if len(b.p.Notices) != 2 || b.p.Notices[0] != "submodules are empty in the sandbox: sub" ||
		b.p.Notices[1] != "files that Git LFS keeps are pointers in the sandbox: *.bin" {
		t.Fatalf("notices %q", b.p.Notices)
	}
}

func TestNamed(t *testing.T) {
	for want, paths := range map[string][]string{
		"a": {"a"}, "a, b, c": {"a", "b", "c"}, "a, b, c and 2 more": {"a", "b", "c", "d", "e"}, "ax": {"a\n\x1bx"},
	} {
		if got := named(paths); got != want {
			t.Errorf("%q", got)
		}
	}
}

func TestDetachedHead(t *testing.T) {
	f := newFixture(t)
	f.git(f.top, "checkout", "-q", "--detach")
	b, _ := f.roundTrip(task.Repo{})
	if b.p.Repo.Branch != "" || b.p.Repo.Commit == "" {
		t.Fatalf("resolved %+v", b.p.Repo)
	}
	if got := readAt(t, b.dir, ".git/HEAD"); got != b.p.Repo.Commit+"\n" {
		t.Fatalf("HEAD is %q", got)
	}
}

func TestBareRepository(t *testing.T) {
	f := newFixture(t)
	bare := filepath.Join(filepath.Dir(f.top), "x.git")
	f.git("", "clone", "-q", "--bare", f.top, bare)
	b, _ := f.roundTrip(task.Repo{Source: task.RepoLocal, Path: bare})
	if b.p.Repo.Name != "x" || b.p.Repo.Branch != "trunk" {
		t.Fatalf("resolved %+v", b.p.Repo)
	}
}

func TestShallowRepository(t *testing.T) {
	f := newFixture(t)
	f.write("a.txt", "second\n")
	f.git(f.top, "commit", "-q", "-a", "-m", "second")
	clone := filepath.Join(filepath.Dir(f.top), "shallow")
	f.git("", "clone", "-q", "--depth=1", "file://"+f.top, clone)
	b, _ := f.roundTrip(task.Repo{Source: task.RepoLocal, Path: clone})
	if got := gitAt(t, b.dir, "rev-list", "--count", "HEAD"); got != "1" {
		t.Fatalf("%s commits in the sandbox", got)
	}
	f.git(clone, "fsck")
}

func TestBorrowedObjectsAreFollowed(t *testing.T) {
	f := newFixture(t)
	dir := filepath.Dir(f.top)
	f.git("", "clone", "-q", "--shared", f.top, filepath.Join(dir, "second"))
	f.git("", "clone", "-q", "--shared", filepath.Join(dir, "second"), filepath.Join(dir, "third"))
	// A relative path, as `git clone --reference` never writes but git reads.
	writeAt(t, filepath.Join(dir, "third"), ".git/objects/info/alternates", "# comment\n../../../second/.git/objects\n")
	b, _ := f.roundTrip(task.Repo{Source: task.RepoLocal, Path: filepath.Join(dir, "third")})
	if len(b.p.Objects) != 3 {
		t.Fatalf("objects %v", b.p.Objects)
	}
	masks := 0
	for _, m := range b.p.Mounts {
		if strings.HasSuffix(m.Target, "/info/alternates") && m.ReadOnly {
			masks++
		}
	}
	if masks != 2 {
		t.Fatalf("mounts %+v", b.p.Mounts)
	}
}

func TestSHA256Repository(t *testing.T) {
	f := newFixture(t)
	top := filepath.Join(filepath.Dir(f.top), "long")
	f.git("", "init", "-q", "--object-format=sha256", top)
	writeAt(t, top, "a", "a\n")
	f.git(top, "add", "-A")
	f.git(top, "commit", "-q", "-m", "first")
	b, _ := f.roundTrip(task.Repo{Source: task.RepoLocal, Path: top})
	if len(b.p.Base) != 64 {
		t.Fatalf("base %q", b.p.Base)
	}
}

func TestSubdirectoryMeansItsRepository(t *testing.T) {
	f := newFixture(t)
	got := f.resolve(task.Repo{Source: task.RepoLocal, Path: "./dir"})
	if got.Repo.Path != f.top || got.Repo.Org != "local" || got.Repo.Name != "project" {
		t.Fatalf("resolved %+v", got.Repo)
	}
}

func TestBranchNamedLikeATag(t *testing.T) {
	f := newFixture(t)
	f.git(f.top, "tag", "v1")
	f.git(f.top, "checkout", "-q", "-b", "v1")
	f.write("a.txt", "on the branch\n")
	f.git(f.top, "commit", "-q", "-a", "-m", "second")
	want := f.git(f.top, "rev-parse", "refs/heads/v1")
	f.git(f.top, "checkout", "-q", "trunk")
	b, _ := f.roundTrip(task.Repo{Source: task.RepoLocal, Path: f.top, Branch: "v1"})
	if b.p.Base != want {
		t.Fatalf("base %s, want the branch's %s", b.p.Base, want)
	}
}

func TestBranchOfTheRemoteAndUnknownBranch(t *testing.T) {
	f := newFixture(t)
	f.git(f.top, "branch", "far")
	clone := filepath.Join(filepath.Dir(f.top), "clone")
	f.git("", "clone", "-q", f.top, clone)
	b, _ := f.roundTrip(task.Repo{Source: task.RepoLocal, Path: clone, Branch: "far"})
	if got := gitAt(t, b.dir, "rev-parse", "--abbrev-ref", "HEAD@{upstream}"); got != "origin/far" {
		t.Fatalf("upstream %q", got)
	}
	got := f.resolve(task.Repo{Source: task.RepoLocal, Path: clone, Branch: "nowhere"})
	if got.Repo.Branch != "nowhere" || got.Repo.Commit == "" || len(got.Notices) != 1 {
		t.Fatalf("resolved %+v", got)
	}
}

// E2: a credential in the remote's URL stays on the host.
func TestOriginCredentialStaysOutOfTheSandbox(t *testing.T) {
	f := newFixture(t)
	f.git(f.top, "remote", "add", "origin", "https://x-access-token:ghp_secret@github.com/Acme/App.git")
	f.git(f.top, "config", "http.https://github.com/.extraheader", "AUTHORIZATION: basic ghp_secret")
	got := f.resolve(task.Repo{Source: task.RepoLocal, Path: f.top})
	if got.Repo.Org != "acme" || got.Repo.Name != "app" || !got.GitHub {
		t.Fatalf("resolved %+v", got)
	}
	b, _ := f.roundTrip(task.Repo{})
	if got := gitAt(t, b.dir, "remote", "get-url", "origin"); got != "https://github.com/Acme/App.git" {
		t.Fatalf("origin is %q", got)
	}
	for _, dir := range []string{b.dir, f.state} {
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			raw, err := os.ReadFile(p)
			if strings.Contains(string(raw), "ghp_secret") {
				t.Errorf("the credential is in %s", p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefusalsOfLocalPaths(t *testing.T) {
	f := newFixture(t)
	dir := filepath.Dir(f.top)
	empty, plain := filepath.Join(dir, "empty"), filepath.Join(dir, "plain")
	f.git("", "init", "-q", empty)
	if err := os.Mkdir(plain, 0o755); err != nil {
		t.Fatal(err)
	}
	wt := filepath.Join(dir, "wt")
	f.git(f.top, "worktree", "add", "-q", "-b", "side", wt)
	bare := filepath.Join(dir, "x.git")
	f.git("", "clone", "-q", "--bare", f.top, bare)
	for _, tt := range []struct {
		repo task.Repo
		kind errs.Kind
		says string
	}{
		{task.Repo{Path: empty}, errs.Conflict, "no commit yet"},
		{task.Repo{Path: plain}, errs.NotFound, "not in a git repository"},
		{task.Repo{Path: filepath.Join(dir, "none")}, errs.NotFound, "not a directory"},
		{task.Repo{Path: filepath.Join(f.top, "a.txt")}, errs.NotFound, "not a directory"},
		{task.Repo{Path: filepath.Join(f.top, ".git")}, errs.Usage, "inside a .git directory"},
		{task.Repo{Path: f.top, Branch: "-x"}, errs.Usage, "not a branch name"},
		{task.Repo{Path: f.top, Branch: "a..b"}, errs.Usage, "not a branch name"},
		{task.Repo{Path: f.top, Branch: "side", Uncommitted: true}, errs.Usage, "not on branch"},
		{task.Repo{Path: f.top, Branch: "side", Mount: true}, errs.Usage, "not on branch"},
		{task.Repo{Path: wt, Mount: true}, errs.Usage, "linked worktree"},
		{task.Repo{Path: bare, Mount: true}, errs.Usage, "bare repository"},
		{task.Repo{Path: bare, Uncommitted: true}, errs.Usage, "bare repository"},
	} {
		tt.repo.Source = task.RepoLocal
		_, err := f.cache.Resolve(t.Context(), tt.repo, ResolveOptions{})
		if errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) || errs.HintOf(err) == "" {
			t.Errorf("Resolve(%+v) = %v (%s, hint %q), want %s: %s", tt.repo, err, errs.KindOf(err), errs.HintOf(err), tt.kind, tt.says)
		}
	}
}

func TestRepositoryOfAnotherUser(t *testing.T) {
	testenv.Need(t, "root", os.Geteuid() == 0)
	f := newFixture(t)
	if err := giveAway(f.top, 1001, 1001); err != nil {
		t.Fatal(err)
	}
	local := task.Repo{Source: task.RepoLocal, Path: f.top}
	_, err := f.cache.Resolve(t.Context(), local, ResolveOptions{})
	if errs.KindOf(err) != errs.Auth || !strings.Contains(errs.HintOf(err), "safe.directory "+f.top) {
		t.Fatalf("Resolve: %v, hint %q", err, errs.HintOf(err))
	}
	// The directory of the test itself is root's alone.
	if err := os.Chmod(filepath.Dir(filepath.Dir(f.top)), 0o755); err != nil {
		t.Fatal(err)
	}
	// Under sudo the repository is the invoking user's, and what we add to it
	// becomes that user's too.
	f.cache = New(Options{Dir: f.state, Environ: append(testEnviron(t), "SUDO_UID=1001")})
	f.roundTrip(task.Repo{})
	err = filepath.WalkDir(f.top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if own, ok := ownerOf(fi); err == nil && ok && own.uid != 1001 {
			t.Errorf("%s belongs to %d", p, own.uid)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDeclaredSafeDirectoryIsTrusted(t *testing.T) {
	testenv.Need(t, "root", os.Geteuid() == 0)
	f := newFixture(t)
	if err := os.Chmod(filepath.Dir(filepath.Dir(f.top)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := giveAway(f.top, 1001, 1001); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	writeAt(t, home, ".gitconfig", "[safe]\n\tdirectory = /elsewhere\n\tdirectory = "+f.top+"\n")
	f.cache = New(Options{Dir: f.state, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}})
	f.roundTrip(task.Repo{})
}

func TestValidBranch(t *testing.T) {
	t.Parallel()
	for _, b := range []string{"main", "a/b", "v1.2", "feature/ü", "a-b", "a@b"} {
		if !validBranch(b) {
			t.Errorf("%q is refused", b)
		}
	}
	for _, b := range []string{"", "-x", "a..b", "a b", "a~", "a^", "a:b", "a?", "a*", "a[", "a\\b", "@", "HEAD", "a@{b", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.", "a\nb"} {
		if validBranch(b) {
			t.Errorf("%q is taken", b)
		}
	}
}
