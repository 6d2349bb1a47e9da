//go:build unix

package execdriver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/memory"
)

// hangs is long enough to tell an answer from a hang.
const hangs = 60 * time.Second

// place is a whole agent server with this driver.
type place struct {
	t      *testing.T
	client *agent.Client
	driver *driver       // once the session has begun
	grace  time.Duration // of the driver, if not 0
	dir    string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir()}
	provider := memory.New(map[string]agentserver.NewDriver{Name: func(h *agentserver.Host) agentserver.Driver {
		p.driver = New(h).(*driver)
		if p.grace > 0 {
			p.driver.grace = p.grace
		}
		return p.driver
	}})
	key, err := link.NewKeys("run")
	p.must(err)
	boot, err := json.Marshal(wire.Boot{
		V: wire.Version, Run: "run", HostKey: key.Public(), Secret: key.Secret, Home: "/home/agent", Dir: "/tmp/workspace",
		Env: map[string]string{"PATH": os.Getenv("PATH"), "WHO": "agent"},
	})
	p.must(err)
	box, err := provider.Create(t.Context(), sandbox.Spec{Labels: map[string]string{sandbox.LabelRun: "run"}, Boot: boot, Dir: p.dir})
	p.must(err)
	t.Cleanup(func() { p.must(box.Destroy(context.Background())) })
	conn, err := box.Link(t.Context())
	p.must(err)
	p.client, err = agent.Connect(t.Context(), conn, key, nil)
	p.must(err)
	t.Cleanup(func() { _ = p.client.Close() })
	return p
}

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// record is what a run left in the journal.
type record struct {
	stdout, stderr bytes.Buffer
	frames         []wire.Frame // of output, without their bytes
	outcome        wire.Outcome
}

// run starts a command and follows it to its end. said is called with each new output.
func (p *place) run(start wire.Start, said func(*record)) *record {
	p.t.Helper()
	start.Agent = Name
	p.must(p.client.Start(p.t.Context(), start))
	ctx, cancel := context.WithTimeout(p.t.Context(), hangs)
	defer cancel()
	r := &record{}
	p.must(p.client.Follow(ctx, 0, func(f wire.Frame) error {
		defer p.client.Ack(f.Seq)
		switch f.Type {
		case wire.FrameStdout:
			r.stdout.Write(f.Data)
		case wire.FrameStderr:
			r.stderr.Write(f.Data)
		case wire.FrameDone:
			return json.Unmarshal(f.Data, &r.outcome)
		default:
			return nil
		}
		if len(f.Data) > wire.MaxChunk {
			p.t.Errorf("frame of %d bytes", len(f.Data))
		}
		r.frames = append(r.frames, wire.Frame{Type: f.Type, Continued: f.Continued})
		if said != nil {
			said(r)
		}
		return nil
	}))
	return r
}

func shell(script string) wire.Start { return wire.Start{Command: []string{"sh", "-c", script}} }

// result is an outcome in a form that can be compared.
type result struct {
	code   int // -1: none
	signal string
	stop   string
	failed bool
}

func resultOf(o wire.Outcome) result {
	r := result{code: -1, signal: o.Signal, stop: o.StopReason, failed: o.Failed()}
	if o.ExitCode != nil {
		r.code = *o.ExitCode
	}
	return r
}

// The code is the command's own: one that is lost, or one of our making, makes --exit-code
// lie. A code above 128 that no signal gave stays a code.
func TestHowCommandsEnd(t *testing.T) {
	for script, want := range map[string]result{
		"exit 0":          {0, "", "end_turn", false},
		"exit 1":          {1, "", "end_turn", true},
		"exit 255":        {255, "", "end_turn", true},
		"exit 130":        {130, "", "end_turn", true},
		"kill -TERM $$":   {-1, "SIGTERM", "error", true},
		"kill -SEGV $$":   {-1, "SIGSEGV", "error", true},
		"kill -USR1 $$":   {-1, "SIGUSR1", "error", true},
		"no-such-program": {127, "", "end_turn", true}, // sh says so: it is sh that ran
	} {
		t.Run(script, func(t *testing.T) {
			if got := resultOf(newPlace(t).run(shell(script), nil).outcome); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// What never ran has the shell's code for that, and one line that says why.
func TestWhatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tt := range map[string]struct {
		start wire.Start
		code  int
		says  string
	}{
		"not in PATH":    {wire.Start{Command: []string{"no-such-program"}}, 127, "no-such-program: command not found"},
		"no such path":   {wire.Start{Command: []string{"/no/such"}}, 127, "/no/such: command not found"},
		"no interpreter": {wire.Start{Command: []string{file("a", "#!/no/such\n", 0o755)}}, 127, "command not found"},
		"not executable": {wire.Start{Command: []string{file("b", "x", 0o644)}}, 126, "not executable"},
		"a directory":    {wire.Start{Command: []string{dir}}, 126, "not executable"},
		"no program":     {wire.Start{Command: []string{file("c", "\x00\x01", 0o755)}}, 126, "neither a program"},
		"no directory":   {wire.Start{Command: []string{"true"}, Dir: "/no/such"}, 126, "working directory: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := newPlace(t).run(tt.start, nil)
			if got := resultOf(r.outcome); got != (result{tt.code, "", "error", true}) {
				t.Errorf("got %+v", got)
			}
			if !strings.Contains(r.outcome.Error, tt.says) || strings.Contains(r.outcome.Error, "\n") {
				t.Errorf("it says %q", r.outcome.Error)
			}
		})
	}
}

// Streams stay apart, the environment and the directory are the agent's, and there is no
// input: a program that asks must not wait for ever.
func TestWhatACommandSees(t *testing.T) {
	p := newPlace(t)
	r := p.run(wire.Start{Command: []string{"sh", "-c", `cat; echo "$WHO $0 $1"; pwd -P >&2`, "a b", "c"}, Dir: p.dir}, nil)
	where, err := filepath.EvalSymlinks(p.dir)
	p.must(err)
	if r.stdout.String() != "agent a b c\n" || r.stderr.String() != where+"\n" {
		t.Errorf("stdout %q, stderr %q", &r.stdout, &r.stderr)
	}
}

// A line without an end, larger than any frame, with bytes that are no text: all of it
// comes, in order, in pieces that say that they go on.
func TestHugeLineOfAnyBytes(t *testing.T) {
	const size = 3 << 20
	r := newPlace(t).run(shell(`head -c 3145728 /dev/zero; printf '\377end'`), nil)
	want := append(make([]byte, size), "\xffend"...)
	if !bytes.Equal(r.stdout.Bytes(), want) || resultOf(r.outcome).code != 0 {
		t.Fatalf("%d bytes, want %d; %+v", r.stdout.Len(), len(want), r.outcome)
	}
	for i, f := range r.frames {
		if f.Continued != (i < len(r.frames)-1) {
			t.Errorf("frame %d of %d: continued %v", i+1, len(r.frames), f.Continued)
		}
	}
}

// The rungs of the ladder: SIGINT, SIGTERM, SIGKILL, the next for who ignores the one
// before. A cancelled command is cancelled whatever it made of it; a missing rung would
// leave it running.
func TestCancelLadder(t *testing.T) {
	for script, want := range map[string]result{
		`echo ready; exec sleep 1000`:                                              {-1, "SIGINT", "cancelled", true},
		`trap "exit 0" INT; echo ready; while :; do sleep 0.01; done`:              {0, "", "cancelled", false},
		`trap "" INT; echo ready; exec sleep 1000`:                                 {-1, "SIGTERM", "cancelled", true},
		`trap "" INT TERM; echo ready; exec sleep 1000`:                            {-1, "SIGKILL", "cancelled", true},
		`trap "" INT TERM; (trap "" HUP; exec sleep 1000) & echo ready; wait; :; `: {-1, "SIGKILL", "cancelled", true},
	} {
		t.Run(script, func(t *testing.T) {
			p := newPlace(t)
			if want.signal != "" { // no handler needs the time
				p.grace = 50 * time.Millisecond
			}
			r := p.run(shell(script), func(*record) { go p.driver.Cancel(t.Context()) })
			if got := resultOf(r.outcome); got != want || r.outcome.Error != "" {
				t.Errorf("got %+v (%s), want %+v", got, r.outcome.Error, want)
			}
		})
	}
}

// A cancel that comes late does not change how the command ended.
func TestCancelAfterTheEndChangesNothing(t *testing.T) {
	p := newPlace(t)
	r := p.run(shell("exit 3"), nil)
	p.driver.Cancel(t.Context())
	if got := p.driver.outcome(p.driver.child, nil); resultOf(got) != resultOf(r.outcome) || p.driver.isCancelled() {
		t.Errorf("now %+v, before %+v", got, r.outcome)
	}
}

// A Close whose caller cannot wait returns; the command is ended all the same.
func TestCloseIsBoundedByItsCaller(t *testing.T) {
	p := newPlace(t)
	r := p.run(shell("echo ready; exec sleep 1000"), func(*record) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.driver.Close(ctx)
	})
	if got := resultOf(r.outcome); got != (result{-1, "SIGINT", "cancelled", true}) {
		t.Errorf("got %+v", got)
	}
}

// A child in the background that keeps the streams open does not hold the run, and ends
// with its session, which the end of the command closes: what is left would work on in
// the files while they are taken out. What shows its end is the end of its fifo.
func TestBackgroundChildEndsWithTheSession(t *testing.T) {
	p := newPlace(t)
	fifo := filepath.Join(p.dir, "fifo")
	p.must(syscall.Mkfifo(fifo, 0o600))
	ended := make(chan string, 1)
	go func() {
		f, err := os.Open(fifo)
		if err != nil {
			ended <- err.Error()
			return
		}
		defer func() { _ = f.Close() }()
		b, _ := io.ReadAll(f)
		ended <- string(b)
	}()
	r := p.run(wire.Start{Command: []string{"sh", "-c", `exec 3>"$0"; echo alive >&3; sleep 1000 & echo started`, fifo}}, nil)
	if r.stdout.String() != "started\n" || resultOf(r.outcome).code != 0 {
		t.Errorf("stdout %q, outcome %+v", &r.stdout, r.outcome)
	}
	select {
	case got := <-ended:
		if got != "alive\n" {
			t.Errorf("the fifo had %q", got)
		}
	case <-time.After(hangs):
		t.Error("it lives on")
	}
}

// The journal holds what was written before the end, in order, when the end is told.
func TestNothingIsLostAtTheEnd(t *testing.T) {
	r := newPlace(t).run(shell(`i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done; exec kill -KILL $$`), nil)
	lines := strings.Split(strings.TrimSuffix(r.stdout.String(), "\n"), "\n")
	if len(lines) != 2000 || lines[1999] != "1999" || !slices.Contains(lines, "0") {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}
