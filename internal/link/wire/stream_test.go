package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestPiecesSurviveTheStream(t *testing.T) {
	var b bytes.Buffer
	w := NewStreamWriter(&b)
	command := Command{Argv: []string{"git", "status"}, TTY: true, Rows: 24, Cols: 80}
	long := bytes.Repeat([]byte("x"), MaxChunk+1)
	for _, err := range []error{
		w.Line(command), w.Write(StreamOutput, long), w.Write(StreamEOF, nil),
		w.Resize(50, 132), w.Credit(77), w.Exit(Exit{Code: 137, Signal: "SIGKILL"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r := NewStreamReader(&b)
	var got Command
	if err := r.Line(&got); err != nil || !reflect.DeepEqual(got, command) {
		t.Fatalf("%+v, %v", got, err)
	}
	next := func(want StreamType) []byte {
		t.Helper()
		typ, p, err := r.Next()
		if err != nil || typ != want {
			t.Fatalf("piece of type %d, %v; want %d", typ, err, want)
		}
		return p
	}
	if p := next(StreamOutput); len(p) != MaxChunk {
		t.Errorf("first piece: %d bytes", len(p))
	}
	if p := next(StreamOutput); len(p) != 1 {
		t.Errorf("second piece: %d bytes", len(p))
	}
	next(StreamEOF)
	if rows, cols, err := ParseResize(next(StreamResize)); rows != 50 || cols != 132 || err != nil {
		t.Errorf("size %dx%d, %v", rows, cols, err)
	}
	if n, err := ParseCredit(next(StreamCredit)); n != 77 || err != nil {
		t.Errorf("credit %d, %v", n, err)
	}
	if e, err := ParseExit(next(StreamExit)); e != (Exit{Code: 137, Signal: "SIGKILL"}) || err != nil {
		t.Errorf("exit %+v, %v", e, err)
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last: %v", err)
	}
}

func TestMalformedPieces(t *testing.T) {
	for in, want := range map[string]error{
		"\x00\x00\x00\x00\x00":  ErrFrame,
		"\x09\x00\x00\x00\x00":  ErrFrame,
		"\x01\x00\x01\x00\x01":  ErrFrame,
		"\x01\xff\xff\xff\xff":  ErrFrame,
		"\x01\x00\x00\x00\x02a": io.ErrUnexpectedEOF,
		"\x01\x00":              io.ErrUnexpectedEOF,
	} {
		if _, _, err := NewStreamReader(strings.NewReader(in)).Next(); !errors.Is(err, want) {
			t.Errorf("%q: %v", in, err)
		}
	}
	for _, in := range []string{"", "123", "12345"} {
		if _, _, err := ParseResize([]byte(in)); !errors.Is(err, ErrFrame) {
			t.Errorf("size %q: %v", in, err)
		}
		if _, err := ParseCredit([]byte(in)); !errors.Is(err, ErrFrame) {
			t.Errorf("credit %q: %v", in, err)
		}
	}
	if _, err := ParseCredit([]byte{0xff, 0, 0, 0}); !errors.Is(err, ErrFrame) {
		t.Errorf("more credit than the window: %v", err)
	}
	if _, err := ParseExit([]byte("{")); !errors.Is(err, ErrFrame) {
		t.Errorf("exit: %v", err)
	}
}

func TestReadLine(t *testing.T) {
	for name, c := range map[string]struct {
		in, want string
		err      error
	}{
		"one":             {"a\nb", "a", nil},
		"empty":           {"\n", "", nil},
		"over the buffer": {strings.Repeat("x", 90) + "\n", strings.Repeat("x", 90), nil},
		"too long":        {strings.Repeat("x", 200), "", ErrFrame},
		"torn":            {"abc", "", io.ErrUnexpectedEOF},
		"nothing":         {"", "", io.EOF},
	} {
		line, err := ReadLine(bufio.NewReaderSize(strings.NewReader(c.in), 16), 100)
		if string(line) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v", name, line, err)
		}
	}
}

func TestInputIsBounded(t *testing.T) {
	credit := 0
	in := NewInput(func(n int) error { credit += n; return nil })
	if err := in.Push(make([]byte, InputWindow)); err != nil {
		t.Fatal(err)
	}
	if err := in.Push([]byte("x")); !errors.Is(err, ErrFrame) {
		t.Fatalf("beyond the window: %v", err)
	}
	_ = in.Close()
	n, err := io.Copy(io.Discard, in)
	if n != InputWindow || err != nil || credit != InputWindow {
		t.Fatalf("read %d, %v; credit %d", n, err, credit)
	}
}

func TestInputWakesItsReader(t *testing.T) {
	in := NewInput(func(int) error { return nil })
	got := make(chan string)
	go func() {
		b, _ := io.ReadAll(in)
		got <- string(b)
	}()
	for _, s := range []string{"a", "b", "c"} {
		if err := in.Push([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	_ = in.Close()
	if s := <-got; s != "abc" {
		t.Fatalf("read %q", s)
	}
}

// FuzzStream: nothing panics, no piece exceeds its bound.
func FuzzStream(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x02ab\x02\x00\x00\x00\x00"))
	f.Add([]byte("\x07\x00\x00\x00\x0a{\"code\":1}"))
	f.Add([]byte("\x03\x00\x00\x00\x04\x00\x18\x00\x50"))
	f.Add([]byte("\x08\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := NewStreamReader(bytes.NewReader(in))
		for {
			_, p, err := r.Next()
			if err != nil {
				return
			}
			if len(p) > MaxChunk {
				t.Fatalf("piece of %d bytes", len(p))
			}
			_, _, _ = ParseResize(p)
			_, _ = ParseCredit(p)
			_, _ = ParseExit(p)
		}
	})
}
