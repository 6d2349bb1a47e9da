package agentserver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

func output(n int) wire.Frame {
	return wire.Frame{Type: wire.FrameStdout, Data: make([]byte, n)}
}

func numbers(frames []wire.Frame) []uint64 {
	var out []uint64
	for _, f := range frames {
		out = append(out, f.Seq)
	}
	return out
}

func TestJournalNumbersWithoutGaps(t *testing.T) {
	j := newJournal(1<<20, 0)
	for range 5 {
		j.append(output(10))
	}
	got, _ := j.after(nil, 2, 10)
	if n := numbers(got); len(n) != 3 || n[0] != 3 || n[2] != 5 {
		t.Error(n)
	}
	j.ack(4)
	got, _ = j.after(nil, 0, 10) // what is durable is gone, whoever asks
	if n := numbers(got); len(n) != 1 || n[0] != 5 {
		t.Error(n)
	}
	if last, clean := j.state(); last != 5 || clean {
		t.Error(last, clean)
	}
	j.ack(1 << 60)
	if last, clean := j.state(); last != 5 || !clean || j.held != 0 {
		t.Error(last, clean, j.held)
	}
}

func TestJournalKeepsRecentForLateReaders(t *testing.T) {
	j := newJournal(1<<20, 3*cost(&wire.Frame{Data: make([]byte, 100)}))
	for range 10 {
		j.append(output(100))
	}
	j.ack(8)
	got, _ := j.after(nil, 0, 100)
	if n := numbers(got); len(n) != 5 || n[0] != 6 {
		t.Error(n)
	}
	if _, clean := j.state(); clean {
		t.Error("kept frames count as acknowledged ones only")
	}
}

func TestNothingComesAfterDone(t *testing.T) {
	j := newJournal(1<<20, 0)
	j.append(wire.Frame{Type: wire.FrameDone})
	j.append(output(1))
	if last, _ := j.state(); last != 1 {
		t.Error(last)
	}
}

func TestFullJournalHoldsTheProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(4000, 0)
		for j.held < 3000 {
			j.append(output(500))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := j.room(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("room in a journal at three quarters: %v", err)
		}
		done := make(chan bool)
		go func() {
			waited, _ := j.room(t.Context())
			done <- waited
		}()
		synctest.Wait()
		j.ack(1)
		if !<-done {
			t.Error("did not wait")
		}
	})
}

func TestFlushedWaitsForTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(1<<20, 0)
		j.append(output(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if j.flushed(ctx) {
			t.Error("flushed without an acknowledgement")
		}
		time.AfterFunc(time.Second, func() { j.ack(1) })
		if !j.flushed(t.Context()) {
			t.Error("not flushed")
		}
	})
}
