package jail_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/testenv"
)

const (
	containerEnv = "INSIGHTSCLI_TEST_CONTAINER" // the directory of the pretended container
	invoker      = 1234                         // owns the link directory
	agentUID     = 1000
)

// engineCaps are what an engine leaves PID 1.
func engineCaps() []uintptr {
	return []uintptr{unix.CAP_CHOWN, unix.CAP_KILL, unix.CAP_NET_ADMIN, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_SETUID}
}

// TestHelperContainer is no test: as the first process of new namespaces it makes
// them look like a container, and becomes the agent server.
func TestHelperContainer(t *testing.T) {
	dir := os.Getenv(containerEnv)
	if dir == "" {
		t.Skip("is the other process of TestContainer")
	}
	if err := enterContainer(dir); err != nil {
		t.Fatal(err)
	}
}

func enterContainer(dir string) error {
	server, err := os.ReadFile(filepath.Join(dir, "server"))
	if err != nil {
		return err
	}
	mount := func(source, target, kind string, flags uintptr) {
		if e := unix.Mount(source, target, kind, flags, ""); e != nil {
			err = errors.Join(err, &os.PathError{Op: "mount", Path: target, Err: e})
		}
	}
	mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE)
	mount("proc", "/proc", "proc", 0)
	mount("tmpfs", "/run", "tmpfs", 0)
	mount("tmpfs", "/home", "tmpfs", 0)
	mount("tmpfs", "/opt", "tmpfs", 0)
	err = errors.Join(err, os.Mkdir(wire.LinkDir, 0o700), os.MkdirAll(wire.BinDir, 0o755), os.WriteFile(wire.ServerPath, server, 0o711),
		os.WriteFile(wire.GitPath, []byte("#!/bin/sh\necho of the image"), 0o755))
	mount(filepath.Join(dir, "link"), wire.LinkDir, "", unix.MS_BIND)
	mount(filepath.Join(dir, "passwd"), "/etc/passwd", "", unix.MS_BIND)
	mount(filepath.Join(dir, "group"), "/etc/group", "", unix.MS_BIND)
	mount(filepath.Join(dir, "profile"), "/etc/profile", "", unix.MS_BIND)
	mount("tmpfs", "/tmp", "tmpfs", 0)
	err = errors.Join(err, os.MkdirAll("/tmp/workspace/repos", 0o755)) // as an engine makes parents of mounts
	for _, args := range []string{"link set lo up", "link add d0 type veth peer name d1", "addr add 10.99.0.2/24 dev d0", "link set d0 up", "link set d1 up", "route add default via 10.99.0.1"} {
		if out, e := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); e != nil {
			err = errors.Join(err, errors.New(args+": "+string(out)))
		}
	}
	if err != nil {
		return err
	}
	return become(wire.ServerPath, "serve")
}

// become executes the program with the engine's capabilities only.
func become(program string, args ...string) error {
	mask := uint32(0)
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		keep := false
		for _, k := range engineCaps() {
			keep = keep || k == c
		}
		if keep {
			mask |= 1 << c
		} else if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return err
		}
	}
	return syscall.Exec(program, append([]string{program}, args...), nil)
}

func TestContainer(t *testing.T) {
	_, ipErr := exec.LookPath("ip")
	testenv.Need(t, "root and ip(8)", os.Geteuid() == 0 && ipErr == nil)
	dir, key := containerDir(t)
	helper := exec.CommandContext(t.Context(), mustExecutable(t), "-test.run=^TestHelperContainer$")
	helper.Env = append(os.Environ(), containerEnv+"="+dir)
	var output bytes.Buffer
	helper.Stdout, helper.Stderr = &output, &output
	helper.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS}
	left, err := os.Open("/") // as an engine with a leak leaves it
	if err != nil {
		t.Fatal(err)
	}
	helper.ExtraFiles = []*os.File{left}
	err = helper.Start()
	_ = left.Close()
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() { _ = helper.Wait(); close(gone) }()
	t.Cleanup(func() {
		_ = helper.Process.Kill()
		<-gone
	})
	conn, err := link.AwaitUnix(t.Context(), filepath.Join(dir, "link"), wire.SocketName, gone)
	if err != nil {
		<-gone
		t.Fatalf("%v\n%s", err, output.String())
	}
	client, err := agent.Connect(t.Context(), conn, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	checkContainer(t, client, dir)
}

func checkContainer(t *testing.T, client *agent.Client, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "link", wire.BootName)); !os.IsNotExist(err) {
		t.Errorf("the boot file is still there: %v", err)
	}
	for script, want := range map[string]string{
		"id -u; id -g; id -G; id -un": "1000\n1000\n1000\nagent",
		"grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status | grep -vc 0000000000000000": "0",
		"grep NoNewPrivs /proc/self/status | tr -dc 01":                                     "1",
		"grep CapEff /proc/1/status | cut -f2":                                              "00000000000000e0", // KILL, SETGID, SETUID
		"grep CapBnd /proc/1/status | cut -f2":                                              "0000000000000000",
		"stat -c %u:%g /home/agent /tmp/workspace /tmp/workspace/repos | sort -u":           "1000:1000",
		"git commit 2>&1 | head -n 1; git push 2>/dev/null; echo $?":                        "git commit is disabled in Insights Desktop: commits must be signed.\n1",
		"git --version; git log --grep commit -1 2>&1 | head -n 1 | cut -c -5":              gitVersion(t) + "\nfatal",
		"sh -lc 'command -v git; git push 2>/dev/null; echo $?'":                            wire.GitPath + "\n1",
		"stat -c %u /home":     "0",
		"echo /proc/self/fd/*": "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3", // 3 is the shell's own
		"cat /proc/1/environ 2>/dev/null | wc -c; ls /run/insights 2>&1 | grep -c denied; kill -9 1 2>/dev/null || echo no": "0\n1\nno",
		// Destination and mask of 169.254.0.0/16, with the flags of a refusing route.
		"awk '$2 == \"0000FEA9\" && $8 == \"0000FFFF\" {print $4}' /proc/net/route":                  "0201",
		"grep -c '^fe800000000000000000000000000000 0a .*00200200' /proc/net/ipv6_route":             "1",
		"grep -c '^fd000ec2000000000000000000000254 80 .*00200200' /proc/net/ipv6_route":             "1",
		"ip route get 169.254.169.254 2>&1 | grep -ci 'no route'; ip route get 8.8.8.8 | grep -c d0": "1\n1",
	} {
		var out bytes.Buffer
		_, err := client.Exec(t.Context(), wire.Command{Argv: []string{"sh", "-c", script}}, agent.Stdio{Out: &out, Err: &out})
		if got := strings.TrimSpace(out.String()); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", script, got, err, want)
		}
	}
}

// containerDir makes what the host prepares for a container.
func containerDir(t *testing.T) (string, link.HostKey) {
	t.Helper()
	dir := t.TempDir()
	key, err := link.NewKeys("r1")
	if err != nil {
		t.Fatal(err)
	}
	boot, err := json.Marshal(wire.Boot{
		V: wire.Version, Run: "r1", HostKey: key.Public(), Secret: key.Secret,
		UID: agentUID, GID: agentUID, Home: "/home/agent", Dir: "/tmp/workspace/repos",
	})
	linkDir := filepath.Join(dir, "link")
	bootFile := filepath.Join(linkDir, wire.BootName)
	err = errors.Join(err,
		os.Mkdir(linkDir, 0o700), os.WriteFile(bootFile, boot, 0o600),
		os.Chown(linkDir, invoker, invoker), os.Chown(bootFile, invoker, invoker),
		os.WriteFile(filepath.Join(dir, "passwd"), []byte("root:x:0:0::/root:/bin/sh"), 0o644),
		os.WriteFile(filepath.Join(dir, "profile"), []byte("PATH=/usr/bin:/bin\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "group"), []byte("root:x:0:\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "build", "-o", filepath.Join(dir, "server"), "../../../cmd/insights-agent-server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the agent server: %v\n%s", err, out)
	}
	return dir, key
}

func mustExecutable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func gitVersion(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
