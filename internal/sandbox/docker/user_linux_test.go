package docker

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/Insights/insightscli/internal/testenv"
)

// An ordinary user who may use the engine gets the same: PID 1 has no capability to
// pass by the modes of his directories, and the image has another user's uid.
func TestAsOrdinaryUser(t *testing.T) {
	const uid = 1001
	realEngine(t, TransportAuto)
	if os.Geteuid() != 0 {
		t.Skip("runs as an ordinary user already")
	}
	info, err := os.Stat("/var/run/docker.sock")
	testenv.Need(t, "the engine's default socket", err == nil)
	group := info.Sys().(*syscall.Stat_t).Gid
	dir, err := os.MkdirTemp("", "du-*") //nolint:usetesting // short: the suite binds sockets below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	binary, server, home := filepath.Join(dir, "test"), filepath.Join(dir, "server"), filepath.Join(dir, "h")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	built, err := buildServer()
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.Chmod(dir, 0o755), copyFile(self, binary), copyFile(built, server),
		os.Mkdir(home, 0o700), os.Chown(home, uid, uid))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.v",
		"-test.run=^(TestAgentRunsHardened|TestOverlay|TestBinds|TestReopenAndList|TestConformance)$/^(socket|exec)?$/^(binds|archive|socket|runs|newest|create)")
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home, serverEnv+"="+server)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: []uint32{group}}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as uid %d: %v\n%s", uid, err, out)
	}
	if !bytes.Contains(out, []byte("--- PASS: TestOverlay")) {
		t.Fatalf("not everything ran:\n%s", out)
	}
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}
