package repo

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// noise are n bytes that do not compress.
func noise(seed uint64, n int) string {
	var b bytes.Buffer
	for r := rand.New(rand.NewPCG(seed, 0)); b.Len() < n; {
		b.WriteByte(byte(r.Uint32()))
	}
	return b.String()
}

func (f *fixture) mirrorOf(r task.Repo) string {
	return filepath.Join(f.cache.mirrorsDir(), mirrorName(r.URL)+".git")
}

func (f *fixture) next(r task.Repo) *box {
	f.t.Helper()
	f.run = task.NewID()
	b, _ := f.roundTrip(r)
	return b
}

func TestHistoryIsCutUnlessAllIsWanted(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	f.commits(recent + 10)
	f.git(f.top, "branch", "far")
	f.git(f.top, "tag", "v1")
	r := s.publish(t, f.top, "o/r")
	f.on(s, Access{})
	b, _ := f.roundTrip(r)
	if got := gitAt(t, b.dir, "rev-list", "--count", b.p.Repo.Commit); got != "50" {
		t.Fatalf("%s commits", got)
	}
	if got := gitAt(t, b.dir, "for-each-ref", "--format=%(refname)"); got != "refs/heads/trunk\nrefs/remotes/origin/HEAD\nrefs/remotes/origin/trunk" {
		t.Fatalf("refs:\n%s", got)
	}
	if got := strings.Join(b.p.Notices, "; "); !strings.Contains(got, "ends after 50 commits; --full-history brings all of it") {
		t.Fatalf("notices %q", got)
	}
	r.FullHistory = true
	b = f.next(r)
	if got := gitAt(t, b.dir, "rev-list", "--count", b.p.Repo.Commit); got != "61" || len(b.p.Notices) > 1 {
		t.Fatalf("%s commits, notices %q", got, b.p.Notices)
	}
	if got := gitAt(t, b.dir, "for-each-ref", "--format=%(refname)"); !strings.Contains(got, "refs/remotes/origin/far") || !strings.Contains(got, "refs/tags/v1") {
		t.Fatalf("refs:\n%s", got)
	}
	// What is there already costs nothing: it stays.
	f.commits(1)
	s.publish(t, f.top, "o/r")
	r.FullHistory = false
	b = f.next(r)
	if got := gitAt(t, b.dir, "rev-list", "--count", b.p.Repo.Commit); got != "62" {
		t.Fatalf("%s commits", got)
	}
}

func TestBranchesOfACutMirror(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	f.commits(recent + 1)
	f.git(f.top, "checkout", "-q", "-b", "far")
	f.write("a.txt", "far\n")
	f.git(f.top, "commit", "-q", "-a", "-m", "far")
	f.git(f.top, "checkout", "-q", "trunk")
	f.git(f.top, "tag", "far", "trunk") // E4: a tag of the same name does not confuse
	r := s.publish(t, f.top, "o/r")
	f.on(s, Access{})
	far := r
	far.Branch = "far"
	b, _ := f.roundTrip(far)
	if got := readAt(t, b.dir, "a.txt"); got != "far\n" {
		t.Fatal(got)
	}
	f.git(f.top, "branch", "-D", "-q", "far")
	f.git(f.top, "branch", "far/away") // cannot lie beside the old one
	s.publish(t, f.top, "o/r")
	b = f.next(r)
	if got := gitAt(t, b.dir, "branch", "-r"); strings.Contains(got, "far") {
		t.Fatalf("a branch of yesterday is shown: %s", got)
	}
	r.Branch = "far/away"
	b = f.next(r)
	if got := gitAt(t, b.dir, "branch", "-r"); !strings.Contains(got, "origin/far/away") {
		t.Fatal(got)
	}
	far.Branch = "gone"
	b = f.next(far)
	if got := readAt(t, b.dir, ".git/HEAD"); got != "ref: refs/heads/gone\n" {
		t.Fatal(got)
	}
}

// Of a big repository only what the commit needs is fetched, and of the next commit
// only what is new.
func TestOldVersionsOfBigFilesStayOnTheServer(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	for i := range uint64(3) {
		f.write("big", noise(i, 300<<10))
		f.git(f.top, "add", "-A")
		f.git(f.top, "commit", "-q", "-m", "big")
	}
	old := f.git(f.top, "rev-parse", "HEAD~1:big")
	r := s.publish(t, f.top, "o/r")
	f.on(s, Access{})
	r.FullHistory = true
	b, res := f.roundTrip(r)
	if got := readAt(t, b.dir, "big"); got != noise(2, 300<<10) || res.Commit == "" {
		t.Fatalf("the file has %d bytes", len(got))
	}
	if size := sizeOf(filepath.Join(f.mirrorOf(r), "objects")); size > 500<<10 {
		t.Fatalf("the mirror has %d bytes", size)
	}
	if got := strings.Join(b.p.Notices, "; "); !strings.Contains(got, "old versions of files over 128 KB") {
		t.Fatalf("notices %q", got)
	}
	// A sandbox that reaches the server gets them from there.
	if got := gitAt(t, b.dir, "cat-file", "-s", old); got != "307200" {
		t.Fatal(got)
	}
	f.write("a.txt", "small\n")
	f.git(f.top, "commit", "-q", "-a", "-m", "small")
	s.publish(t, f.top, "o/r")
	was := sizeOf(filepath.Join(f.mirrorOf(r), "objects"))
	f.next(r)
	if grew := sizeOf(filepath.Join(f.mirrorOf(r), "objects")) - was; grew > 50<<10 {
		t.Fatalf("a small commit brought %d bytes", grew)
	}
}

func TestSecondRunFetchesWhatIsNew(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	f.write("big", noise(1, 1<<20))
	f.git(f.top, "add", "-A")
	f.commits(recent + 3) // the first of them has the file
	r := s.publish(t, f.top, "o/r")
	f.on(s, Access{})
	f.roundTrip(r)
	s.seen()
	f.next(r)
	if seen := s.seen(); len(seen) > 4 {
		t.Fatalf("nothing is new, and yet: %q", seen)
	}
	was := sizeOf(filepath.Join(f.mirrorOf(r), "objects"))
	f.write("a.txt", "new\n")
	f.git(f.top, "commit", "-q", "-a", "-m", "new")
	s.publish(t, f.top, "o/r")
	if got := readAt(t, f.next(r).dir, "a.txt"); got != "new\n" {
		t.Fatal(got)
	}
	if grew := sizeOf(filepath.Join(f.mirrorOf(r), "objects")) - was; grew > 100<<10 {
		t.Fatalf("a small commit brought %d bytes", grew)
	}
}

func TestServerThatCanLeaveNothingOut(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	f.commits(recent + 1)
	f.git(f.top, "branch", "far")
	r := s.publish(t, f.top, "o/r")
	dir := filepath.Join(s.root, "o/r.git")
	gitAt(t, dir, "config", "http.uploadpack", "false")
	gitAt(t, dir, "update-server-info")
	files := http.FileServer(http.Dir(s.root))
	s.answer(func(w http.ResponseWriter, r *http.Request) bool { files.ServeHTTP(w, r); return true })
	f.on(s, Access{})
	b, _ := f.roundTrip(r)
	if got := gitAt(t, b.dir, "rev-list", "--count", b.p.Repo.Commit); got != "52" {
		t.Fatalf("%s commits", got)
	}
	f.next(r)
}

// E4: a server that stops in the middle of a pack is given up, and what it left is
// replaced by the next try.
func TestStalledCloneIsGivenUpAndMadeAgain(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	r := s.publish(t, f.top, "o/r")
	f.on(s, Access{})
	f.cache.stall = 300 * time.Millisecond
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		fetch := r.Method == http.MethodPost && r.ContentLength > 300 // the question for refs is shorter
		if fetch {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush() // the client sees it or is gone
			<-r.Context().Done()
		}
		return fetch
	})
	begun := time.Now()
	_, err := f.cache.Prepare(t.Context(), r, f.options())
	if errs.KindOf(err) != errs.Unavailable || time.Since(begun) > 30*time.Second {
		t.Fatalf("after %s: %v", time.Since(begun), err)
	}
	if left, err := filepath.Glob(filepath.Join(f.cache.mirrorsDir(), "*.git*")); err != nil || len(left) > 0 {
		t.Fatalf("left behind: %q, %v", left, err)
	}
	s.answer(nil)
	f.cache.stall = fetchStall                       // a machine may be busy
	writeAt(t, f.mirrorOf(r)+".tmp", "half", "made") // as a killed process leaves it
	f.roundTrip(r)
	if left, err := filepath.Glob(filepath.Join(f.cache.mirrorsDir(), "*.tmp")); err != nil || len(left) > 0 {
		t.Fatalf("left behind: %q, %v", left, err)
	}
}

func TestLocksOfKilledProcessesAreRemoved(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	f.commits(recent + 1)
	r := s.publish(t, f.top, "o/r")
	f.on(s, Access{})
	f.roundTrip(r)
	f.commits(1)
	s.publish(t, f.top, "o/r")
	for _, name := range []string{"shallow.lock", "packed-refs.lock", "refs/heads/trunk.lock", "objects/pack/tmp_pack_x"} {
		writeAt(t, f.mirrorOf(r), name, "")
	}
	mark := filepath.Join(f.mirrorOf(r), "same")
	writeAt(t, f.mirrorOf(r), "same", "")
	f.next(r)
	if _, err := os.Stat(mark); err != nil {
		t.Fatal("the mirror was made anew")
	}
	if left, err := filepath.Glob(filepath.Join(f.mirrorOf(r), "objects/pack/tmp_*")); err != nil || len(left) > 0 {
		t.Fatalf("left behind: %q, %v", left, err)
	}
}

// An object that is broken is found when the files are checked out: the mirror is made
// again, and a sandbox that shows the old one keeps it.
func TestMirrorThatIsFoundBrokenLaterIsReplaced(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	f.write("big", noise(1, 64<<10))
	f.git(f.top, "add", "-A")
	f.git(f.top, "commit", "-q", "-m", "big")
	r := s.publish(t, f.top, "o/r")
	f.on(s, Access{})
	b, _ := f.roundTrip(r)
	objects, err := filepath.Glob(filepath.Join(f.mirrorOf(r), "objects/??/*"))
	if err != nil || len(objects) == 0 {
		t.Fatalf("objects %q, %v", objects, err)
	}
	for _, p := range objects {
		raw := []byte(readAt(t, filepath.Dir(p), filepath.Base(p)))
		if len(raw) < 32<<10 {
			continue // only the big file is broken
		}
		for i := len(raw) / 2; i < len(raw)/2+64; i++ {
			raw[i] ^= 0xff
		}
		if err := os.Chmod(p, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveAll(filepath.Join(f.state, "cache", "checkout")); err != nil {
		t.Fatal(err)
	}
	if got := readAt(t, f.next(r).dir, "big"); got != noise(1, 64<<10) {
		t.Fatal("another file")
	}
	if _, err := os.Stat(f.mirrorOf(r) + ".old"); err != nil {
		t.Fatalf("the mirror of run %s is gone: %v", b.p.Run, err)
	}
	for _, run := range []task.ID{b.p.Run, f.run} {
		if err := f.cache.Remove(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.cache.Sweep(t.Context(), func(task.ID) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.mirrorOf(r) + ".old"); err == nil {
		t.Fatal("the replaced mirror stays for ever")
	}
}

func TestUnusedMirrorsAreEvictedOldestFirst(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	f.write("big", noise(1, 256<<10))
	f.git(f.top, "add", "-A")
	f.git(f.top, "commit", "-q", "-m", "big")
	var all []task.Repo
	for _, name := range []string{"o/a", "o/b", "o/c"} {
		all = append(all, s.publish(t, f.top, name))
	}
	f.on(s, Access{})
	f.cache.maxMirrors = 600 << 10
	there := func() string {
		out := ""
		for i, r := range all {
			if _, err := os.Stat(f.mirrorOf(r)); err == nil {
				out += string(rune('a' + i))
			}
		}
		return out
	}
	a, _ := f.roundTrip(all[0])
	b := f.next(all[1])
	f.next(all[2])
	if got := there(); got != "abc" {
		t.Fatalf("mirrors %q: all are borrowed from", got)
	}
	for _, run := range []task.ID{a.p.Run, b.p.Run} {
		if err := f.cache.Remove(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := f.cache.lock(t.Context(), f.cache.mirrorsDir(), mirrorName(all[0].URL))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.cache.Sweep(t.Context(), func(task.ID) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if got := there(); got != "ac" {
		t.Fatalf("mirrors %q: a is in use, b is the oldest that is not", got)
	}
	unlock()
	f.next(all[1])
	if got := there(); got != "bc" {
		t.Fatalf("mirrors %q", got)
	}
}

func TestManyRunsAtOnceOnAServer(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	f.commits(recent + 1)
	r := s.publish(t, f.top, "o/r")
	f.on(s, Access{})
	var wait sync.WaitGroup
	for i := range 6 {
		wait.Go(func() {
			run := task.NewID()
			c := New(Options{Dir: f.state, Environ: testEnviron(t), Access: f.cache.access.Access}) // as another process
			one := r
			one.FullHistory = i%2 == 1
			p, err := c.Prepare(t.Context(), one, PrepareOptions{
				Run: run, UID: os.Getuid(), GID: os.Getgid(), WorkDir: filepath.Join(f.state, "run", string(run)),
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
}

// E4: what of a repository the sandbox does not get is said, and odd names are no
// trouble.
func TestOddRepositories(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	f.write("README", "upper\n")
	f.write("readme", "lower\n")
	f.write("Ünï cöde/ -x", "odd\n")
	f.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("a", 64) + "\nsize 3\n"
	f.write("x.bin", pointer)
	f.write(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ../sub\n")
	f.git(f.top, "add", "-A")
	f.git(f.top, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",sub")
	f.git(f.top, "commit", "-q", "-m", "odd")
	r := s.publish(t, f.top, "o/r")
	f.on(s, Access{})
	b, _ := f.roundTrip(r)
	for name, want := range map[string]string{"README": "upper\n", "readme": "lower\n", "Ünï cöde/ -x": "odd\n", "x.bin": pointer} {
		if got := readAt(t, b.dir, name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if got := strings.Join(b.p.Notices, "; "); strings.Count(got, "submodules") != 1 || strings.Count(got, "Git LFS") != 1 {
		t.Fatalf("notices %q", got)
	}
}

// E4: HEAD may name a branch that was never pushed.
func TestDefaultBranchThatDoesNotExist(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	r := s.publish(t, f.top, "o/r")
	gitAt(t, filepath.Join(s.root, "o/r.git"), "symbolic-ref", "HEAD", "refs/heads/main")
	f.on(s, Access{})
	if err := f.refused(r); errs.KindOf(err) != errs.Usage || !strings.HasSuffix(errs.HintOf(err), "--branch trunk") {
		t.Fatalf("%v; hint %q", err, errs.HintOf(err))
	}
	r.Branch = "trunk"
	f.roundTrip(r)
}

func TestEmptyRepositoryOnAServer(t *testing.T) {
	f, s := newFixture(t), newGitServer(t)
	gitAt(t, "", "init", "-q", "--bare", filepath.Join(s.root, "o/r.git"))
	f.on(s, Access{})
	r, err := Parse(s.URL + "/o/r.git")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.refused(r); errs.KindOf(err) != errs.Conflict || !strings.Contains(err.Error(), "no commit yet") {
		t.Fatal(err)
	}
}
