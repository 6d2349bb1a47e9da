//go:build unix

package agentserver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link/wire"
)

func shell(script string) wire.Command {
	return wire.Command{Argv: []string{"sh", "-c", script}}
}

func TestExecStreams(t *testing.T) {
	c := newSandbox(t, nil).connect()
	var out, errs bytes.Buffer
	code, err := c.Exec(t.Context(), shell("cat; echo oops >&2; exit 5"), agent.Stdio{In: strings.NewReader("typed"), Out: &out, Err: &errs})
	if err != nil || code != 5 || out.String() != "typed" || errs.String() != "oops\n" {
		t.Errorf("%d, %v, %q, %q", code, err, &out, &errs)
	}
}

func TestExecExitCodes(t *testing.T) {
	c := newSandbox(t, nil).connect()
	tests := []struct {
		name    string
		command wire.Command
		code    int
	}{
		{"success", shell("true"), 0},
		{"signal", shell("kill -TERM $$"), 128 + int(syscall.SIGTERM)},
	}
	for _, tt := range tests {
		if code, err := c.Exec(t.Context(), tt.command, agent.Stdio{}); err != nil || code != tt.code {
			t.Errorf("%s: %d, %v", tt.name, code, err)
		}
	}
	if _, err := c.Exec(t.Context(), wire.Command{Argv: []string{"no-such-command"}}, agent.Stdio{}); err == nil {
		t.Error("an unknown command was started")
	}
	if _, err := c.Exec(t.Context(), wire.Command{}, agent.Stdio{}); err == nil {
		t.Error("no command was started")
	}
}

func TestExecEnvironmentAndDirectory(t *testing.T) {
	c := newSandbox(t, nil).connect()
	var out bytes.Buffer
	cmd := shell(`echo "$EXTRA $COLOR $TERM"; pwd`)
	cmd.Env, cmd.Dir = []string{"EXTRA=more"}, "/"
	if _, err := c.Exec(t.Context(), cmd, agent.Stdio{Out: &out}); err != nil || out.String() != "more blue dumb\n/\n" {
		t.Errorf("%q, %v", &out, err)
	}
}

// TestExecLosesNothingForASlowReader: the process has ended long before the host has
// taken what it wrote.
func TestExecLosesNothingForASlowReader(t *testing.T) {
	c := newSandbox(t, nil).connect()
	read, write := io.Pipe()
	sum := make(chan int64, 1)
	started := make(chan struct{})
	go func() {
		one := make([]byte, 1)
		_, _ = io.ReadFull(read, one)
		<-started
		n, _ := io.Copy(io.Discard, read)
		sum <- n + 1
	}()
	go func() {
		// A second command shows that time passes and the link is not held up.
		_, _ = c.Exec(t.Context(), shell("sleep 3"), agent.Stdio{})
		close(started)
	}()
	const size = 12 << 20 // more than the window of a stream and the pipe
	code, err := c.Exec(t.Context(), shell(fmt.Sprintf("head -c %d /dev/zero", size)), agent.Stdio{Out: write})
	_ = write.Close()
	if got := <-sum; err != nil || code != 0 || got != size {
		t.Errorf("%d, %v, %d bytes", code, err, got)
	}
}

func TestExecLargeInput(t *testing.T) {
	c := newSandbox(t, nil).connect()
	var out bytes.Buffer
	const size = 20 << 20
	code, err := c.Exec(t.Context(), shell("wc -c"), agent.Stdio{In: io.LimitReader(zeros{}, size), Out: &out})
	if err != nil || code != 0 || strings.TrimSpace(out.String()) != fmt.Sprint(size) {
		t.Errorf("%d, %v, %q", code, err, &out)
	}
}

// TestExecThatDoesNotReadItsInput must end although input is on the way.
func TestExecThatDoesNotReadItsInput(t *testing.T) {
	c := newSandbox(t, nil).connect()
	code, err := c.Exec(t.Context(), shell("exec <&-; echo done"), agent.Stdio{In: io.LimitReader(zeros{}, 8<<20)})
	if err != nil || code != 0 {
		t.Errorf("%d, %v", code, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestExecIsKilledWhenItsHostHangsUp(t *testing.T) {
	s := newSandbox(t, nil)
	c := s.connect()
	ctx, cancel := context.WithCancel(t.Context())
	out := &firstWrite{wrote: make(chan struct{})}
	go func() {
		<-out.wrote
		cancel()
	}()
	if _, err := c.Exec(ctx, shell(`trap "" INT TERM HUP; echo $$; while :; do sleep 0.05; done`), agent.Stdio{Out: out}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(out.first), &pid); err != nil {
		t.Fatal(err)
	}
	waitGone(t, pid)
}

type firstWrite struct {
	first []byte
	wrote chan struct{}
}

func (f *firstWrite) Write(p []byte) (int, error) {
	if f.first == nil {
		f.first = bytes.Clone(p)
		close(f.wrote)
	}
	return len(p), nil
}

func waitGone(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(hangs); time.Now().Before(limit); <-tick.C {
		if syscall.Kill(pid, 0) != nil {
			return
		}
	}
	t.Errorf("process %d lives", pid)
}

func TestExecSignal(t *testing.T) {
	c := newSandbox(t, nil).connect()
	signals := make(chan string, 1)
	out := &firstWrite{wrote: make(chan struct{})}
	go func() {
		<-out.wrote
		signals <- "SIGINT"
	}()
	code, err := c.Exec(t.Context(), shell(`trap "exit 7" INT; echo ready; while :; do sleep 0.05; done`), agent.Stdio{Out: out, Signals: signals})
	if err != nil || code != 7 {
		t.Errorf("%d, %v", code, err)
	}
}

func TestExecTerminal(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("terminals are on Linux")
	}
	c := newSandbox(t, nil).connect()
	var out bytes.Buffer
	cmd := shell(`tty >/dev/null && echo terminal; stty size; echo "$TERM"; read line; echo "got $line"; cat`)
	cmd.TTY, cmd.Rows, cmd.Cols = true, 33, 99
	code, err := c.Exec(t.Context(), cmd, agent.Stdio{In: strings.NewReader("typed\nmore\n"), Out: &out})
	text := strings.ReplaceAll(out.String(), "\r", "")
	if err != nil || code != 0 {
		t.Errorf("%d, %v", code, err)
	}
	for _, want := range []string{"terminal\n", "33 99\n", "xterm-256color\n", "got typed\n", "more\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}

func TestExecLeavesADaemonAlone(t *testing.T) {
	c := newSandbox(t, nil).connect()
	var out bytes.Buffer
	code, err := c.Exec(t.Context(), shell(`sleep 1000 >/dev/null 2>&1 </dev/null & echo $!`), agent.Stdio{Out: &out})
	var pid int
	if _, serr := fmt.Sscan(out.String(), &pid); err != nil || code != 0 || serr != nil {
		t.Fatal(code, err, serr)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon did not outlive the command that began it: %v", err)
	}
}

func TestArchiveOutAndIn(t *testing.T) {
	s := newSandbox(t, nil)
	c := s.connect()
	from, to := filepath.Join(s.boot.Dir, "from"), filepath.Join(s.boot.Dir, "to")
	if err := os.MkdirAll(filepath.Join(from, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from, "sub", "file"), bytes.Repeat([]byte("data"), 1<<20), 0o640); err != nil {
		t.Fatal(err)
	}
	var tar bytes.Buffer
	if err := c.ArchiveOut(t.Context(), from, &tar); err != nil {
		t.Fatal(err)
	}
	if err := c.ArchiveIn(t.Context(), to, &tar); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(to, "from", "sub", "file")); err != nil || len(b) != 4<<20 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestArchiveTellsWhatWentWrong(t *testing.T) {
	c := newSandbox(t, nil).connect()
	if err := c.ArchiveOut(t.Context(), "/no/such/path", io.Discard); err == nil || !strings.Contains(err.Error(), "/no/such/path") {
		t.Error(err)
	}
	if err := c.ArchiveIn(t.Context(), t.TempDir(), strings.NewReader(strings.Repeat("no tar", 1000))); err == nil {
		t.Error("noise was extracted")
	}
}
