package local

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
)

// TestSandboxHoldsAgainstAttempts is the table of what an agent may try. A second
// value is the answer where PID 1 has another uid (root) if that differs.
func TestSandboxHoldsAgainstAttempts(t *testing.T) {
	program := attemptsOf(os.Getenv(serverEnv))
	b := newBox(t, func(s *sandbox.Spec) { s.ToolDirs = []string{filepath.Dir(program)} })
	got := map[string]string{}
	for line := range strings.Lines(b.sh(t, program)) {
		name, answer, _ := strings.Cut(strings.TrimSpace(line), " ")
		got[name] = answer
	}
	want := map[string]string{
		"write-usr": "EROFS", "write-etc": "EROFS", "write-root": "EROFS", "write-server": "EACCES EROFS",
		"write-sysctl": "EACCES", "write-core": "EACCES",
		"read-shadow": "ENOENT", "read-ssh": "ENOENT", "read-private": "ENOENT", "read-var": "ENOENT",
		"read-root": "ENOENT", "read-old": "ENOENT",
		"proc-1-mem": "ENOENT", "proc-1-environ": "ENOENT", "proc-1-maps": "ENOENT", "proc-1-root": "ENOENT",
		"proc-1-cwd": "ENOENT", "proc-1-exe": "ENOENT", "proc-1-fd": "ENOENT", "proc-1-cmdline": "ENOENT", "proc-1-status": "ENOENT",
		"ptrace-1": "EPERM", "pidfd-getfd-1": "EPERM", "setns-1": "EPERM", "vm-read-1": "EPERM",
		"prlimit-1": "EPERM", "priority-1": "EPERM", "priority-user": "EPERM", "affinity-1": "EPERM",
		"setuid-0": "EINVAL", "setgroups": "EPERM", "chroot": "EPERM", "hostname": "EPERM",
		"unshare-u": "EPERM", "unshare-ns": "EPERM",
		"mount": "EPERM", "remount": "EPERM", "umount": "EPERM", "mount-setattr": "EPERM", "fsopen": "EPERM",
		"open-tree": "EPERM", "move-mount": "EPERM", "clone-user": "EPERM", "clone3": "ENOSYS",
		"bpf": "EPERM", "keyctl": "EPERM", "perf": "EPERM", "io-uring": "ENOSYS", "kexec": "EPERM", "userfaultfd": "EPERM",
		"packet": "EPERM", "vsock": "EPERM", "raw-icmp": "EPERM EPROTONOSUPPORT", "route": "EPERM",
		"loopback-80": "ok", "signal-pid1": "ok", "own-signal": "ok",
	}
	for name, answers := range want {
		if g := got[name]; !strings.Contains(" "+answers+" ", " "+g+" ") {
			t.Errorf("%s: got %q, want %s", name, g, answers)
		}
		delete(got, name)
	}
	for name, answer := range got {
		t.Errorf("%s was tried (%s) and is not in the table", name, answer)
	}
	if out := b.sh(t, "echo alive"); out != "alive" {
		t.Errorf("PID 1 does not serve any more: %q", out)
	}
}

func TestSandboxAgentHasNoCapability(t *testing.T) {
	b := newBox(t, nil)
	status := b.sh(t, "cat /proc/self/status")
	for _, want := range []string{
		"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
	} {
		if !strings.Contains(status, want) {
			t.Errorf("no %q in\n%s", want, status)
		}
	}
	if id := strconv.Itoa(agentID()); b.sh(t, "id -u; id -g; id -G") != id+"\n"+id+"\n"+id {
		t.Error("the agent has other ids than the Spec's")
	}
}

// No thread of PID 1 could gain a capability either, and none has one but the three that it
// starts and ends processes by.
func TestFirstProcessKeepsThreeCapabilities(t *testing.T) {
	b := newBox(t, nil)
	threads, err := b.client.Threads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, one := range threads {
		if one.PID != 1 {
			continue
		}
		seen++
		if one.Bounding != 0 || one.Inheritable|one.Ambient != 0 || (one.Permitted|one.Effective)&^wire.Kept != 0 || !one.NoNewPrivs {
			t.Errorf("%+v", one)
		}
	}
	if seen < 2 {
		t.Errorf("%d threads of PID 1 in %+v", seen, threads)
	}
}

func TestSandboxShowsNothingOfTheHost(t *testing.T) {
	b := newBox(t, nil)
	if n := b.sh(t, "ls /proc | grep -c '^[0-9]'"); n != "3" && n != "4" { // sh, ls, grep, and perhaps a subshell
		t.Errorf("%s processes are visible", n)
	}
	if out := b.sh(t, "cat /proc/net/unix | grep -v -e Num -e agent.sock -e @insights/github; ls /home; ls -A /root /var /mnt; cat /proc/net/dev | tail -n +3 | cut -d: -f1"); strings.Join(strings.Fields(out), " ") != "agent /mnt: /root: /var: run tmp lo" {
		t.Errorf("seen from inside: %s", out)
	}
}

// TestSandboxInheritsNoDescriptor: what a shell or a CI system left open for the host's
// process is not open inside. A descriptor of a directory would be a way out.
func TestSandboxInheritsNoDescriptor(t *testing.T) {
	left, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0) // not close-on-exec, as a shell leaves it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(left) }()
	for _, fd := range []int{100, 200} {
		if err := unix.Dup2(left, fd); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(fd) }()
	}
	b := newBox(t, nil)
	if out := b.sh(t, "echo /proc/self/fd/*"); out != "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3" {
		t.Errorf("open inside: %s", out) // 3 is the shell's own, of the listing
	}
}

func TestSandboxHasWhatProgramsNeed(t *testing.T) {
	b := newBox(t, nil)
	b.sh(t, `set -e
test "$(pwd)" = /tmp/workspace; touch /tmp/workspace/x /tmp/y /home/agent/z /dev/shm/s
test "$HOME" = /home/agent
echo >/dev/null; head -c1 /dev/urandom >/dev/null; test -c /dev/zero
test "$(hostname 2>/dev/null || cat /etc/hostname)" = sandbox
test -r /etc/passwd; test "$(id -un)" = agent
test -e /etc/ssl/certs || true
test -L /dev/fd; test -e /proc/self/fd/0
printf '#!/bin/sh\necho ran' >/tmp/run.sh; chmod +x /tmp/run.sh; test "$(/tmp/run.sh)" = ran`)
}

// TestInitWritesBoundedFiles: PID 1's log on the host's disk has a bound that the
// kernel keeps, and the agent's files have none of ours.
func TestInitWritesBoundedFiles(t *testing.T) {
	b := newBox(t, nil)
	limits, err := os.ReadFile("/proc/" + strconv.Itoa(b.pid1(t)) + "/limits")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Max file size": "1048576", "Max core file size": "0"} {
		_, line, _ := strings.Cut(string(limits), name)
		if f := strings.Fields(line); len(f) == 0 || f[0] != want {
			t.Errorf("%s of PID 1 in\n%s", name, limits)
		}
	}
	b.sh(t, "head -c 3m /dev/zero >/tmp/big && test $(stat -c %s /tmp/big) = 3145728")
}

// TestSandboxLeavesInotifyToTheHost: the kernel counts an agent's inotify instances as
// those of the host's user, whose editors must go on working.
func TestSandboxLeavesInotifyToTheHost(t *testing.T) {
	data, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		t.Fatal(err)
	}
	all, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	program := attemptsOf(os.Getenv(serverEnv))
	b := newBox(t, func(s *sandbox.Spec) { s.ToolDirs = []string{filepath.Dir(program)} })
	got, err := strconv.Atoi(b.sh(t, program+" inotify"))
	if err != nil || got > all/2 {
		t.Errorf("the agent takes %d of the user's %d, %v", got, all, err)
	}
}
