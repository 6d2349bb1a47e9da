package sandboxtest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

var sessionTests = []test{
	{name: "session runs a command to its end", run: session},
	{name: "session starts once", run: startTwice},
	{name: "session fails with its reason", run: sessionFails},
	{name: "output order", run: outputOrder},
	{name: "interrupt", run: interrupt},
}

// follower collects the frames of a session and checks their numbers.
type follower struct {
	last    uint64
	gap     string
	stdout  bytes.Buffer
	stderr  bytes.Buffer
	outcome *wire.Outcome
}

func (f *follower) take(fr wire.Frame) {
	if fr.Type == wire.FrameHeartbeat {
		return
	}
	if fr.Seq != f.last+1 && f.gap == "" {
		f.gap = fmt.Sprintf("frame %d after %d", fr.Seq, f.last)
	}
	f.last = fr.Seq
	switch fr.Type {
	case wire.FrameStdout:
		f.stdout.Write(fr.Data)
	case wire.FrameStderr:
		f.stderr.Write(fr.Data)
	case wire.FrameDone:
		f.outcome = new(wire.Outcome)
		if err := json.Unmarshal(fr.Data, f.outcome); err != nil {
			f.gap = err.Error()
		}
	case wire.FrameEvent, wire.FrameHeartbeat:
	}
}

// check asserts that standard output is the numbers from 0 to lines-1, one a line.
func (f *follower) check(l *lab, lines int) {
	l.Helper()
	var want bytes.Buffer
	for i := range lines {
		fmt.Fprintln(&want, i)
	}
	switch {
	case f.gap != "":
		l.Error(f.gap)
	case !bytes.Equal(f.stdout.Bytes(), want.Bytes()):
		l.Errorf("%d bytes of output, want %d", f.stdout.Len(), want.Len())
	case f.outcome == nil:
		l.Error("no end")
	}
}

// runSession starts command as the session and follows it to its end.
func (l *lab) runSession(c *agent.Client, argv ...string) *follower {
	l.Helper()
	if err := c.Start(l.context(), wire.Start{Agent: "exec", Command: argv, Mode: string(task.ModeBackground)}); err != nil {
		l.Fatalf("start: %v", err)
	}
	f := &follower{}
	if err := c.Follow(l.context(), 0, func(fr wire.Frame) error {
		f.take(fr)
		c.Ack(fr.Seq)
		return nil
	}); err != nil {
		l.Fatalf("follow: %v", err)
	}
	if f.gap != "" {
		l.Error(f.gap)
	}
	return f
}

func session(l *lab) {
	_, c, _ := l.start()
	f := l.runSession(c, "/bin/sh", "-c", "echo out; echo err >&2; exit 7")
	o := f.outcome
	if f.stdout.String() != "out\n" || f.stderr.String() != "err\n" || o == nil || o.ExitCode == nil || *o.ExitCode != 7 {
		l.Errorf("%q, %q, %+v", f.stdout.String(), f.stderr.String(), o)
	}
	// The sandbox is still there, for the changes to be taken out.
	l.want(c, "echo alive", "alive")
}

func startTwice(l *lab) {
	_, c, _ := l.start()
	start := wire.Start{Agent: "exec", Command: []string{"/bin/sh", "-c", "exec sleep 1000"}}
	if err := c.Start(l.context(), start); err != nil {
		l.Fatal(err)
	}
	if err := c.Ready(l.context()); err != nil {
		l.Fatal(err)
	}
	if err := c.Start(l.context(), start); err == nil {
		l.Error("the session started twice")
	}
}

func sessionFails(l *lab) {
	_, c, _ := l.start()
	if err := c.Start(l.context(), wire.Start{Agent: "no-such-agent"}); err == nil {
		l.Error("an unknown agent was started")
	}
	f := l.runSession(c, "no-such-command-anywhere")
	if o := f.outcome; o == nil || o.ExitCode == nil || *o.ExitCode != 127 || o.Error == "" {
		l.Errorf("%+v", o)
	}
}

func outputOrder(l *lab) {
	_, c, _ := l.start()
	const lines = 200_000
	f := l.runSession(c, "/bin/sh", "-c", "seq 0 199999")
	f.check(l, lines)
	if f.last > 2000 {
		l.Errorf("%d lines made %d events", lines, f.last)
	}
}

func interrupt(l *lab) {
	_, c, _ := l.start()
	if err := c.Start(l.context(), wire.Start{Agent: "exec", Command: []string{
		"/bin/sh", "-c",
		`trap "echo caught; exit 9" INT; echo ready; while :; do sleep 0.1; done`,
	}}); err != nil {
		l.Fatal(err)
	}
	f := &follower{}
	if err := c.Follow(l.context(), 0, func(fr wire.Frame) error {
		before := f.stdout.Len()
		f.take(fr)
		if before == 0 && f.stdout.Len() > 0 {
			return c.Send(l.context(), task.Input{ID: "i", Kind: task.InputInterrupt})
		}
		return nil
	}); err != nil {
		l.Fatal(err)
	}
	if o := f.outcome; f.stdout.String() != "ready\ncaught\n" || o == nil || o.StopReason != "cancelled" {
		l.Errorf("%q, %+v", f.stdout.String(), o)
	}
}
