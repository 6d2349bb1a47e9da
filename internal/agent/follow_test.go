package agent

import (
	"context"
	"errors"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
)

func TestFollowDeliversInOrder(t *testing.T) {
	var from uint64
	f := &fakePID1{events: func(n uint64, w *wire.FrameWriter) error {
		from = n
		if err := w.Write(&wire.Frame{Type: wire.FrameHeartbeat, Data: []byte(`{}`)}); err != nil {
			return err
		}
		return output(n+1, n+1000)(n, w)
	}}
	c, _ := f.connect(t, nil)
	var frames int
	err := c.Follow(t.Context(), 41, func(fr wire.Frame) error {
		if frames > 0 && fr.Seq != 41+uint64(frames) {
			t.Fatalf("frame %d has number %d", frames, fr.Seq)
		}
		frames++
		return nil
	})
	if err != nil || frames != 1001 || from != 41 {
		t.Fatalf("%v after %d frames from %d", err, frames, from)
	}
}

func TestFollowEndsWithDeliversError(t *testing.T) {
	c, _ := (&fakePID1{events: output(1, 10)}).connect(t, nil)
	full := errors.New("disk full")
	if err := c.Follow(t.Context(), 0, func(wire.Frame) error { return full }); !errors.Is(err, full) {
		t.Fatal(err)
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	c, _ := (&fakePID1{events: func(uint64, *wire.FrameWriter) error { return nil }}).connect(t, nil)
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if err := c.Follow(ctx, 0, nil); !errors.Is(err, stop) {
		t.Fatal(err)
	}
}

func TestFollowTellsALostLink(t *testing.T) {
	f := &fakePID1{events: func(_ uint64, w *wire.FrameWriter) error {
		return w.Write(&wire.Frame{Type: wire.FrameStdout, Seq: 1, Data: []byte("x")})
	}}
	c, _ := f.connect(t, nil)
	err := c.Follow(t.Context(), 0, func(wire.Frame) error { return f.conn.Close() })
	if !errors.Is(err, ErrLost) {
		t.Fatal(err)
	}
}

// TestFollowRefusesGapsAndRepetitions: PID 1 must not make the host believe that
// it has seen what it has not.
func TestFollowRefusesGapsAndRepetitions(t *testing.T) {
	for name, seqs := range map[string][]uint64{
		"gap":         {6, 8},
		"repetition":  {6, 6},
		"too old":     {5},
		"zero":        {0},
		"backwards":   {7, 6},
		"wrap around": {1<<64 - 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakePID1{events: func(_ uint64, w *wire.FrameWriter) error {
				for _, seq := range seqs {
					if err := w.Write(&wire.Frame{Type: wire.FrameStdout, Seq: seq}); err != nil {
						return err
					}
				}
				return nil
			}}
			c, _ := f.connect(t, nil)
			err := c.Follow(t.Context(), 5, func(wire.Frame) error { return nil })
			if !errors.Is(err, wire.ErrFrame) || errors.Is(err, ErrLost) {
				t.Fatal(err)
			}
		})
	}
}

func TestAcksArriveAlsoAfterTheEnd(t *testing.T) {
	f := &fakePID1{events: output(1, 3), acks: make(chan uint64, 100)}
	c, _ := f.connect(t, nil)
	if err := c.Follow(t.Context(), 0, func(fr wire.Frame) error {
		c.Ack(fr.Seq)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c.Ack(1) // older: says nothing
	for last := uint64(0); last < 3; {
		n := <-f.acks
		if n <= last {
			t.Fatalf("acknowledged %d after %d", n, last)
		}
		last = n
	}
}

// TestSecondFollowIsTold: what is durable is said again on a new stream.
func TestSecondFollowIsTold(t *testing.T) {
	f := &fakePID1{events: output(8, 9), acks: make(chan uint64, 100)}
	c, _ := f.connect(t, nil)
	c.Ack(7)
	for range 2 {
		if err := c.Follow(t.Context(), 7, func(wire.Frame) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if n := <-f.acks; n != 7 {
			t.Fatalf("acknowledged %d", n)
		}
	}
}
