package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/statedb"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
)

// atTerminal runs the program at a terminal that answers nothing, and returns what it wrote.
func atTerminal(t *testing.T, environ []string, args ...string) string {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	testenv.Need(t, "a machine that gives out terminals", err == nil)
	defer ptmx.Close()
	number, err := unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "INSIGHTSCLI_STATE_DIR=" + t.TempDir(), "TERM=xterm-256color", "SANDBOX_PROVIDER=local"}, environ...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close()
	var out bytes.Buffer
	_, _ = out.ReadFrom(ptmx) // it ends with an error when nobody has the terminal any more
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v: %s", strings.Join(args, " "), err, out.String())
	}
	return out.String()
}

// The library of the screens once asked the terminal for its background whenever the
// program started, and waited five seconds for an answer, also in `version`.
func TestASilentTerminalIsLeftAlone(t *testing.T) {
	if _, err := program(); err != nil { // built before the clock runs
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		environ, args []string
	}{
		"version":    {nil, []string{"version"}},
		"completion": {nil, []string{"completion", "bash"}},
		"ps":         {nil, []string{"ps"}},
		"--plain":    {nil, []string{"run", "--plain", "--dry-run", "--", "true"}},
		"CI":         {[]string{"CI=true"}, nil},
		"dumb":       {[]string{"TERM=dumb"}, nil},
		"plain":      {[]string{"INSIGHTSCLI_PLAIN=1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			out := atTerminal(t, tt.environ, tt.args...)
			if strings.Contains(out, "\x1b") || out == "" {
				t.Errorf("the terminal got %q", out)
			}
			if took := time.Since(begin); took > 4*time.Second {
				t.Errorf("it took %v, as one that waits for an answer", took)
			}
		})
	}
}

// aRecordedRun makes a state directory with a run that is over, whose log is that of the tests
// of the screens.
func aRecordedRun(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	db, err := statedb.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	store := journal.New(db.DB, dir)
	spec := task.Spec{
		V: task.SpecVersion, Task: task.NewID(), Run: task.NewID(), Team: seedTeam, User: seedUser, Title: "mend the parser", OriginProduct: "user_created",
		Agent: task.Agent{Name: task.AgentClaude}, Mode: task.ModeBackground, Provider: "local",
	}
	if err := store.Create(t.Context(), spec, nil); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join("..", "tui", "testdata", "story.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	path := store.LogPath(spec)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, log, 0o600); err != nil {
		t.Fatal(err)
	}
	res := task.Result{Run: spec.Run, Task: spec.Task, State: task.StateFailed, Started: time.Now(), Finished: time.Now()}
	if err := store.Finish(t.Context(), spec.Run, res); err != nil {
		t.Fatal(err)
	}
	return dir
}

// pane is a shell in tmux, and somebody before it.
type pane struct {
	t      *testing.T
	socket string
}

// newPane opens a shell in which insightscli is the program.
func newPane(t *testing.T, state string, width, height int) *pane {
	t.Helper()
	_, err := exec.LookPath("tmux")
	testenv.Need(t, "tmux", err == nil)
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := &pane{t, filepath.Join(dir, "tmux")}
	shell := fmt.Sprintf("env -u CI PATH=%s:$PATH HOME=%s INSIGHTSCLI_STATE_DIR=%s SANDBOX_PROVIDER=local INSIGHTSCLI_NETWORK=link PS1='ready> ' LC_ALL=C.UTF-8 sh",
		filepath.Dir(bin), dir, state)
	p.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), shell)
	t.Cleanup(func() { p.tmux("kill-server") })
	p.until("ready>")
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", p.socket}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (p *pane) screen() string { return p.tmux("capture-pane", "-p") }

// gone waits until the screen does not show the words any more.
func (p *pane) gone(words string) {
	p.t.Helper()
	p.when("the end of "+words, func(s string) bool { return !strings.Contains(s, words) })
}

// until waits until the screen shows all of the words.
func (p *pane) until(words ...string) string {
	p.t.Helper()
	return p.when(fmt.Sprintf("%q", words), func(s string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(s, w) })
	})
}

// when waits until the screen is as it is wanted.
func (p *pane) when(what string, is func(screen string) bool) string {
	p.t.Helper()
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(30 * time.Second); ; {
		s := p.screen()
		if is(s) {
			return s
		}
		select {
		case <-tick.C:
		case <-late:
			p.t.Fatalf("%s never came:\n%s", what, s)
		}
	}
}

// keys presses keys by tmux's names, text types it.
func (p *pane) keys(names ...string) { p.tmux(append([]string{"send-keys"}, names...)...) }
func (p *pane) text(s string)        { p.tmux("send-keys", "-l", s) }

// A person goes through the screens of a real terminal, from the table and back.
func TestTheScreensInTmux(t *testing.T) {
	p := newPane(t, aRecordedRun(t), 100, 30)
	p.text("insightscli")
	p.keys("Enter")
	p.until("insightscli", "RUN", "mend the parser", "1 runs, by age")
	p.keys("Enter")
	p.until("task failed (the tests fail) in 1m0s", "52/52")
	p.keys("g")
	p.until("Preparing context", "▌ - Preparing", "1/52")
	p.keys("/")
	p.text("the last line")
	p.keys("Enter")
	p.until("drops the last line", "match")
	p.keys("Escape") // alone: with the next key it would be that key with Alt
	p.gone("match")
	p.keys("e", "Enter")
	p.until("--- FAIL: TestLines")
	p.keys("?")
	p.until("next error")
	p.tmux("resize-window", "-x", "40", "-y", "12")
	p.tmux("resize-window", "-x", "150", "-y", "40")
	p.keys("q")
	p.until("│ steps", "✓ Set up sandbox 8.2s")
	p.keys("q")
	p.until("1 runs, by age")
	p.keys("q")
	p.until("ready> insightscli\nready>")
	p.text("stty -a | grep -o ' -\\?icanon\\| -\\?echo ' | tr -d '\\n'; echo; echo no more screen")
	p.keys("Enter")
	if s := p.until("\nno more screen"); !strings.Contains(s, " icanon echo") || strings.Contains(s, "by age") {
		t.Errorf("the terminal is left as\n%s", s)
	}
}

// A run at a terminal is shown on the screen, which leaves when it is over; the last lines
// are those that plain prints, and the exit code is the run's. Ctrl-C ends it in order.
func TestARunInTmux(t *testing.T) {
	needSandbox(t)
	state := t.TempDir()
	p := newPane(t, state, 110, 30)
	p.text("insightscli run -- sh -c 'echo hello; printf \"\\033[2J\\033]0;evil\\007\"; sleep 1; exit 3'; echo code $?")
	p.keys("Enter")
	p.until("│ steps", "hello", "following")
	p.until("task failed (the command exited with code 3)", "code 7")
	p.text("clear; insightscli run -- sh -c 'echo begun; sleep 60'; echo code $?")
	p.keys("Enter")
	p.until("▌ begun")
	p.keys("C-c")
	p.until("cancelled in", "code 130")
	p.text("clear; insightscli logs -f latest")
	p.keys("Enter")
	p.until("▏ cancelled in")
	p.keys("q")
	p.until("ready>")
	p.text("clear; insightscli run --json -- true | cat")
	p.keys("Enter")
	p.until("run_finished")
	bin, _ := program()
	cmd := exec.Command(bin, "ps", "-a", "--json")
	cmd.Env = append(os.Environ(), "INSIGHTSCLI_STATE_DIR="+state)
	out, err := cmd.Output()
	var runs []runObject
	if err != nil || json.Unmarshal(out, &runs) != nil || len(runs) != 3 {
		t.Errorf("%v: %s", err, out)
	}
}
