package statedb

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/testenv"
)

// inNamespace runs script in a mount namespace of its own, before the test binary
// opens dir there; it returns what was printed.
func inNamespace(t *testing.T, script, dir string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script+` && exec "$0"`, os.Args[0])
	cmd.Env = append(os.Environ(), "STATEDB_TEST_OPEN="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	testenv.Need(t, fmt.Sprintf("mounts in a namespace (%v: %s)", err, out), !strings.Contains(string(out), "mount:") && len(out) > 0)
	return string(out)
}

func TestFullDiskIsTold(t *testing.T) {
	for _, room := range []string{"0", "8", "64"} {
		dir := t.TempDir()
		script := fmt.Sprintf(`mount --make-rprivate / && mount -t tmpfs -o size=256k tmpfs '%[1]s' &&
			chmod 700 '%[1]s' && dd if=/dev/zero of='%[1]s/filler' bs=1k count=$((256-%[2]s)) 2>/dev/null`, dir, room)
		out := inNamespace(t, script, dir)
		if !strings.HasPrefix(out, "internal: ") || !strings.Contains(out, "free some space") {
			t.Errorf("%s KiB free: %s", room, out)
		}
	}
}

func TestReadOnlyDiskIsTold(t *testing.T) {
	dir := t.TempDir()
	script := fmt.Sprintf(`mount --make-rprivate / && mount -t tmpfs -o ro,mode=700 tmpfs '%s'`, dir)
	out := inNamespace(t, script, dir)
	if !strings.HasPrefix(out, "config: ") || !strings.Contains(out, "INSIGHTSCLI_STATE_DIR") {
		t.Error(out)
	}
}

func TestExistingDatabaseOnReadOnlyDiskIsTold(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`mount --make-rprivate / && mount --bind '%[1]s' '%[1]s' && mount -o remount,bind,ro '%[1]s'`, dir)
	out := inNamespace(t, script, dir)
	if !strings.HasPrefix(out, "config: ") || !strings.Contains(out, "INSIGHTSCLI_STATE_DIR") {
		t.Error(out)
	}
}

func TestReadOnlyDirectoryIsTold(t *testing.T) {
	testenv.Need(t, "root, to become another user", os.Geteuid() == 0)
	// A place that the other user can reach.
	root, err := os.MkdirTemp("/tmp", "statedb-test-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	bin, dir := filepath.Join(root, "test"), filepath.Join(root, "state")
	body, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.WriteFile(bin, body, 0o755), os.Mkdir(dir, 0o500), os.Chown(dir, 1234, 1234), os.Chmod(root, 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), bin)
	cmd.Env = append(os.Environ(), "STATEDB_TEST_OPEN="+dir)
	cmd.Dir = root
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1234, Gid: 1234}}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.HasPrefix(string(out), "config: ") || !strings.Contains(string(out), "INSIGHTSCLI_STATE_DIR") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestNetworkFileSystemsAreKnown(t *testing.T) {
	for magic, want := range map[int64]string{
		unix.NFS_SUPER_MAGIC: "nfs", unix.CIFS_SUPER_MAGIC: "cifs", unix.SMB2_SUPER_MAGIC: "smb",
		unix.FUSE_SUPER_MAGIC: "fuse", unix.V9FS_MAGIC: "9p",
		unix.EXT4_SUPER_MAGIC: "", unix.TMPFS_MAGIC: "", unix.BTRFS_SUPER_MAGIC: "", unix.OVERLAYFS_SUPER_MAGIC: "",
	} {
		if got := fsName(uint32(magic)); got != want {
			t.Errorf("fsName(%#x) = %q, want %q", magic, got, want)
		}
	}
}
