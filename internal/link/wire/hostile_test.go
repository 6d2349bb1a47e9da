package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// Wherever a link breaks, the reader says so: an end within a frame that looked like one
// between frames would be a run that ended in order.
func TestEveryCutOfFramesIsSeen(t *testing.T) {
	var whole []byte
	ends := map[int]bool{0: true}
	for _, f := range testFrames() {
		f.Data = f.Data[:min(len(f.Data), 40)]
		var err error
		if whole, err = AppendFrame(whole, &f); err != nil {
			t.Fatal(err)
		}
		ends[len(whole)] = true
	}
	for cut := range len(whole) + 1 {
		r := NewFrameReader(iotest.OneByteReader(bytes.NewReader(whole[:cut])))
		err := error(nil)
		for err == nil {
			err = r.Next(new(Frame))
		}
		want := io.ErrUnexpectedEOF
		if ends[cut] {
			want = io.EOF
		}
		if err != want { //nolint:errorlint // io.EOF itself, as the documentation says
			t.Errorf("cut at %d: %v, want %v", cut, err, want)
		}
	}
}

func TestEveryCutOfPiecesIsSeen(t *testing.T) {
	var b bytes.Buffer
	w := NewStreamWriter(&b)
	ends := map[int]bool{0: true}
	for _, write := range []func() error{
		func() error { return w.Write(StreamOutput, []byte("hello")) },
		func() error { return w.Write(StreamEOF, nil) },
		func() error { return w.Exit(Exit{Code: 3}) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
		ends[b.Len()] = true
	}
	for cut := range b.Len() + 1 {
		r := NewStreamReader(iotest.DataErrReader(bytes.NewReader(b.Bytes()[:cut])))
		err := error(nil)
		for err == nil {
			_, _, err = r.Next()
		}
		want := io.ErrUnexpectedEOF
		if ends[cut] {
			want = io.EOF
		}
		if err != want { //nolint:errorlint // io.EOF itself, as the documentation says
			t.Errorf("cut at %d: %v, want %v", cut, err, want)
		}
	}
}

// endless is a sandbox that never stops sending; it counts what was taken.
type endless struct {
	head  []byte
	taken int
}

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.head)
	e.head = e.head[n:]
	for i := range b[n:] {
		b[n+i] = 'x'
	}
	e.taken += len(b)
	return len(b), nil
}

// What a hostile sandbox claims to send is refused before it is held: reading on would
// take the host's memory.
func TestOversizedClaimsAreRefusedAtOnce(t *testing.T) {
	frame := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	piece := func(n uint32) []byte { return binary.BigEndian.AppendUint32([]byte{byte(StreamOutput)}, n) }
	for name, read := range map[string]func(r io.Reader) error{
		"frame": func(r io.Reader) error { return NewFrameReader(r).Next(new(Frame)) },
		"piece": func(r io.Reader) error { _, _, err := NewStreamReader(r).Next(); return err },
		"line":  func(r io.Reader) error { return NewStreamReader(r).Line(new(Command)) },
		"word":  func(r io.Reader) error { _, err := ReadLine(bufio.NewReader(r), 100); return err },
	} {
		var head []byte
		switch name {
		case "frame":
			head = frame(MaxFrame - 3)
		case "piece":
			head = piece(MaxChunk + 1)
		}
		in := &endless{head: head}
		if err := read(in); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
		if in.taken > MaxFrame+2*bufferSize {
			t.Errorf("%s: %d bytes were taken", name, in.taken)
		}
	}
	r := NewFrameReader(&endless{head: frame(MaxFrame - 4)})
	if err := r.Next(new(Frame)); err == nil || cap(r.buf) > 2*MaxFrame {
		t.Errorf("the largest frame is held in %d bytes; %v", cap(r.buf), err)
	}
}

func TestLinesOfRequestsAreChecked(t *testing.T) {
	for in, want := range map[string]error{
		"{\n": ErrFrame, "\n": ErrFrame, "{\"argv\":7}\n": ErrFrame, "{}": io.ErrUnexpectedEOF, "": io.EOF, "{}\n": nil,
	} {
		if err := NewStreamReader(strings.NewReader(in)).Line(new(Command)); !errors.Is(err, want) {
			t.Errorf("%q: %v", in, err)
		}
	}
	var sent bytes.Buffer
	if err := NewStreamWriter(&sent).Line(Command{Argv: []string{strings.Repeat("x", MaxFrame)}}); !errors.Is(err, ErrFrame) || sent.Len() != 0 {
		t.Errorf("%d bytes were sent, %v", sent.Len(), err)
	}
}

// A reason of any length and any bytes fits the one piece that ends a stream: if it did
// not, the other side would take the stream for cut off.
func TestExitAlwaysFits(t *testing.T) {
	for _, reason := range []string{
		strings.Repeat("\x01", 10*MaxHello), strings.Repeat("é", 10*MaxHello), "a" + strings.Repeat("世", 10*MaxHello), "\xff", "",
	} {
		var b bytes.Buffer
		if err := NewStreamWriter(&b).Exit(Exit{Code: 1, Error: reason}); err != nil {
			t.Fatal(err)
		}
		r := NewStreamReader(&b)
		typ, p, err := r.Next()
		if err != nil || typ != StreamExit {
			t.Fatalf("%d, %v", typ, err)
		}
		e, err := ParseExit(p)
		if err != nil || e.Code != 1 || !utf8.ValidString(e.Error) || (e.Error == "") != (reason == "") {
			t.Errorf("%d bytes of reason came as %d, %v", len(reason), len(e.Error), err)
		}
		if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("after the exit: %v", err)
		}
	}
}

func TestCreditIsBounded(t *testing.T) {
	for n, ok := range map[uint32]bool{0: true, 1: true, InputWindow: true, InputWindow + 1: false, 1<<32 - 1: false} {
		got, err := ParseCredit(binary.BigEndian.AppendUint32(nil, n))
		if (err == nil) != ok || ok && got != int(n) {
			t.Errorf("%d: %d, %v", n, got, err)
		}
	}
}

// A link that is gone is told to whoever writes, at the first write that can know.
func TestWritersTellThatTheLinkIsGone(t *testing.T) {
	gone := errors.New("gone")
	w := NewStreamWriter(failing{gone})
	for name, err := range map[string]error{
		"line": w.Line(Command{}), "piece": w.Write(StreamInput, nil), "credit": w.Credit(1), "resize": w.Resize(1, 2), "exit": w.Exit(Exit{}),
	} {
		if !errors.Is(err, gone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err := w.To(StreamOutput).Write([]byte("x")); n != 0 || !errors.Is(err, gone) {
		t.Errorf("output: %d, %v", n, err)
	}
	f := NewFrameWriter(failing{gone})
	err := f.Write(&Frame{Type: FrameStdout, Data: make([]byte, bufferSize)})
	if err = errors.Join(err, f.Flush()); !errors.Is(err, gone) {
		t.Errorf("frame: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Nothing is nothing: an empty write of a process is no piece, which a reader could take
// for the end of a file.
func TestEmptyWritesAreNoPieces(t *testing.T) {
	var b bytes.Buffer
	if n, err := NewStreamWriter(&b).To(StreamInput).Write(nil); n != 0 || err != nil || b.Len() != 0 {
		t.Errorf("%d, %v, % x", n, err, b.Bytes())
	}
}

func TestInputAfterItsEnd(t *testing.T) {
	lost := errors.New("lost")
	in := NewInput(func(int) error { return lost })
	if err := errors.Join(in.Push([]byte("ab")), in.Close(), in.Close(), in.Push([]byte("late"))); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 10)
	// The credit cannot be given: the bytes are there, and so is the reason.
	if n, err := in.Read(b); string(b[:n]) != "ab" || !errors.Is(err, lost) {
		t.Errorf("%q, %v", b[:n], err)
	}
	if n, err := in.Read(b); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %d, %v", n, err)
	}
}

// Taken for a success, a failure of the task would be a green build.
func TestWhatHasFailed(t *testing.T) {
	zero, one := 0, 1
	for _, tt := range []struct {
		o    *Outcome
		want bool
	}{
		{nil, false},
		{&Outcome{StopReason: "end_turn"}, false},
		{&Outcome{StopReason: "end_turn", ExitCode: &zero}, false},
		{&Outcome{StopReason: "end_turn", ExitCode: &one}, true},
		{&Outcome{StopReason: "cancelled", Signal: "SIGINT"}, true},
		{&Outcome{StopReason: "error"}, true},
		{&Outcome{ExitCode: &zero, Error: "x"}, true},
	} {
		if got := tt.o.Failed(); got != tt.want {
			t.Errorf("%+v: %v", tt.o, got)
		}
	}
}

// An exit code of 0 is told; one that was left out would be "there was no command".
func TestOutcomeForm(t *testing.T) {
	zero := 0
	for want, o := range map[string]Outcome{
		`{"exitCode":0,"stopReason":"end_turn"}`:                                   {ExitCode: &zero, StopReason: "end_turn"},
		`{"signal":"SIGKILL","stopReason":"error","error":"was ended by SIGKILL"}`: {Signal: "SIGKILL", StopReason: "error", Error: "was ended by SIGKILL"},
	} {
		b, err := json.Marshal(o)
		var back Outcome
		if err != nil || string(b) != want || json.Unmarshal(b, &back) != nil || !reflect.DeepEqual(back, o) {
			t.Errorf("%s, %v; want %s", b, err, want)
		}
	}
}
