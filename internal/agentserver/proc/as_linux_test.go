package proc

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/Insights/insightscli/internal/testenv"
)

// Both ways of being somebody else make that one's files, may no more than that one, and
// leave root behind.
func TestAsSomebodyElse(t *testing.T) {
	testenv.Need(t, "root", os.Geteuid() == 0)
	const uid, gid = 1234, 1235
	for name, as := range map[string]func(int, int, func() error) error{"As": As, "asEffective": asEffective} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			closed := filepath.Join(dir, "closed")
			if err := os.WriteFile(closed, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			open := filepath.Join(dir, "open")
			// The directories above belong to root alone.
			err := os.Chmod(filepath.Dir(dir), 0o755)
			if err == nil {
				err = as(uid, gid, func() error {
					if _, err := os.ReadFile(closed); !os.IsPermission(err) {
						t.Errorf("a file of root's is read: %v", err)
					}
					return os.WriteFile(open, nil, 0o600)
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(open)
			if err != nil {
				t.Fatal(err)
			}
			if st := info.Sys().(*syscall.Stat_t); st.Uid != uid || st.Gid != gid {
				t.Errorf("made by %d:%d", st.Uid, st.Gid)
			}
			if _, err := os.ReadFile(closed); err != nil {
				t.Errorf("root afterwards: %v", err)
			}
		})
	}
}
