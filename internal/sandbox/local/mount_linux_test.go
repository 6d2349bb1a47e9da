package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/testenv"
)

// tree makes a directory that belongs to the agent, with what the files map names.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, agentID(), agentID())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

const repoDir = "/tmp/workspace/repos/o/n"

func TestSandboxBindMounts(t *testing.T) {
	repo := tree(t, map[string]string{"a": "1", ".git/config": "safe"})
	objects := tree(t, map[string]string{"ab/cd": "o"})
	b := newBox(t, func(s *sandbox.Spec) {
		s.Mounts = []sandbox.Mount{
			{Kind: sandbox.MountBind, Source: repo, Target: repoDir},
			{Kind: sandbox.MountBind, Source: repo + "/.git/config", Target: repoDir + "/.git/config", ReadOnly: true},
			{Kind: sandbox.MountBind, Source: objects, Target: "/opt/insights/objects/0", ReadOnly: true},
			{Kind: sandbox.MountBind, Source: objects, Target: "/data/writable"},
		}
	})
	b.sh(t, `set -e
cd `+repoDir+`; echo 2 >b; mkdir -p d/e; touch ../sibling /tmp/workspace/repos/x
! echo evil >.git/config; ! mv .git/config .git/x; ! rm .git/config
test "$(cat /opt/insights/objects/0/ab/cd)" = o; ! touch /opt/insights/objects/0/x
touch /data/writable/y`)
	info, err := os.Stat(filepath.Join(repo, "b"))
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != agentID() || int(st.Gid) != agentID() {
		t.Errorf("the file belongs to %d:%d", st.Uid, st.Gid)
	}
	if got := string(must(os.ReadFile(filepath.Join(repo, ".git/config")))); got != "safe" {
		t.Errorf("config: %q", got)
	}
}

// A repository whose .git is a link would have the protection mounted elsewhere.
func TestSandboxRefusesMountsThroughLinks(t *testing.T) {
	needNamespaces(t)
	repo := tree(t, map[string]string{"elsewhere/config": "x"})
	if err := os.Symlink("elsewhere", filepath.Join(repo, ".git")); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	spec, _ := newSpec(t, root, "r1")
	spec.Mounts = []sandbox.Mount{
		{Kind: sandbox.MountBind, Source: repo, Target: repoDir},
		{Kind: sandbox.MountBind, Source: repo + "/elsewhere/config", Target: repoDir + "/.git/config", ReadOnly: true},
	}
	s, err := New(Options{Root: root}).Create(t.Context(), spec)
	if err == nil {
		_ = s.Destroy(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("got %v", err)
	}
}

func TestSandboxToolDirectory(t *testing.T) {
	tools := tree(t, map[string]string{"bin/tool": "#!/bin/sh\necho tool"})
	err := os.Chmod(filepath.Join(tools, "bin/tool"), 0o755)
	if err != nil {
		t.Fatal(err)
	}
	b := newBox(t, func(s *sandbox.Spec) { s.ToolDirs = []string{tools, "/gone/since"} })
	if got := b.sh(t, tools+"/bin/tool; touch "+tools+"/x 2>/dev/null || echo read-only"); got != "tool\nread-only" {
		t.Errorf("got %q", got)
	}
}

func TestSandboxOverlay(t *testing.T) {
	p := New(Options{})
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		if p.CanOverlay(t.Context(), dir) {
			t.Error("an ordinary user is promised an overlay")
		}
		return
	}
	testenv.Need(t, "overlays made by root", p.CanOverlay(t.Context(), dir))
	if left := must(os.ReadDir(dir)); len(left) > 0 {
		t.Errorf("CanOverlay left %v", left)
	}
	lower := tree(t, map[string]string{"sub/file": "1", "gone": "x"})
	upper, work := filepath.Join(dir, "upper"), filepath.Join(dir, "work")
	b := newBox(t, func(s *sandbox.Spec) {
		s.Mounts = []sandbox.Mount{{Kind: sandbox.MountOverlay, Source: lower, Target: repoDir, Upper: upper, Work: work}}
	})
	b.sh(t, `set -e; cd `+repoDir+`
mv sub moved; test "$(cat moved/file)" = 1; echo 2 >moved/file; rm gone; chmod 700 moved; touch top
test ! -e sub; test "$(stat -c %u .)" = "$(id -u)"`)
	if got := string(must(os.ReadFile(filepath.Join(lower, "sub/file")))); got != "1" {
		t.Errorf("the lower directory changed: %q", got)
	}
	if err := b.sandbox.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(work); !os.IsNotExist(err) {
		t.Errorf("the work directory is left: %v", err)
	}
	if _, err := os.Stat(filepath.Join(upper, "top")); err != nil {
		t.Errorf("the upper directory is the caller's: %v", err)
	}
}

func TestSandboxLimitsProcesses(t *testing.T) {
	b := newBox(t, func(s *sandbox.Spec) { s.PIDs = 30 })
	out, _ := b.run(t, "sh", "-c", "for i in $(seq 60); do sleep 100 & done 2>&1; wait")
	if !strings.Contains(out, "fork") {
		t.Errorf("60 processes where 30 are allowed: %s", out)
	}
	b.sh(t, "true")
}

// TestSandboxLimitsMemory: limits either hold or are reported as not held, never
// silently ignored.
func TestSandboxLimitsMemory(t *testing.T) {
	b := newBox(t, func(s *sandbox.Spec) { s.MemoryMiB, s.CPUs = 96, 1.5 })
	limiter, able := b.sandbox.(sandbox.Limiter)
	if !able {
		t.Fatal("the sandbox does not tell which limits hold")
	}
	again, err := b.provider.Open(t.Context(), b.sandbox.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got := again.(sandbox.Limiter).Unheld(); !slices.Equal(got, limiter.Unheld()) {
		t.Errorf("opened again, it tells %q, and before %q", got, limiter.Unheld())
	}
	if slices.Contains(limiter.Unheld(), sandbox.LimitMemory) {
		testenv.Need(t, "a cgroup of its own for memory", os.Geteuid() != 0)
		return // an ordinary user's memory has no bound here, and it is said
	}
	_, code := b.run(t, "sh", "-c", "head -c 400m /dev/zero | tail -c 400m >/dev/null")
	if out, _ := b.run(t, "sh", "-c", "dd if=/dev/zero of=/dev/null bs=300M count=1 2>&1"); code == 0 && strings.Contains(out, "copied") {
		t.Error("300 MiB were used where 96 are allowed")
	}
	b.sh(t, "true")
}

func TestUnheldLimits(t *testing.T) {
	both := sandbox.Spec{MemoryMiB: 1, CPUs: 1, PIDs: 9}
	for name, tt := range map[string]struct {
		spec sandbox.Spec
		held []string
		want []sandbox.Limit
	}{
		"nothing asked for": {sandbox.Spec{PIDs: 9}, nil, nil},
		"both held":         {both, []string{"pids", "cpu", "memory"}, nil},
		"none held":         {both, nil, []sandbox.Limit{sandbox.LimitMemory, sandbox.LimitCPUs}},
		"memory held":       {both, []string{"memory"}, []sandbox.Limit{sandbox.LimitCPUs}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unheld(tt.spec, tt.held); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestSandboxScratchHasOneBound: the directories that lie in memory share one bound, so
// that they cannot take more than the machine has.
func TestSandboxScratchHasOneBound(t *testing.T) {
	b := newBox(t, func(s *sandbox.Spec) { s.MemoryMiB = 256 })
	out := b.sh(t, `df -m /tmp "$HOME" /run /dev/shm | awk 'NR > 1 {print $2}' | sort -u`)
	if out != "192" {
		t.Errorf("sizes in MiB: %q, want 192 for all", out)
	}
	before, _ := b.run(t, "sh", "-c", `head -c 8m /dev/zero >/tmp/x; df -m "$HOME" | awk 'NR > 1 {print $3}'`)
	if before != "8" && before != "9" {
		t.Errorf("8 MiB in /tmp count as %s in the home", before)
	}
}

// TestSandboxLinkDirectoryIsReadOnly: an agent of the host user's uid can neither replace
// the socket nor fill the host's disk through the one directory they share.
func TestSandboxLinkDirectoryIsReadOnly(t *testing.T) {
	b := newBox(t, nil)
	b.sh(t, `! touch /run/insights/x && ! rm -f /run/insights/agent.sock && ! mv /run/insights/agent.sock /run/insights/y &&
! ln -s /tmp/x /run/insights/z && ! chmod 777 /run/insights`)
	if _, err := os.Lstat(filepath.Join(b.spec.Dir, linkName, wire.SocketName)); err != nil {
		t.Error(err)
	}
}

// TestInitFollowsNoLinkToASource: a component of a source that has become a symbolic
// link after the host resolved it is refused by PID 1.
func TestInitFollowsNoLinkToASource(t *testing.T) {
	needNamespaces(t)
	outside := tree(t, map[string]string{"private": "x"})
	planted := filepath.Join(t.TempDir(), "repo")
	if err := os.Symlink(must(filepath.Rel(filepath.Dir(planted), outside)), planted); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{planted, planted + "/private"} {
		spec, _ := newSpec(t, t.TempDir(), "r1")
		id, err := identityOf(spec)
		if err != nil {
			t.Fatal(err)
		}
		m := maker{spec: spec, identity: id}
		job, err := m.prepare()
		if err != nil {
			t.Fatal(err)
		}
		job.Plan.Mounts = []plan.Mount{{Source: source, Target: repoDir}}
		c, err := startInit(spec.AgentServer, spec.Dir, id, m.files)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.run(t.Context(), job); !errors.Is(err, syscall.ELOOP) {
			t.Errorf("%s: %v, want ELOOP", source, err)
		}
		c.close()
		if err := m.undo(t.Context(), c.pid1); err != nil {
			t.Error(err)
		}
		for _, f := range m.opened {
			_ = f.Close()
		}
	}
}
