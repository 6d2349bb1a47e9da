package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
)

// boundaries are the steps of a run; a crash test kills the process when it has told
// of the beginning or the end of one.
func boundaries() []string {
	var all []string
	for _, s := range []string{"context", "token", "clone", "sandbox", "agent", "follow", "cleanup"} {
		all = append(all, s+" "+task.StepInProgress, s+" "+task.StepCompleted)
	}
	return append(all, "output")
}

// A process that is killed at any step boundary loses nothing: the next command
// brings the run to its end, every line of its command once and in order, and
// nothing is left.
func TestKilledAtEveryStep(t *testing.T) {
	bin := needSandbox(t)
	for _, provider := range []string{"local", "docker"} {
		for _, at := range boundaries() {
			t.Run(provider+" "+at, func(t *testing.T) {
				t.Parallel()
				if provider == "docker" {
					needEngine(t, bin)
				}
				killedAt(t, bin, provider, at)
			})
		}
	}
}

// needEngine ends the test unless an engine with the base image answers.
func needEngine(t *testing.T, bin string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, "image", "check", "default_base")
	cmd.Env = append(os.Environ(), "INSIGHTSCLI_STATE_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	testenv.Need(t, "a Docker engine with the base image: "+string(out), err == nil)
}

func killedAt(t *testing.T, bin, provider, at string) {
	c := &crashed{t: t, bin: bin, state: stateDir(t)}
	repo := c.repo()
	cmd := c.command("run", "--json", "--provider", provider, "--network", "link", "--repo", repo, "--",
		"sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do echo line $i; sleep 0.05; done; echo changed > file")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := killWhen(cmd, bufio.NewReader(out), at)
	_ = cmd.Wait() // killed, or ended before the boundary came
	if !killed {
		t.Fatalf("%s never came", at)
	}
	run := c.ended()
	if at == "cleanup "+task.StepCompleted && run.State == task.StateQueued {
		t.Fatalf("result %+v", run)
	}
	if run.State != task.StateCompleted {
		t.Errorf("result %+v", run)
	}
	c.story()
	if got := c.run("logs", "latest", "--raw"); got != wantLines {
		t.Errorf("output %q, want %q", got, wantLines)
	}
	if got := c.run("diff", "latest"); !strings.Contains(got, "+changed") {
		t.Errorf("diff %q", got)
	}
	c.nothingLeft()
}

const wantLines = "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\nline 9\nline 10\n"

// stateDir is a state directory that the agent's uid can be shown parts of, and that
// may be removed while a background runner ends.
func stateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "insightscli-crash-*") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// killWhen kills the process when its events tell of the boundary.
func killWhen(cmd *exec.Cmd, events *bufio.Reader, at string) bool {
	for {
		line, err := events.ReadBytes('\n')
		if err != nil {
			return false
		}
		ev, err := task.ParseLine(bytes.TrimSpace(line))
		if err != nil {
			return false
		}
		var s task.Step
		if ev.Kind == task.KindStep && json.Unmarshal(ev.Params, &s) != nil {
			return false
		}
		if s.Step+" "+s.Status == at || at == "output" && ev.Kind == task.KindOutput {
			_ = cmd.Process.Signal(syscall.SIGKILL) // it may have ended by itself
			return true
		}
	}
}

// crashed is a state directory whose runner was killed.
type crashed struct {
	t          *testing.T
	bin, state string
}

func (c *crashed) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(c.t.Context(), c.bin, args...)
	cmd.Env = append(os.Environ(), "INSIGHTSCLI_STATE_DIR="+c.state)
	return cmd
}

func (c *crashed) run(args ...string) string {
	c.t.Helper()
	cmd := c.command(args...)
	var says bytes.Buffer
	cmd.Stderr = &says
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, says.String())
	}
	return string(out)
}

// repo makes a repository with one file.
func (c *crashed) repo() string {
	c.t.Helper()
	dir := c.t.TempDir()
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"config", "user.name", "test"}, {"config", "user.email", "test@localhost"},
	} {
		c.git(dir, args...)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("first\n"), 0o644); err != nil {
		c.t.Fatal(err)
	}
	c.git(dir, "add", "file")
	c.git(dir, "commit", "-qm", "first")
	return dir
}

func (c *crashed) git(dir string, args ...string) {
	c.t.Helper()
	if out, err := exec.CommandContext(c.t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
		c.t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// ended asks for the list of runs, which is enough to bring the run on its way, and
// waits for its end.
func (c *crashed) ended() task.Result {
	c.t.Helper()
	c.run("ps")
	cmd := c.command("wait", "latest", "--timeout", "60s")
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("wait: %v: %s\n%s", err, out, c.background())
	}
	var shown struct {
		Result task.Result
	}
	if err := json.Unmarshal([]byte(c.run("show", "latest", "--json")), &shown); err != nil {
		c.t.Fatal(err)
	}
	return shown.Result
}

func (c *crashed) background() string {
	b, err := os.ReadFile(filepath.Join(c.state, runnerLog))
	if err != nil {
		return "no log of a background runner: " + err.Error()
	}
	return string(b)
}

// story checks that the events have no gap and one end.
func (c *crashed) story() {
	c.t.Helper()
	lines := strings.Split(strings.TrimSuffix(c.run("logs", "latest", "--json"), "\n"), "\n")
	for i, line := range lines {
		ev, err := task.ParseLine([]byte(line))
		if err != nil {
			c.t.Fatal(err)
		}
		if last := i == len(lines)-1; ev.Seq != uint64(i+1) || (ev.Kind == task.KindFinished) != last {
			c.t.Errorf("event %d of %d: number %d, kind %s", i+1, len(lines), ev.Seq, ev.Kind)
		}
	}
}

// nothingLeft checks that no process, container, mount or directory of the run is
// there any more, once the background runner has ended too.
func (c *crashed) nothingLeft() {
	c.t.Helper()
	if out, err := c.command("stop").CombinedOutput(); err != nil && !strings.Contains(string(out), "no background runner") {
		c.t.Errorf("stop: %v: %s", err, out)
	}
	left, err := os.ReadDir(filepath.Join(c.state, "run"))
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(left) > 0 {
		c.t.Errorf("run directories left: %v (%v)", left, err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), c.state) {
		c.t.Errorf("mounts left (%v)", err)
	}
	for _, pid := range processesNaming(c.state) {
		c.t.Errorf("process left: %s", pid)
	}
}

// processesNaming lists the processes whose command line holds word.
func processesNaming(word string) []string {
	var found []string
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	for _, p := range paths {
		if b, err := os.ReadFile(p); err == nil && bytes.Contains(b, []byte(word)) {
			found = append(found, fmt.Sprintf("%s %q", p, b))
		}
	}
	return found
}

// Runs that SIGTERM meets at random moments leave nothing behind.
func TestTerminatedAtAnyMoment(t *testing.T) {
	bin := needSandbox(t)
	const runs = 25
	c := &crashed{t: t, bin: bin, state: stateDir(t)}
	for i := range runs {
		cmd := c.command("run", "--quiet", "--provider", "local", "--", "sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Spread over the life of a run, from before main to the command at work.
		timer := time.NewTimer(time.Duration(i) * 4 * time.Millisecond)
		<-timer.C
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // 143, or the signal itself before it was handled
	}
	c.run("ps", "-a")
	c.nothingLeft()
}
