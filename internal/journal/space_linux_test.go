package journal

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
)

// fill runs on a small disk: it appends until the disk is full, makes room and goes
// on. It prints what went wrong.
func fill(dir string) {
	s := New(nil, dir) // a log needs no database
	rec := Record{Spec: newSpec()}
	filler := filepath.Join(dir, "filler")
	check(os.WriteFile(filler, make([]byte, 512<<10), 0o600))
	l, err := s.OpenLog(context.Background(), rec)
	check(err)
	var n uint64
	for err == nil {
		if err = l.Append(event(n + 1)); err == nil {
			n++
		}
		if n%100 == 0 && err == nil {
			err = l.Sync()
		}
	}
	fmt.Println("full:", errs.KindOf(err), errs.HintOf(err))
	// A caller that syncs elsewhere must learn of it from Append.
	if l.Sync() == nil || l.Append(event(n+1)) == nil {
		fmt.Println("the full disk is not told")
	}
	check(os.Remove(filler))
	for range 100 {
		check(l.Append(event(n + 1)))
		n++
	}
	check(l.Close())
	want := uint64(0)
	check(s.ReadLog(context.Background(), rec, 0, func(_ []byte, ev task.Event) error {
		if want++; ev.Seq != want {
			return fmt.Errorf("event %d where %d should be", ev.Seq, want)
		}
		return nil
	}))
	fmt.Println("lost:", n-want)
}

// TestLogOutlivesAFullDisk: nothing that was taken may be lost, torn or written
// twice when there is room again.
func TestLogOutlivesAFullDisk(t *testing.T) {
	dir := t.TempDir()
	script := fmt.Sprintf(`mount --make-rprivate / && mount -t tmpfs -o size=1m tmpfs '%s' && exec "$0"`, dir)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script, os.Args[0])
	cmd.Env = append(os.Environ(), "JOURNAL_TEST_FILL="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	b, err := cmd.CombinedOutput()
	out := string(b)
	testenv.Need(t, fmt.Sprintf("mounts in a namespace (%v: %s)", err, out), !strings.Contains(out, "mount:") && out != "")
	if !strings.Contains(out, "full: internal free some space") || !strings.Contains(out, "lost: 0\n") || strings.Contains(out, "not told") {
		t.Errorf("%v: %s", err, out)
	}
}
