package repo

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
)

// agentUID is who the agent is in tests that run as root.
const agentUID = 1001

// workspace is a prepared tree as an agent sees it, made by one of the methods.
type workspace struct {
	t   *testing.T
	f   *fixture
	b   *box
	own PrepareOptions
}

// eachMethod runs a test on a workspace of every kind that this machine can make.
func eachMethod(t *testing.T, test func(t *testing.T, w *workspace)) {
	t.Run("copy", func(t *testing.T) { test(t, newWorkspace(t, false)) })
	t.Run("overlay", func(t *testing.T) {
		testenv.Need(t, "root, to mount an overlay", os.Geteuid() == 0)
		test(t, newWorkspace(t, true))
	})
}

func newWorkspace(t *testing.T, overlay bool) *workspace {
	t.Helper()
	f := newFixture(t)
	o := f.options()
	o.Overlay = overlay
	if os.Geteuid() == 0 {
		o.UID, o.GID = agentUID, agentUID
		// The agent reaches the tree through mounts; here it walks the path.
		for d := o.WorkDir; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
			_ = os.Chmod(d, 0o755) // those that are not there yet follow below
		}
	}
	p, err := f.cache.Prepare(t.Context(), f.resolve(task.Repo{}).Repo, o)
	if err != nil {
		t.Fatal(err)
	}
	w := &workspace{t: t, f: f, own: o}
	if overlay {
		mountOverlay(t, &p, filepath.Join(filepath.Dir(f.top), "merged"))
	}
	for d := o.WorkDir; os.Geteuid() == 0 && d != filepath.Dir(f.state); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.b = newBox(t, p)
	return w
}

// mountOverlay does what a provider does, and makes the mount a plain bind for box.
func mountOverlay(t *testing.T, p *Prepared, at string) {
	t.Helper()
	m := &p.Mounts[0]
	if m.Kind != sandbox.MountOverlay {
		t.Fatalf("mount %+v", m)
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	data := "lowerdir=" + m.Source + ",upperdir=" + m.Upper + ",workdir=" + m.Work + ",redirect_dir=on"
	if err := unix.Mount("overlay", at, "overlay", 0, data); err != nil {
		testenv.Need(t, "a kernel that mounts overlays: "+err.Error(), false)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Error(err)
		}
	})
	m.Kind, m.Source = sandbox.MountBind, at
}

// sh runs a shell script as the agent.
func (w *workspace) sh(script string) string {
	w.t.Helper()
	cmd := exec.Command("/bin/sh", "-euc", script)
	cmd.Dir = w.b.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(w.own.UID), Gid: uint32(w.own.GID)}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func TestDirectoriesCanBeRenamed(t *testing.T) {
	eachMethod(t, func(t *testing.T, w *workspace) {
		w.sh("git mv dir moved && mv moved again && git add -A")
		if got := w.sh("git status --porcelain -M"); got != "R  dir/b.txt -> again/b.txt\nR  dir/c.sh -> again/c.sh" {
			t.Fatal(got)
		}
		if err := os.Rename(filepath.Join(w.b.dir, "again"), filepath.Join(w.b.dir, "third")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestHardLinksAreKept(t *testing.T) {
	eachMethod(t, func(t *testing.T, w *workspace) {
		w.sh("ln a.txt a2.txt && echo more >>a2.txt && tail -1 a.txt | grep -q more && test $(stat -c %h a.txt) = 2")
	})
	// And none are made: the agent writes in place.
	w := newWorkspace(t, false)
	err := filepath.WalkDir(w.b.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		fi, err := d.Info()
		if st, ok := fi.Sys().(*syscall.Stat_t); ok && st.Nlink != 1 {
			t.Errorf("%s has %d links", p, st.Nlink)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestGitWorksInTheSandbox(t *testing.T) {
	eachMethod(t, func(t *testing.T, w *workspace) {
		if got := w.sh("git log --oneline | wc -l; git fsck 2>&1"); got != "1" {
			t.Fatal(got)
		}
		w.sh("git checkout -q -b work && echo x >x && git add x && git commit -q -m x && git gc -q --prune=now && git fsck && git stash list")
		if got := w.sh("git -c user.name= log -1 --format=%an,%ae; git status --porcelain"); got != agentName+","+AgentEmail {
			t.Fatal(got)
		}
		w.sh("git rebase -q trunk && git reset -q --hard trunk && test ! -e x")
	})
}

func TestWritesThroughMemoryMapsAreSeen(t *testing.T) {
	eachMethod(t, func(t *testing.T, w *workspace) {
		f, err := os.OpenFile(filepath.Join(w.b.dir, "a.txt"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		m, err := unix.Mmap(int(f.Fd()), 0, 3, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		copy(m, "ONE")
		if err := unix.Msync(m, unix.MS_SYNC); err != nil {
			t.Fatal(err)
		}
		if err := unix.Munmap(m); err != nil {
			t.Fatal(err)
		}
		if got := w.sh("git status --porcelain; head -1 a.txt"); got != " M a.txt\nONE" {
			t.Fatal(got)
		}
		if got := readAt(t, w.f.top, "a.txt"); got != "one\ntwo\nthree\n" {
			t.Fatalf("the user's file is %q", got)
		}
	})
}

func TestModesAndTimes(t *testing.T) {
	eachMethod(t, func(t *testing.T, w *workspace) {
		if got := w.sh("stat -c %a dir/c.sh a.txt; git diff --quiet"); got != "755\n644" {
			t.Fatal(got)
		}
		w.sh("chmod 755 a.txt && git diff | grep -q 'new mode 100755' && chmod 644 a.txt && git diff --quiet")
		w.sh("touch -d 2001-01-01 a.txt && git update-index --refresh && git diff --quiet")
		// Make and friends compare times: nothing of a fresh tree is from the future,
		// and what is written is newer than what was there.
		w.sh("test -z \"$(find . -newermt 'now + 1 second')\" && echo x >y && test y -nt dir/b.txt")
	})
}

// Git trusts the times of a fresh tree. To see that, every file is given other bytes
// of the same length and its time back: whoever reads the files finds them changed.
func TestStatusDoesNotReadTheFiles(t *testing.T) {
	eachMethod(t, func(t *testing.T, w *workspace) {
		for _, name := range []string{"a.txt", "dir/b.txt", "dir/c.sh", ".gitignore"} {
			p := filepath.Join(w.b.dir, name)
			fi, err := os.Stat(p)
			if err != nil {
				t.Fatal(err)
			}
			raw := []byte(readAt(t, w.b.dir, name))
			for i := range raw {
				raw[i] ^= 1
			}
			if err := os.WriteFile(p, raw, 0); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(p, fi.ModTime(), fi.ModTime()); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.sh("git status --porcelain"); got != "" {
			t.Fatalf("git read the files:\n%s", got)
		}
		// A write of the same length at any later time is found.
		if err := os.Chtimes(filepath.Join(w.b.dir, "a.txt"), time.Now(), time.Now()); err != nil {
			t.Fatal(err)
		}
		if got := w.sh("git status --porcelain"); got != " M a.txt" {
			t.Fatal(got)
		}
	})
}

func TestOverlayLeavesTheCheckoutAlone(t *testing.T) {
	testenv.Need(t, "root, to mount an overlay", os.Geteuid() == 0)
	w := newWorkspace(t, true)
	entry := filepath.Join(w.f.state, "cache", "checkout", w.f.cache.entries()[0])
	before := snapshot(t, entry)
	w.sh("git mv dir moved; echo x >>a.txt; rm link; git add -A; git commit -q -m x; git gc -q --prune=now")
	sameSnapshot(t, before, snapshot(t, entry))
	if got := w.sh("find . ! -user " + "1001"); got != "" {
		t.Fatalf("not the agent's: %s", got)
	}
	res := w.f.capture(w.b)
	if res.Files != 6 {
		t.Fatalf("result %+v", res)
	}
}

// The agent may leave directories that nobody can read or write.
func TestWorkspaceIsRemovedWhateverTheAgentLeft(t *testing.T) {
	w := newWorkspace(t, false)
	w.sh("mkdir -p ro/x none/x && touch ro/x/f none/x/f && chmod 555 ro/x ro && chmod 000 none/x && chmod 000 none")
	if err := RemoveAll(w.own.WorkDir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(w.own.WorkDir); err == nil {
		t.Fatal("it is still there")
	}
}

// Objects that only root can read are copied for an agent that is not root.
func TestUnreadableObjectsAreCopied(t *testing.T) {
	testenv.Need(t, "root", os.Geteuid() == 0)
	f := newFixture(t)
	f.messUp()
	want := f.git(f.top, "status", "--porcelain")
	if err := os.Chmod(filepath.Join(f.top, ".git/objects"), 0o700); err != nil {
		t.Fatal(err)
	}
	o := f.options()
	o.UID, o.GID = agentUID, agentUID
	r := f.resolve(task.Repo{Source: task.RepoLocal, Path: f.top, Uncommitted: true}).Repo
	p, err := f.cache.Prepare(t.Context(), r, o)
	if err != nil {
		t.Fatal(err)
	}
	b := newBox(t, p)
	if len(p.Objects) != 1 || strings.HasPrefix(b.host[p.Objects[0]], f.top) {
		t.Fatalf("objects %v at %v", p.Objects, b.host)
	}
	if !readableBy(&source{objects: []string{b.host[p.Objects[0]]}}, owner{uid: agentUID, gid: agentUID}) {
		t.Fatal("the copy is not readable either")
	}
	// The copy alone holds everything.
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(empty, filepath.Join(b.host[p.Objects[0]], "info/alternates")); err != nil {
		t.Fatal(err)
	}
	if err := f.cache.Setup(t.Context(), b, p); err != nil {
		t.Fatal(err)
	}
	if got := gitAt(t, b.dir, "-c", "safe.directory=*", "status", "--porcelain"); got != want {
		t.Fatalf("status:\n%s\nwant:\n%s", got, want)
	}
}
