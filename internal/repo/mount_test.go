package repo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
)

func (f *fixture) mount(trust bool) (Prepared, error) {
	f.t.Helper()
	o := f.options()
	o.TrustMount = trust
	return f.cache.Prepare(f.t.Context(), f.resolve(task.Repo{Source: task.RepoLocal, Path: f.top, Mount: true}).Repo, o)
}

func TestMountPlan(t *testing.T) {
	f := newFixture(t)
	if err := os.RemoveAll(filepath.Join(f.top, ".git/hooks")); err != nil {
		t.Fatal(err)
	}
	p, err := f.mount(false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range p.Mounts {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		got = append(got, mode+" "+strings.TrimPrefix(m.Source, f.top)+" "+strings.TrimPrefix(m.Target, p.Repo.Dir()))
	}
	want := "rw  ,rw /.git /.git,ro /.git/config /.git/config,ro /.git/hooks /.git/hooks,ro /.git/info /.git/info"
	if strings.Join(got, ",") != want {
		t.Fatalf("mounts %q", got)
	}
}

// What a mounted sandbox must not do, tried in one.
func TestMountedRepositoryIsProtected(t *testing.T) {
	bwrap, err := exec.LookPath("bwrap")
	if err == nil {
		err = exec.Command(bwrap, "--ro-bind", "/", "/", "true").Run()
	}
	testenv.Need(t, "a working bwrap", err == nil)
	f := newFixture(t)
	f.write(".git/modules/sub/config", "[core]\n")
	p, err := f.mount(false)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--ro-bind", "/", "/", "--tmpfs", "/tmp", "--dev", "/dev"}
	for _, m := range p.Mounts {
		how := "--bind"
		if m.ReadOnly {
			how = "--ro-bind"
		}
		args = append(args, how, m.Source, m.Target)
	}
	args = append(args, "--chdir", p.Repo.Dir(), "--", "/bin/sh", "-c", `
no() { if "$@" 2>/dev/null; then echo "did: $*"; fi; }
no mv .git x
no sh -c 'echo >>.git/config'
no mv .git/config y
no rm -f .git/config
no git config a.b c
no touch .git/hooks/post-commit
no mv .git/hooks z
no touch .git/info/attributes
no mv .git/info z
no sh -c 'echo >>.git/modules/sub/config'
no mkdir .git/modules/other
no mv .git/modules z
git -c user.name=x -c user.email=x@y commit -q --allow-empty -m works && echo new >new && git add new && echo fine`)
	out, err := exec.Command(bwrap, args...).CombinedOutput()
	if err != nil || string(out) != "fine\n" {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := f.git(f.top, "log", "-1", "--format=%s"); got != "works" {
		t.Fatal(got)
	}
}

func TestMountThatCannotBeProtectedNeedsTrust(t *testing.T) {
	for name, prepare := range map[string]func(f *fixture){
		"hooks in the tree":    func(f *fixture) { f.git(f.top, "config", "core.hooksPath", ".husky") },
		"absolute hooks path":  func(f *fixture) { f.git(f.top, "config", "core.hooksPath", f.top+"/.husky") },
		"program in the tree":  func(f *fixture) { f.git(f.top, "config", "core.fsmonitor", "./monitor") },
		"settings in the tree": func(f *fixture) { f.git(f.top, "config", "include.path", "../settings") },
		"worktree settings":    func(f *fixture) { f.git(f.top, "config", "extensions.worktreeConfig", "true") },
		"hooks is a link": func(f *fixture) {
			hooks := filepath.Join(f.top, ".git/hooks")
			if err := os.RemoveAll(hooks); err != nil {
				f.t.Fatal(err)
			}
			if err := os.Symlink("../hooks", hooks); err != nil {
				f.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			prepare(f)
			_, err := f.mount(false)
			if errs.KindOf(err) != errs.Usage || !strings.Contains(errs.HintOf(err), "--trust-mount") {
				t.Fatalf("error %v, hint %q", err, errs.HintOf(err))
			}
			if _, err := f.mount(true); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Both of these made git on the host run a program of the sandbox's [tried].
func TestWhatASandboxPlantedInAMountIsTold(t *testing.T) {
	for _, version := range []string{"2", "4"} {
		f := newFixture(t)
		p, err := f.mount(false)
		if err != nil {
			t.Fatal(err)
		}
		res, err := f.cache.Capture(t.Context(), nil, p)
		if err != nil || res.Error != "" || res.Commit != "" {
			t.Fatalf("result %+v, %v", res, err)
		}
		f.write(".git/commondir", "../evil\n")
		nested := filepath.Join(f.top, "nested")
		f.git("", "init", "-q", nested)
		f.git(nested, "commit", "-q", "--allow-empty", "-m", "x")
		if err := os.Rename(filepath.Join(f.top, ".git/commondir"), filepath.Join(f.state, "commondir")); err != nil {
			t.Fatal(err)
		}
		f.git(f.top, "add", "nested")
		f.git(f.top, "update-index", "--index-version", version)
		if err := os.Rename(filepath.Join(f.state, "commondir"), filepath.Join(f.top, ".git/commondir")); err != nil {
			t.Fatal(err)
		}
		res, err = f.cache.Capture(t.Context(), nil, p)
		if err != nil || !strings.Contains(res.Error, "commondir") || !strings.Contains(res.Error, `"nested"`) {
			t.Fatalf("result %+v, %v", res, err)
		}
		if _, err := os.Lstat(filepath.Join(f.top, ".git/commondir")); err == nil {
			t.Fatal("commondir is still there")
		}
	}
}

func FuzzReadIndex(f *testing.F) {
	top := f.TempDir()
	gitAt(f, "", "init", "-q", top)
	for _, name := range []string{"a", "dir/b", "dir/bc"} {
		writeAt(f, top, name, name)
	}
	gitAt(f, top, "add", "-A")
	for _, version := range []string{"2", "4"} {
		gitAt(f, top, "update-index", "--index-version", version)
		f.Add([]byte(readAt(f, top, ".git/index")))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		// The checksum keeps the fuzzer out otherwise.
		if x, err := openIndex(raw, 20); err == nil {
			n := 0
			if x.each(func(int, indexEntry) { n++ }) == nil && n != x.count {
				t.Fatalf("%d entries of %d", n, x.count)
			}
		}
		if entries, err := readIndex(raw); err == nil && len(entries) > len(raw) {
			t.Fatalf("%d entries in %d bytes", len(entries), len(raw))
		}
	})
}
