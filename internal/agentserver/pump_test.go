package agentserver

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// pumped runs a pump in a bubble of fake time. write is given the process's end of
// the stream; pumped returns the frames.
func pumped(t *testing.T, write func(w io.Writer)) []wire.Frame {
	t.Helper()
	var frames []wire.Frame
	synctest.Test(t, func(t *testing.T) {
		ours, child := net.Pipe()
		j := newJournal(256<<20, 0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			newPump(wire.FrameStdout, newTail(ours), j).run(t.Context())
		}()
		write(child)
		_ = child.Close()
		<-done
		frames, _ = j.after(nil, 0, 1<<30)
	})
	return frames
}

func text(frames []wire.Frame) string {
	var b strings.Builder
	for _, f := range frames {
		b.Write(f.Data)
	}
	return b.String()
}

// pass lets fake time pass.
func pass(d time.Duration) { <-time.After(d) }

func put(w io.Writer, s string) { _, _ = io.WriteString(w, s) }

func TestLoneLineIsSentAtOnce(t *testing.T) {
	var begin time.Time
	frames := pumped(t, func(w io.Writer) {
		begin = time.Now()
		put(w, "one\n")
		pass(time.Second)
		put(w, "two\n")
		pass(time.Second)
	})
	if len(frames) != 2 || !frames[0].At.Equal(begin) || frames[1].At.Sub(begin) != time.Second {
		t.Errorf("%d frames", len(frames))
	}
}

func TestLineAfterALineWaitsForCompany(t *testing.T) {
	var begin time.Time
	frames := pumped(t, func(w io.Writer) {
		begin = time.Now()
		for range 10 {
			put(w, "line\n")
			pass(time.Millisecond)
		}
		pass(time.Second)
	})
	if len(frames) != 2 || string(frames[1].Data) != strings.Repeat("line\n", 9) {
		t.Fatalf("%d frames", len(frames))
	}
	// The second line came 1 ms after the first frame and is the oldest of them.
	if late := frames[1].At.Sub(begin.Add(time.Millisecond)); late > 20*time.Millisecond {
		t.Errorf("sent %v late", late)
	}
}

func TestPromptIsSentAndContinued(t *testing.T) {
	frames := pumped(t, func(w io.Writer) {
		put(w, "Password: ")
		pass(time.Second)
		put(w, "ok\n")
	})
	if len(frames) != 2 || !frames[0].Continued || frames[1].Continued || text(frames) != "Password: ok\n" {
		t.Errorf("%+v", frames)
	}
	if string(frames[0].Data) != "Password: " {
		t.Errorf("%q", frames[0].Data)
	}
}

func TestLinesAreSentBeforeAnUnfinishedOne(t *testing.T) {
	frames := pumped(t, func(w io.Writer) {
		put(w, "done\n50%")
		pass(time.Second)
	})
	if len(frames) != 2 || string(frames[0].Data) != "done\n" || frames[0].Continued || string(frames[1].Data) != "50%" || !frames[1].Continued {
		t.Errorf("%+v", frames)
	}
}

func TestLastLineWithoutAnEnd(t *testing.T) {
	frames := pumped(t, func(w io.Writer) { put(w, "bye") })
	if len(frames) != 1 || frames[0].Continued || string(frames[0].Data) != "bye" {
		t.Errorf("%+v", frames)
	}
}

func TestHugeLineIsSplit(t *testing.T) {
	line := strings.Repeat("é", 25<<20) + "\n" // 50 MB; two bytes a character
	frames := pumped(t, func(w io.Writer) { put(w, line) })
	var h [2][sha256.Size]byte
	h[0], h[1] = sha256.Sum256([]byte(line)), sha256.Sum256([]byte(text(frames)))
	if h[0] != h[1] {
		t.Fatal("bytes differ")
	}
	for i, f := range frames {
		if last := i == len(frames)-1; f.Continued == last || len(f.Data) > wire.MaxChunk || !bytes.HasPrefix(f.Data, []byte("é")) && !last {
			t.Fatalf("frame %d of %d: continued %v, %d bytes", i, len(frames), f.Continued, len(f.Data))
		}
	}
	if most := len(line)/(wire.MaxChunk-4) + 2; len(frames) > most {
		t.Errorf("%d frames, want at most %d", len(frames), most)
	}
}

// TestBytesAreKeptInOrder writes noise in pieces of any size at any pace.
func TestBytesAreKeptInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var want bytes.Buffer
	frames := pumped(t, func(w io.Writer) {
		for range 400 {
			b := make([]byte, r.IntN(8<<10))
			for i := range b {
				b[i] = "ab\n\r\x00\xff\xc3\xa9"[r.IntN(8)]
			}
			want.Write(b)
			_, _ = w.Write(b)
			pass(time.Duration(r.IntN(20)) * time.Millisecond)
		}
	})
	if text(frames) != want.String() {
		t.Error("bytes differ")
	}
	for _, f := range frames {
		if ends := bytes.HasSuffix(f.Data, []byte("\n")); f.Continued && ends {
			t.Error("a whole line is marked as continued")
		}
	}
}

func TestCharacterIsNotCut(t *testing.T) {
	frames := pumped(t, func(w io.Writer) {
		put(w, "caf\xc3")
		pass(16 * time.Millisecond)
		put(w, "\xa9\n")
	})
	if len(frames) != 2 || string(frames[0].Data) != "caf" || string(frames[1].Data) != "é\n" {
		t.Errorf("%+v", frames)
	}
}

// fast runs a producer against a pump over a real pipe and returns the journal's
// frames and bytes; what has been pumped is acknowledged at once.
func fast(tb testing.TB, produce func(w *os.File)) (frames int, size int64) {
	tb.Helper()
	ours, child, err := outputPipe()
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	j := newJournal(defaultJournal, 0)
	written := make(chan struct{})
	go func() {
		defer close(written)
		produce(child)
		_ = child.Close()
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		newPump(wire.FrameStdout, newTail(ours), j).run(tb.Context())
	}()
	var seen uint64
	batch := make([]wire.Frame, 0, 64)
	for {
		var added <-chan struct{}
		batch, added = j.after(batch[:0], seen, cap(batch))
		for i := range batch {
			frames++
			size += int64(len(batch[i].Data))
			seen = batch[i].Seq
		}
		j.ack(seen)
		if added == nil {
			continue
		}
		select {
		case <-added:
		case <-done:
			if last, _ := j.state(); last == seen {
				<-written
				return frames, size
			}
		}
	}
}

func TestAMillionLinesAreFewFrames(t *testing.T) {
	const lines, length = 1_000_000, 100
	chunk := bytes.Repeat(append(bytes.Repeat([]byte("x"), length-1), '\n'), 100)
	frames, size := fast(t, func(w *os.File) {
		for range lines / 100 {
			_, _ = w.Write(chunk)
		}
	})
	if size != lines*length || frames > 2000 {
		t.Errorf("%d frames, %d bytes", frames, size)
	}
	t.Logf("%d frames", frames)
}

// BenchmarkFraming is the way of output from the pipe into the journal: the aim is
// 300 MB/s.
func BenchmarkFraming(b *testing.B) {
	chunk := bytes.Repeat(append(bytes.Repeat([]byte("x"), 99), '\n'), 640) // 64,000 bytes
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	frames, _ := fast(b, func(w *os.File) {
		for range b.N {
			_, _ = w.Write(chunk)
		}
	})
	b.ReportMetric(float64(b.N*640)/float64(frames), "lines/frame")
}
