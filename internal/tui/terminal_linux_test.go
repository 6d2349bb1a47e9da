package tui

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
)

const roleVar = "TUI_TEST_ROLE"

// TestMain lets the tests start this program as one with a screen, and as its guard.
func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "guard":
		_ = Guard(os.Stdin, os.Stdout)
	case "show":
		os.Exit(showProgram())
	default:
		os.Exit(m.Run())
	}
}

// breaking is a world whose actions end the program in ways that programs end.
type breaking struct{ *world }

func (b breaking) Diff(context.Context, task.ID) ([]byte, error) { panic("in a command") }

func (b breaking) Cancel(context.Context, task.ID) error {
	var wg sync.WaitGroup
	wg.Go(func() { panic("in a goroutine of somebody else") })
	wg.Wait()
	return nil
}

// showProgram is a program with a screen, as cmd/insightscli is one.
func showProgram() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	run := aRun()
	run.State = task.StateInProgress
	b, err := os.ReadFile("testdata/story.jsonl")
	if err != nil {
		return 3
	}
	w := breaking{&world{runs: []Run{run}, log: inMemory(b[:bytes.Index(b, []byte("_insights/run_finished"))])}}
	_ = os.Setenv(roleVar, "guard")
	if err := Show(ctx, Options{
		Source: w, Actions: w, In: os.Stdin, Out: os.Stdout, Now: time.Now, Run: "latest", Guard: []string{os.Args[0]},
		Interrupt: func() { panic("where keys are taken") },
	}); err != nil {
		fmt.Println("ended by", err)
		return 1
	}
	fmt.Println("ended in order")
	return 0
}

// terminalFor is a pair of terminals: what we hold, and what the program has.
func terminalFor(t *testing.T) (ptmx, tty *os.File) {
	t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	testenv.Need(t, "a machine that gives out terminals", err == nil)
	t.Cleanup(func() { _ = ptmx.Close() })
	fd := int(ptmx.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	return ptmx, tty
}

// reader collects what a terminal shows.
type reader struct {
	mu   sync.Mutex
	seen bytes.Buffer
	more chan struct{}
}

func readAll(ptmx *os.File) *reader {
	r := &reader{more: make(chan struct{}, 1)}
	go func() { // it ends with the terminal
		buf := make([]byte, 64<<10)
		for {
			n, err := ptmx.Read(buf)
			r.mu.Lock()
			r.seen.Write(buf[:n])
			r.mu.Unlock()
			select {
			case r.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return r
}

func (r *reader) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen.String()
}

// until waits for words.
func (r *reader) until(t *testing.T, words string) {
	t.Helper()
	late := time.After(30 * time.Second)
	for !strings.Contains(r.text(), words) {
		select {
		case <-r.more:
		case <-late:
			t.Fatalf("%q never came: %q", words, r.text())
		}
	}
}

// The terminal is as it was, however the program ends: its settings, its screen, its
// cursor, and what it died of can be read.
func TestTheTerminalIsGivenBack(t *testing.T) {
	for name, tt := range map[string]struct {
		keys   string
		signal syscall.Signal
		says   string
	}{
		"left":                    {keys: "q", says: "ended in order"},
		"terminated":              {signal: syscall.SIGTERM, says: "ended by"},
		"hung up":                 {signal: syscall.SIGHUP, says: "ended by"},
		"killed":                  {signal: syscall.SIGKILL},
		"panic in a command":      {keys: "d", says: "in a command"},
		"panic in an update":      {keys: "\x03", says: "where keys are taken"},
		"panic in any goroutine":  {keys: "xy", says: "in a goroutine of somebody else"},
		"left while a text waits": {keys: "/abc\x1b[27uq\x1bqq", signal: syscall.SIGTERM, says: "ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ptmx, tty := terminalFor(t)
			before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			screen := readAll(ptmx)
			cmd := exec.Command(os.Args[0], "-test.run=^$")
			cmd.Env = append(os.Environ(), roleVar+"=show", "TERM=xterm-256color")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			screen.until(t, "branch_created")
			if during, _ := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); reflect.DeepEqual(during, before) {
				t.Error("the terminal is not raw while the screen is there")
			}
			for _, k := range tt.keys {
				if _, err := ptmx.WriteString(string(k)); err != nil {
					t.Fatal(err)
				}
			}
			if tt.signal != 0 {
				if err := cmd.Process.Signal(tt.signal); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait() // it ends as it was made to
			screen.until(t, "\x1b[?1049l")
			screen.until(t, tt.says)
			if tail := screen.text(); !strings.Contains(tail, "\x1b[?25h") || !strings.Contains(tail, "\x1b[?2004l") {
				t.Errorf("the terminal was left with %q", tail[max(0, len(tail)-300):])
			}
			restored(t, tty, before)
		})
	}
}

// restored waits until the terminal is set as before: the guard does it a moment after the
// program has died.
func restored(t *testing.T, tty *os.File, before *unix.Termios) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(10 * time.Second); ; {
		after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		if reflect.DeepEqual(after, before) {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("the terminal is %+v, was %+v", after, before)
		}
	}
}
