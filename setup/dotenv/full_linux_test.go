package dotenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/testenv"
)

// full is the size of the disk: the file of the test fits once, and once more in part.
const full = 64 << 10

// playFull edits a file on a disk that is too small, mounted where nobody else sees it.
func playFull(ctx context.Context, what, dir string) error {
	if what != "full" {
		return fmt.Errorf("no role %q", what)
	}
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", full)); err != nil {
		return err
	}
	path := filepath.Join(dir, ".env")
	old := "A=1\n" + strings.Repeat("# filler\n", full*5/8/len("# filler\n"))
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		return err
	}
	_, err := Edit(ctx, path, setting("A", "2"))
	now, readErr := os.ReadFile(path)
	left, _ := os.ReadDir(dir)
	switch {
	case !errors.Is(err, syscall.ENOSPC) || errs.HintOf(err) == "":
		return fmt.Errorf("the edit gave %w", err)
	case string(now) != old || readErr != nil || len(left) != 1:
		return fmt.Errorf("%d of %d bytes, %d files, %w", len(now), len(old), len(left), readErr)
	}
	return nil
}

func TestFullDisk(t *testing.T) {
	cmd := process(t, "full", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if uid := os.Geteuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	testenv.Need(t, "a mount namespace", !errors.Is(err, syscall.EPERM) && !strings.Contains(string(out), "operation not permitted"))
	if err != nil {
		t.Errorf("%s%v", out, err)
	}
}
