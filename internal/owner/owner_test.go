package owner

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/task"
)

// TestMain lets a test run itself again as a process that owns.
func TestMain(m *testing.M) {
	if dir := os.Getenv("OWNER_TEST_DIR"); dir != "" {
		o, err := Acquire(context.Background(), dir)
		if err != nil {
			panic(err)
		}
		fmt.Println(o.ID)
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
		os.Exit(0)
	}
	if dir := os.Getenv("OWNER_TEST_DIAL"); dir != "" {
		_, err := Dial(context.Background(), dir, os.Getenv("OWNER_TEST_ID"), Request{Op: "hello"})
		fmt.Println(err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process starts a process that owns in dir and returns its owner id.
func process(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "OWNER_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	return cmd, strings.TrimSpace(line)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func acquireIn(t testing.TB, dir string) *Owner {
	t.Helper()
	o, err := Acquire(t.Context(), dir)
	must(t, err)
	return o
}

func wantState(t *testing.T, dir, id string, want State) {
	t.Helper()
	st, err := Lookup(dir, id)
	must(t, err)
	alive, err := Alive(dir, id)
	must(t, err)
	if st.State != want || alive != (want != StateDead) {
		t.Errorf("owner is %s, alive %t; want %s", st.State, alive, want)
	}
}

func TestOwnerIsAliveUntilReleased(t *testing.T) {
	dir := t.TempDir()
	o := acquireIn(t, dir)
	wantState(t, dir, o.ID, StateAlive)
	if o.PID != os.Getpid() || o.Version != build.Get().Version || o.Host == "" {
		t.Errorf("%+v", o.Info)
	}
	if age := time.Since(o.Started); age < -time.Second || age > time.Hour {
		t.Errorf("this process began %s ago", age)
	}
	must(t, o.Release())
	wantState(t, dir, o.ID, StateDead)
	left, err := os.ReadDir(filepath.Join(dir, subDir))
	must(t, err)
	if len(left) != 0 {
		t.Errorf("%d files are left", len(left))
	}
}

func TestUnknownOwnersAreDead(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{"", "../../etc/passwd", string(task.NewID())} {
		wantState(t, dir, id, StateDead)
	}
	if all, err := List(dir); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestKilledOwnerIsDead(t *testing.T) {
	dir := t.TempDir()
	cmd, id := process(t, dir)
	wantState(t, dir, id, StateAlive)
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	wantState(t, dir, id, StateDead)
	all, err := List(dir)
	must(t, err)
	if len(all) != 1 || all[0].ID != id || all[0].PID != cmd.Process.Pid || all[0].State != StateDead {
		t.Errorf("%+v", all)
	}
}

// foreign writes the lock file of an owner of another machine.
func foreign(t *testing.T, dir string) string {
	t.Helper()
	id := string(task.NewID())
	body, err := json.Marshal(Info{ID: id, Host: "elsewhere", Boot: "another-boot", PID: 1})
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(dir, subDir), 0o700))
	must(t, os.WriteFile(lockPath(dir, id), body, 0o600))
	return id
}

func TestOwnerOfAnotherMachineIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	id := foreign(t, dir)
	wantState(t, dir, id, StateForeign)
	n, err := Sweep(dir, func(string) bool { return true })
	if n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	wantState(t, dir, id, StateForeign)
}

// TestOwnerThatCannotBeLookedAtIsAlive: what cannot be told must not be robbed, and
// must not keep the others from being told.
func TestOwnerThatCannotBeLookedAtIsAlive(t *testing.T) {
	dir := t.TempDir()
	id := string(task.NewID())
	must(t, os.MkdirAll(lockPath(dir, id), 0o700)) // a directory opens for nobody, root included
	other := acquireIn(t, dir)
	defer func() { must(t, other.Release()) }()
	if alive, err := Alive(dir, id); !alive || err == nil {
		t.Errorf("alive %t, %v", alive, err)
	}
	all, err := List(dir)
	must(t, err)
	if len(all) != 2 || all[0].State != StateAlive || all[1].State != StateAlive {
		t.Errorf("%+v", all)
	}
	if n, err := Sweep(dir, func(string) bool { return true }); n != 0 || err == nil {
		t.Errorf("swept %d, %v", n, err)
	}
}

func TestSameMachineIsKnown(t *testing.T) {
	me := Info{Host: "h", Boot: "b", Machine: "m"}
	tests := map[string]struct {
		other Info
		want  bool
	}{
		"the same":                 {me, true},
		"rebooted":                 {Info{Host: "h", Boot: "b2", Machine: "m"}, true},
		"renamed and rebooted":     {Info{Host: "h2", Boot: "b2", Machine: "m"}, true},
		"a container of ours":      {Info{Host: "c", Boot: "b"}, true},
		"another":                  {Info{Host: "h2", Boot: "b2", Machine: "m2"}, false},
		"another without any name": {Info{}, false},
	}
	for name, tt := range tests {
		if got := sameMachine(tt.other, me); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestSweepRemovesTheDeadThatNobodyNames(t *testing.T) {
	dir := t.TempDir()
	live := acquireIn(t, dir)
	defer func() { must(t, live.Release()) }()
	var dead []string
	for range 2 {
		cmd, id := process(t, dir)
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed
		dead = append(dead, id)
	}
	n, err := Sweep(dir, func(id string) bool { return id != dead[0] })
	if n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if _, err := os.Stat(lockPath(dir, dead[0])); err != nil {
		t.Error("an owner that a run names was removed")
	}
	if _, err := os.Stat(lockPath(dir, dead[1])); !os.IsNotExist(err) {
		t.Errorf("a dead owner was left: %v", err)
	}
	wantState(t, dir, live.ID, StateAlive)
}

// TestSweepLeavesWhatIsOnItsWay: between making and locking its file an owner looks
// dead.
func TestSweepLeavesWhatIsOnItsWay(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, subDir), 0o700))
	id := string(task.NewID())
	must(t, os.WriteFile(lockPath(dir, id), nil, 0o600))
	if n, err := Sweep(dir, func(string) bool { return true }); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	long := time.Now().Add(-2 * settle)
	must(t, os.Chtimes(lockPath(dir, id), long, long))
	if n, err := Sweep(dir, func(string) bool { return true }); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
}

// TestLookingDisturbsNobody: many look at each other while they come and go.
func TestLookingDisturbsNobody(t *testing.T) {
	dir := t.TempDir()
	stays := acquireIn(t, dir)
	defer func() { must(t, stays.Release()) }()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				o, err := Acquire(t.Context(), dir)
				if err != nil {
					t.Error(err)
					return
				}
				all, err := List(dir)
				for _, st := range all {
					if (st.ID == o.ID || st.ID == stays.ID) && st.State != StateAlive {
						t.Errorf("a living owner is %s", st.State)
					}
				}
				_, errSweep := Sweep(dir, func(string) bool { return true })
				if err != nil || errSweep != nil || o.Release() != nil {
					t.Error(err, errSweep)
				}
			}
		})
	}
	wg.Wait()
	wantState(t, dir, stays.ID, StateAlive)
}

func TestFilesAreClosedToOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs permission bits")
	}
	dir := t.TempDir()
	o := acquireIn(t, dir)
	defer func() { must(t, o.Release()) }()
	for path, want := range map[string]os.FileMode{filepath.Join(dir, subDir): 0o700, lockPath(dir, o.ID): 0o600} {
		info, err := os.Stat(path)
		must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o", path, got)
		}
	}
}

func BenchmarkAcquire(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		must(b, acquireIn(b, dir).Release())
	}
}
