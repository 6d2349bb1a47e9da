//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
	"github.com/Insights/insightscli/test/fakemodel"
)

// asking has the agent ask before it changes anything.
func asking(a agent) []string {
	mode := map[agent]string{claude: "default", codex: "read-only", acp: "read-only"}[a]
	return []string{"--mode", "interactive", "--permission-mode", mode}
}

// A request for leave waits in the log of a run that nobody sits at; what is answered
// is done.
func TestLeaveIsGivenFromElsewhere(t *testing.T) {
	each(t, []agent{claude, codex}, func(w *world) {
		id := w.detach([]fakemodel.Step{bash("echo allowed > allowed.txt"), bash("echo refused > refused.txt"), say("that was it")}, asking(w.agent)...)
		w.answers(id, "allowed.txt", task.AllowOnce)
		w.answers(id, "refused.txt", task.RejectOnce)
		w.watch(id, func(ev task.Event) bool { return ev.Kind == task.KindTurn || ev.Kind == task.KindFinished })
		w.must("cancel", id)
		r := w.ended(id)
		diff := w.must("diff", id)
		if !strings.Contains(diff, "+allowed") || strings.Contains(diff, "+refused") {
			w.t.Errorf("diff %q\n%s", diff, w.story(r.events))
		}
	})
}

// answers waits for the request with the words and answers it.
func (w *world) answers(id, words, option string) {
	w.t.Helper()
	ev := w.watch(id, told(task.KindPermission, words))
	p := decode[task.Permission](w, ev)
	w.must("send", id, "--answer", p.RequestID+"="+option)
}

// At a terminal the request is a question.
func TestLeaveIsAskedForAtTheTerminal(t *testing.T) {
	for _, a := range []agent{claude, codex} {
		one(t, a, func(w *world) {
			s := w.terminal(append(append([]string{"run", "--plain"}, append(w.flags, asking(a)...)...),
				w.script(bash("echo allowed > allowed.txt"), say("that was it")))...)
			s.until("number> ")
			s.types("1")
			s.until("your turn")
			s.types("")
			if err := s.cmd.Wait(); err != nil {
				w.t.Errorf("%v\n%s", err, &s.seen)
			}
			if diff := w.must("diff", "latest"); !strings.Contains(diff, "+allowed") {
				w.t.Errorf("diff %q\n%s", diff, &s.seen)
			}
		})
	}
}

// On the screen the request is answered in place, and the run is ended in order.
func TestLeaveIsAskedForOnTheScreen(t *testing.T) {
	for _, a := range []agent{claude, codex} {
		one(t, a, func(w *world) {
			s := w.terminal(append(append([]string{"run"}, append(w.flags, asking(a)...)...),
				w.script(bash("echo allowed > allowed.txt"), say("that was it")))...)
			s.until("the agent asks for leave")
			s.presses("a")
			s.until("The agent asks for leave")
			s.presses("1")
			s.until("that was it")
			s.until("turn 1:")
			s.presses("X")
			s.until("End the run in order")
			s.presses("y")
			s.until("\x1b[?1049l")
			s.until("completed in") // as plain prints it
			if err := s.cmd.Wait(); err != nil {
				w.t.Errorf("%v\n%s", err, &s.seen)
			}
			if diff := w.must("diff", "latest"); !strings.Contains(diff, "+allowed") {
				w.t.Errorf("diff %q\n%s", diff, &s.seen)
			}
		})
	}
}

// screen is the program at a terminal, and somebody before it.
type screen struct {
	w    *world
	cmd  *exec.Cmd
	ptmx *os.File
	seen bytes.Buffer
	from int // what was waited for lies before
}

// terminal starts the program at a terminal of its own.
func (w *world) terminal(args ...string) *screen {
	w.t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	testenv.Need(w.t, "a machine that gives out terminals", err == nil)
	w.t.Cleanup(func() { _ = ptmx.Close() })
	var number int
	for _, step := range []func() error{
		func() error { return unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0) },
		func() (err error) { number, err = unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN); return err },
		func() error {
			return unix.IoctlSetWinsize(int(ptmx.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120})
		},
	} {
		if err := step(); err != nil {
			w.t.Fatal(err)
		}
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer tty.Close()
	s := &screen{w: w, cmd: w.command(w.t.Context(), args...), ptmx: ptmx}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = tty, tty, tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// until reads what is shown until it has the words.
func (s *screen) until(words string) {
	s.w.t.Helper()
	buf := make([]byte, 4096)
	for {
		if i := bytes.Index(s.seen.Bytes()[s.from:], []byte(words)); i >= 0 {
			s.from += i + len(words)
			return
		}
		n, err := s.ptmx.Read(buf)
		s.seen.Write(buf[:n])
		if err != nil {
			s.w.t.Fatalf("no %q: %v\n%s", words, err, &s.seen)
		}
	}
}

func (s *screen) types(line string) {
	s.w.t.Helper()
	if _, err := s.ptmx.WriteString(line + "\n"); err != nil {
		s.w.t.Fatal(err)
	}
}

// presses presses keys.
func (s *screen) presses(keys string) {
	s.w.t.Helper()
	if _, err := s.ptmx.WriteString(keys); err != nil {
		s.w.t.Fatal(err)
	}
}
