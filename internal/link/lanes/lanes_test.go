package lanes

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sides are the two of a carrier.
func sides(t testing.TB) (opens, accepts *Mux) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	opens, accepts = New(a, true), New(b, false)
	t.Cleanup(func() { _ = opens.Close(); _ = accepts.Close() })
	return opens, accepts
}

// ends are the two of a lane.
func ends(t testing.TB, opens, accepts *Mux) (near, far *Lane) {
	t.Helper()
	near, err := opens.Open()
	if err != nil {
		t.Fatal(err)
	}
	far, err = accepts.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return near, far
}

// Many lanes at once carry what they are given, both ways, through buffers of any size, and
// nothing of them is left.
func TestLanesCarry(t *testing.T) {
	opens, accepts := sides(t)
	var all sync.WaitGroup
	all.Go(func() {
		for range 50 {
			far, err := accepts.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			all.Go(func() {
				_, _ = io.CopyBuffer(struct{ io.Writer }{far}, struct{ io.Reader }{far}, make([]byte, 1+rand.IntN(300<<10)))
				_ = far.Close()
			})
		}
	})
	for range 50 {
		all.Go(func() {
			near, err := opens.Open()
			if err != nil {
				t.Error(err)
				return
			}
			sent := make([]byte, rand.IntN(4<<20))
			for i := range sent {
				sent[i] = byte(rand.Int())
			}
			all.Go(func() {
				for rest := sent; len(rest) > 0; {
					n := min(len(rest), 1+rand.IntN(200<<10))
					if _, err := near.Write(rest[:n]); err != nil {
						t.Error(err)
						return
					}
					rest = rest[n:]
				}
				_ = near.Close()
			})
			got, err := io.ReadAll(near)
			if err != nil || sha256.Sum256(got) != sha256.Sum256(sent) {
				t.Errorf("%d bytes of %d, %v", len(got), len(sent), err)
			}
		})
	}
	all.Wait()
	for name, m := range map[string]*Mux{"opens": opens, "accepts": accepts} {
		m.mu.Lock()
		if len(m.lanes) != 0 || m.budget != maxBudget {
			t.Errorf("%s: %d lanes are left, and a budget of %d", name, len(m.lanes), m.budget)
		}
		m.mu.Unlock()
	}
}

func TestHalfClose(t *testing.T) {
	near, far := pairOf(t)
	_, _ = near.Write([]byte("question"))
	_ = near.Close()
	if got, err := io.ReadAll(far); string(got) != "question" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	_, _ = far.Write([]byte("answer"))
	_ = far.Close()
	if got, err := io.ReadAll(near); string(got) != "answer" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := near.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write behind the end: %v", err)
	}
}

func pairOf(t testing.TB) (near, far *Lane) {
	t.Helper()
	opens, accepts := sides(t)
	return ends(t, opens, accepts)
}

func TestResetIsNoEnd(t *testing.T) {
	near, far := pairOf(t)
	_, _ = near.Write([]byte("half of i"))
	near.Reset()
	if _, err := io.ReadAll(far); !errors.Is(err, ErrReset) {
		t.Errorf("the other side reads: %v", err)
	}
	if _, err := far.Write([]byte("x")); !errors.Is(err, ErrReset) {
		t.Errorf("the other side writes: %v", err)
	}
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, ErrReset) {
		t.Errorf("this side reads: %v", err)
	}
}

// What was ended in order is read in full, though nothing is taken in return.
func TestFinishIsAnEnd(t *testing.T) {
	near, far := pairOf(t)
	_, _ = near.Write(bytes.Repeat([]byte("x"), 40<<10))
	near.Finish()
	if got, err := io.ReadAll(far); len(got) != 40<<10 || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := far.Write(make([]byte, 1<<20)); !errors.Is(err, ErrReset) {
		t.Errorf("a write in return: %v", err)
	}
}

// A lane that nobody reads takes what its window holds, and stops nobody else.
func TestLanesDoNotWaitForEachOther(t *testing.T) {
	opens, accepts := sides(t)
	stalled, _ := ends(t, opens, accepts)
	_ = stalled.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	n, err := stalled.Write(make([]byte, 1<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) || n != firstWindow {
		t.Errorf("%d bytes were taken, %v", n, err)
	}
	near, far := ends(t, opens, accepts)
	go func() { _, _ = near.Write([]byte("x")) }()
	if _, err := io.ReadFull(far, make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

func TestDeadlines(t *testing.T) {
	near, _ := pairOf(t)
	_ = near.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	read := make(chan error, 1)
	_ = near.SetDeadline(time.Time{})
	go func() { _, err := near.Read(make([]byte, 1)); read <- err }()
	_ = near.SetReadDeadline(past())
	if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one that waits: %v", err)
	}
}

func TestDeadlineThatIsMovedDoesNotPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deadline
		d.set(time.Now().Add(time.Second))
		c := d.passed()
		d.set(time.Now().Add(time.Minute))
		select {
		case <-c:
			t.Error("it has passed")
		case <-time.After(30 * time.Second):
		}
		<-c
	})
}

func TestCloseEndsEverything(t *testing.T) {
	opens, accepts := sides(t)
	near, far := ends(t, opens, accepts)
	read := make(chan error, 2)
	for _, l := range []*Lane{near, far} {
		go func() { _, err := l.Read(make([]byte, 1)); read <- err }()
	}
	_ = accepts.Close()
	for range 2 {
		if err := <-read; !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	}
	<-opens.Done()
	<-near.Lost()
	if _, err := opens.Open(); !errors.Is(err, ErrClosed) {
		t.Errorf("open: %v", err)
	}
	if _, err := accepts.Accept(); !errors.Is(err, ErrClosed) {
		t.Errorf("accept: %v", err)
	}
}

// More lanes than anybody accepts are reset; the others are not harmed.
func TestLanesThatNobodyAccepts(t *testing.T) {
	opens, accepts := sides(t)
	var all []*Lane
	for range maxWaiting + 50 {
		l, err := opens.Open()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	for _, l := range all[maxWaiting:] {
		if _, err := l.Read(make([]byte, 1)); !errors.Is(err, ErrReset) {
			t.Fatal(err)
		}
	}
	far, err := accepts.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = far.Write([]byte("x"))
	if _, err := io.ReadFull(all[0], make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

func frame(kind byte, id uint32, size int, data []byte) []byte {
	var h [headerLen]byte
	binary.BigEndian.PutUint32(h[:], uint32(size))
	h[0] = kind
	binary.BigEndian.PutUint32(h[4:], id)
	return append(h[:], data...)
}

// A peer that breaks the rules loses the carrier.
func TestRulesOfLanes(t *testing.T) {
	open := frame(frameOpen, 1, 0, nil)
	for name, sent := range map[string][]byte{
		"an unknown frame":      frame(9, 1, 0, nil),
		"too large a frame":     frame(frameData, 1, maxData+1, nil),
		"more than the window":  append(open, bytes.Repeat(frame(frameData, 1, maxData, make([]byte, maxData)), 2)...),
		"data behind the end":   append(append(open, frame(frameEnd, 1, 0, nil)...), frame(frameData, 1, 1, []byte{0})...),
		"a lane twice":          append(open, open...),
		"too much credit":       append(open, frame(frameCredit, 1, 4, []byte{0, 0xff, 0xff, 0xff})...),
		"a short credit":        append(open, frame(frameCredit, 1, 1, []byte{0})...),
		"an end with something": append(open, frame(frameEnd, 1, 1, []byte{0})...),
		"an open with some":     frame(frameOpen, 1, 1, []byte{0}),
	} {
		t.Run(name, func(t *testing.T) {
			a, b := net.Pipe()
			m := New(b, false)
			defer m.Close()
			go func() { _, _ = io.Copy(io.Discard, a) }()
			_ = a.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = a.Write(sent)
			<-m.Done()
		})
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(append(frame(frameOpen, 1, 0, nil), frame(frameData, 1, 3, []byte("abc"))...))
	f.Add(append(frame(frameOpen, 7, 0, nil), frame(frameReset, 7, 0, nil)...))
	f.Fuzz(func(t *testing.T, sent []byte) {
		a, b := net.Pipe()
		m := New(b, false)
		go func() { _, _ = io.Copy(io.Discard, a) }()
		_, _ = a.Write(sent)
		_ = a.Close()
		_ = m.Close()
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, l := range m.lanes {
			if l.size > firstWindow {
				t.Errorf("a lane holds %d bytes", l.size)
			}
		}
	})
}

// The window of a lane whose reader is faster than it grows, up to its bound, and of one that
// is not read stays.
func TestWindowGrowsWithItsReader(t *testing.T) {
	opens, accepts := sides(t)
	near, far := ends(t, opens, accepts)
	go func() {
		_, _ = near.Write(make([]byte, 32<<20))
		_ = near.Close()
	}()
	if n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{far}, make([]byte, 256<<10)); n != 32<<20 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	far.mu.Lock()
	defer far.mu.Unlock()
	if far.window <= firstWindow || far.window > maxWindow {
		t.Errorf("the window is %d", far.window)
	}
}
