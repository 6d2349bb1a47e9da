package cli

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/owner"
)

// detached starts a run in the background and returns its id.
func (c *crashed) detached(script string) string {
	c.t.Helper()
	out, err := c.command("run", "-d", "--provider", "local", "--network", "link", "--", "sh", "-c", script).Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == errs.Running.Code()) {
		c.t.Fatalf("run -d: %v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// killRunner kills the process that carries out the runs.
func (c *crashed) killRunner() {
	c.t.Helper()
	all, err := owner.List(c.state)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, o := range all {
		if o.State == owner.StateAlive {
			p, err := os.FindProcess(o.PID)
			if err == nil {
				err = p.Kill()
			}
			if err != nil {
				c.t.Fatal(err)
			}
			return
		}
	}
	c.t.Fatal("nobody carries out the run")
}

// Whoever follows a run sees every event once and in order, although its runner is killed
// again and again, and although no other command is there that would call another.
func TestFollowAcrossKills(t *testing.T) {
	bin := needSandbox(t)
	c := &crashed{t: t, bin: bin, state: stateDir(t)}
	id := c.detached("for i in $(seq 1 120); do echo line $i; sleep 0.05; done")
	cmd := c.command("logs", "-f", id, "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var says bytes.Buffer
	cmd.Stderr = &says
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	backstop := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer backstop.Stop()
	var got bytes.Buffer
	kills := map[string]bool{`"line 10\n`: true, `"line 40\n`: true, `"line 80\n`: true}
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got.Write(line)
		for mark := range kills {
			if bytes.Contains(line, []byte(strings.ReplaceAll(mark, "\n", `\n`))) {
				delete(kills, mark)
				c.killRunner()
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("logs -f: %v: %s", err, says.String())
	}
	if len(kills) > 0 {
		t.Errorf("not killed at %v", kills)
	}
	if want := c.run("logs", id, "--json"); got.String() != want {
		t.Errorf("followed:\n%s\nlog:\n%s", got.String(), want)
	}
	c.story()
	if raw := c.run("logs", id, "--raw"); strings.Count(raw, "\n") != 120 || !strings.HasSuffix(raw, "line 120\n") {
		t.Errorf("output %q", raw)
	}
	c.nothingLeft()
}

// Two runs that are followed at once: every line is whole and says whose it is.
func TestFollowSeveral(t *testing.T) {
	bin := needSandbox(t)
	c := &crashed{t: t, bin: bin, state: stateDir(t)}
	one := c.detached("for i in 1 2 3 4 5; do printf 'one '; sleep 0.05; echo $i; done")
	two := c.detached("for i in 1 2 3 4 5; do printf 'two '; sleep 0.04; echo $i; done")
	got := c.run("logs", "-f", one, two, "--kind", "output")
	count := map[string]int{}
	for line := range strings.Lines(got) {
		id, text, ok := strings.Cut(strings.TrimSpace(line), " | ")
		word, _, _ := strings.Cut(text, " ")
		if !ok || len(text) != len("one 1") {
			t.Errorf("line %q", line)
		}
		count[id+" "+word]++
	}
	if count[one[:8]+" one"] != 5 || count[two[:8]+" two"] != 5 || len(count) != 2 {
		t.Errorf("%v in %q", count, got)
	}
	c.run("wait", one, two)
	for line := range strings.Lines(c.run("logs", one, two, "--json")) {
		if !strings.HasPrefix(line, `{"run":"`+one) && !strings.HasPrefix(line, `{"run":"`+two) {
			t.Errorf("line %q", line)
		}
	}
	c.nothingLeft()
}
