package owner

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/Insights/insightscli/internal/testenv"
)

func TestSocketIsClosedToOthers(t *testing.T) {
	dir := t.TempDir()
	o, _ := serving(t, dir, nil)
	info, err := os.Stat(sockPath(dir, o.ID))
	must(t, err)
	if info.Mode().Perm() != 0o600 || info.Mode()&os.ModeSocket == 0 {
		t.Errorf("mode %s", info.Mode())
	}
}

// TestPeersOfOtherUsersAreRefused opens the modes on purpose: the check of the peer
// must hold alone.
func TestPeersOfOtherUsersAreRefused(t *testing.T) {
	testenv.Need(t, "root, to become another user", os.Geteuid() == 0)
	root, err := os.MkdirTemp("/tmp", "owner-test-") //nolint:usetesting // the other user must reach it
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	bin := filepath.Join(root, "test")
	body, err := os.ReadFile(os.Args[0])
	must(t, err)
	must(t, os.WriteFile(bin, body, 0o755))
	o, _ := serving(t, root, map[string]Handler{"hello": echo})
	for path, mode := range map[string]os.FileMode{root: 0o755, filepath.Join(root, subDir): 0o755, sockPath(root, o.ID): 0o666} {
		must(t, os.Chmod(path, mode))
	}
	cmd := exec.CommandContext(t.Context(), bin)
	cmd.Env = append(os.Environ(), "OWNER_TEST_DIAL="+root, "OWNER_TEST_ID="+o.ID)
	cmd.Dir = root
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1234, Gid: 1234}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "user 1234 may not control") {
		t.Errorf("%v: %s", err, out)
	}
}
