//go:build unix

package agentserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/agentserver/execdriver"
	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
)

// hangs is long enough to tell an answer from a hang.
const hangs = 60 * time.Second

// pipes is a listener whose connections are pipes in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

func (p *pipes) dial(t *testing.T) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	select {
	case p.conns <- far:
	case <-p.done:
		t.Fatal("the server is gone")
	}
	return near
}

// sandbox is a server in this process, with the exec driver.
type sandbox struct {
	t     *testing.T
	ln    *pipes
	key   link.HostKey
	boot  wire.Boot
	stop  context.CancelFunc
	ended chan error
}

func newSandbox(t *testing.T, change func(*wire.Boot)) *sandbox {
	t.Helper()
	return newSandboxWith(t, change, nil)
}

func newSandboxWith(t *testing.T, change func(*wire.Boot), configure func(*agentserver.Config)) *sandbox {
	t.Helper()
	key, err := link.NewKeys("run-1")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	boot := wire.Boot{
		Run: "run-1", HostKey: key.Public(), Secret: key.Secret, Home: dir, Dir: dir,
		Env: map[string]string{"PATH": os.Getenv("PATH"), "LD_PRELOAD": "x", "GH_TOKEN": "x", "COLOR": "blue"},
	}
	if change != nil {
		change(&boot)
	}
	reaper := proc.NewReaper()
	config := agentserver.Config{
		Boot: boot, Starter: &proc.Plain{Reaper: reaper},
		Drivers: map[string]agentserver.NewDriver{execdriver.Name: execdriver.New},
	}
	if configure != nil {
		configure(&config)
	}
	server := agentserver.New(config)
	ctx, stop := context.WithCancel(t.Context())
	s := &sandbox{t: t, ln: newPipes(), key: key, boot: boot, stop: stop, ended: make(chan error, 1)}
	go func() {
		s.ended <- server.Serve(ctx, s.ln)
		close(s.ended)
	}()
	t.Cleanup(func() {
		stop()
		<-s.ended
		reaper.Close()
	})
	return s
}

func (s *sandbox) connect() *agent.Client {
	s.t.Helper()
	c, err := agent.Connect(s.t.Context(), s.ln.dial(s.t), s.key, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// start runs a shell script as the agent.
func (s *sandbox) start(c *agent.Client, script string) {
	s.t.Helper()
	if err := c.Start(s.t.Context(), wire.Start{Agent: execdriver.Name, Command: []string{"sh", "-c", script}}); err != nil {
		s.t.Fatal(err)
	}
}

// record is what a run left in the journal.
type record struct {
	stdout, stderr bytes.Buffer
	last           uint64
	outcome        wire.Outcome
}

// follow reads everything and acknowledges it.
func (s *sandbox) follow(c *agent.Client, r *record) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), hangs)
	defer cancel()
	err := c.Follow(ctx, r.last, func(f wire.Frame) error {
		r.add(s.t, f)
		c.Ack(f.Seq)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (r *record) add(t *testing.T, f wire.Frame) {
	switch f.Type {
	case wire.FrameHeartbeat:
		return
	case wire.FrameStdout:
		r.stdout.Write(f.Data)
	case wire.FrameStderr:
		r.stderr.Write(f.Data)
	case wire.FrameDone:
		if err := json.Unmarshal(f.Data, &r.outcome); err != nil {
			t.Error(err)
		}
	}
	if f.Seq != r.last+1 {
		t.Errorf("frame %d after %d", f.Seq, r.last)
	}
	r.last = f.Seq
}

func (s *sandbox) run(script string) *record {
	s.t.Helper()
	c, r := s.connect(), &record{}
	s.start(c, script)
	s.follow(c, r)
	return r
}

func TestRunCommand(t *testing.T) {
	r := newSandbox(t, nil).run("echo out; echo err >&2; exit 3")
	if r.stdout.String() != "out\n" || r.stderr.String() != "err\n" {
		t.Errorf("output %q, %q", &r.stdout, &r.stderr)
	}
	if r.outcome.ExitCode == nil || *r.outcome.ExitCode != 3 || r.outcome.StopReason != "end_turn" {
		t.Errorf("outcome %+v", r.outcome)
	}
}

func TestEnvironmentOfTheAgent(t *testing.T) {
	r := newSandbox(t, nil).run(`echo "$LD_PRELOAD|$GH_TOKEN|$COLOR|$TERM|$LANG|$USER"; echo "$PATH"; pwd; echo "$HOME"`)
	lines := strings.Split(r.stdout.String(), "\n")
	if lines[0] != "||blue|dumb|C.UTF-8|agent" {
		t.Error(lines[0])
	}
	if !strings.HasPrefix(lines[1], "/opt/insights/bin:") {
		t.Error(lines[1])
	}
	if want, err := filepath.EvalSymlinks(lines[3]); err != nil || lines[2] != want {
		t.Errorf("runs in %s, home is %s", lines[2], want)
	}
}

func TestCommandThatCannotBeStarted(t *testing.T) {
	tests := []struct {
		argv []string
		code int
		text string
	}{
		{[]string{"no-such-command-here"}, 127, "command not found"},
		{[]string{"/dev/null"}, 126, "not executable"},
	}
	for _, tt := range tests {
		t.Run(tt.argv[0], func(t *testing.T) {
			s, r := newSandbox(t, nil), &record{}
			c := s.connect()
			if err := c.Start(t.Context(), wire.Start{Agent: execdriver.Name, Command: tt.argv}); err != nil {
				t.Fatal(err)
			}
			s.follow(c, r)
			if r.outcome.ExitCode == nil || *r.outcome.ExitCode != tt.code || !strings.Contains(r.outcome.Error, tt.text) {
				t.Errorf("outcome %+v", r.outcome)
			}
		})
	}
}

func TestSignalThatEndedTheCommandIsTold(t *testing.T) {
	r := newSandbox(t, nil).run("kill -KILL $$")
	if r.outcome.Signal != "SIGKILL" || r.outcome.ExitCode != nil || !r.outcome.Failed() {
		t.Errorf("outcome %+v", r.outcome)
	}
}

func TestBackgroundChildDoesNotHoldTheRun(t *testing.T) {
	begin := time.Now()
	r := newSandbox(t, nil).run("sleep 1000 & echo started")
	if r.stdout.String() != "started\n" || time.Since(begin) > hangs/2 {
		t.Errorf("output %q after %v", &r.stdout, time.Since(begin))
	}
}

func TestStartTwiceIsAnError(t *testing.T) {
	s := newSandbox(t, nil)
	c := s.connect()
	s.start(c, "true")
	if err := c.Start(t.Context(), wire.Start{Agent: execdriver.Name, Command: []string{"true"}}); err == nil {
		t.Error("started twice")
	}
}

func TestUnknownAgentIsNamed(t *testing.T) {
	err := newSandbox(t, nil).connect().Start(t.Context(), wire.Start{Agent: "hal"})
	if err == nil || !strings.Contains(err.Error(), `"hal"`) {
		t.Error(err)
	}
}

func TestHealth(t *testing.T) {
	s := newSandbox(t, nil)
	c := s.connect()
	h, err := c.Health(t.Context())
	if err != nil || h.HasSession || h.Readiness != "starting" || h.Status != "ok" {
		t.Errorf("%+v, %v", h, err)
	}
	s.start(c, "true")
	s.follow(c, &record{})
	if h, err = c.Health(t.Context()); err != nil || !h.HasSession || h.Active || h.LastSeq != 1 {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestNextHostResumes: the first host reads and acknowledges a part; the agent goes
// on without a host; the second gets the rest and nothing twice.
func TestNextHostResumes(t *testing.T) {
	s, r := newSandbox(t, nil), &record{}
	first := s.connect()
	s.start(first, `mkfifo "$HOME/go"; echo one; read line < "$HOME/go"; echo two`)
	enough := errors.New("enough")
	err := first.Follow(t.Context(), 0, func(f wire.Frame) error {
		r.add(t, f)
		first.Ack(f.Seq)
		return enough
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	_ = first.Close()
	second := s.connect()
	if _, err := second.Exec(t.Context(), wire.Command{Argv: []string{"sh", "-c", `echo > "$HOME/go"`}}, agent.Stdio{}); err != nil {
		t.Fatal(err)
	}
	s.follow(second, r)
	if r.stdout.String() != "one\ntwo\n" {
		t.Errorf("output %q", &r.stdout)
	}
}

// TestFullJournalHoldsTheAgentAndLosesNothing: nobody reads, so that the agent waits
// in its write; then somebody does.
func TestFullJournalHoldsTheAgentAndLosesNothing(t *testing.T) {
	s, r := newSandbox(t, func(b *wire.Boot) { b.JournalMiB = 1 }), &record{}
	c := s.connect()
	const size = 20_000_000
	s.start(c, fmt.Sprintf("yes 0123456789 | head -c %d", size))
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	const full = 3 << 20 / 4 / wire.MaxChunk
	for {
		h, err := c.Health(t.Context())
		if err != nil || !h.Active || h.LastSeq > full+2 {
			t.Fatalf("%+v, %v", h, err)
		}
		if h.LastSeq >= full {
			break
		}
		<-tick.C
	}
	s.follow(c, r)
	if want := strings.Repeat("0123456789\n", size/11+1)[:size]; r.stdout.String() != want {
		t.Errorf("%d bytes, want %d", r.stdout.Len(), size)
	}
}

func TestCancelEndsTheCommand(t *testing.T) {
	s, r := newSandbox(t, nil), &record{}
	c := s.connect()
	s.start(c, `trap "echo caught; exit 9" INT; echo ready; while :; do sleep 0.05; done`)
	ctx, cancel := context.WithTimeout(t.Context(), hangs)
	defer cancel()
	err := c.Follow(ctx, 0, func(f wire.Frame) error {
		first := r.last == 0
		r.add(t, f)
		if first {
			return callCancel(ctx, c)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.stdout.String() != "ready\ncaught\n" || r.outcome.StopReason != "cancelled" || *r.outcome.ExitCode != 9 {
		t.Errorf("output %q, outcome %+v", &r.stdout, r.outcome)
	}
}

func TestShutdownEndsAgentAndServer(t *testing.T) {
	s := newSandbox(t, nil)
	c := s.connect()
	s.start(c, "sleep 1000")
	followed := make(chan *record, 1)
	go func() {
		r := &record{}
		s.follow(c, r)
		followed <- r
	}()
	if err := c.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	if r := <-followed; r.outcome.StopReason != "cancelled" {
		t.Errorf("outcome %+v", r.outcome)
	}
}

func TestStopWithoutAHostEnds(t *testing.T) {
	s := newSandbox(t, nil)
	s.stop()
	select {
	case err := <-s.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(hangs):
		t.Fatal("the server does not end")
	}
}

// A server that nobody can reach any more ends, with its agent; a host that is there
// is proof enough that it can be reached.
func TestServerEndsWhenNobodyCanCome(t *testing.T) {
	var gone atomic.Bool
	asked := make(chan struct{}, 1)
	s := newSandboxWith(t, nil, func(c *agentserver.Config) {
		c.LookEvery = time.Millisecond
		c.Unreachable = func() bool {
			select {
			case asked <- struct{}{}:
			default:
			}
			return gone.Load()
		}
	})
	<-asked // and it goes on
	c := s.connect()
	s.start(c, "exec sleep 1000")
	gone.Store(true)
	if h, err := c.Health(t.Context()); err != nil || !h.Active {
		t.Errorf("%+v, %v", h, err)
	}
	_ = c.Close()
	select {
	case err := <-s.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(hangs):
		t.Fatal("the server does not end")
	}
}

// TestAgentEndsWithoutAHost: a sandbox whose host never comes back does not work for
// ever, and what it has to tell waits for whoever comes.
func TestAgentEndsWithoutAHost(t *testing.T) {
	s := newSandbox(t, func(b *wire.Boot) { b.Lifetime = 20 * time.Millisecond })
	first := s.connect()
	s.start(first, "echo begun; exec sleep 1000")
	enough := errors.New("enough")
	err := first.Follow(t.Context(), 0, func(f wire.Frame) error { return enough })
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	_ = first.Close()
	<-first.Lost()
	for over := false; !over; {
		// Each look is a host too, so it does not stay.
		c := s.connect()
		h, err := c.Health(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		over = !h.Active
		_ = c.Close()
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the agent works on")
		}
	}
	r := &record{}
	s.follow(s.connect(), r)
	if r.stdout.String() != "begun\n" || r.outcome.StopReason != agentserver.StopCancelled {
		t.Errorf("%q, %+v", r.stdout.String(), r.outcome)
	}
}
