package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
)

// cat is an exec that sends its input back, as a process that reads all it gets.
func cat(_ wire.Command, r *wire.StreamReader, w *wire.StreamWriter) wire.Exit {
	in := wire.NewInput(w.Credit)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(w.To(wire.StreamOutput), in)
	}()
	for {
		t, p, err := r.Next()
		switch {
		case err != nil:
			_ = in.Close()
			<-done
			return wire.Exit{Code: 137}
		case t == wire.StreamInput:
			if err := in.Push(p); err != nil {
				return wire.Exit{Code: 1, Error: err.Error()}
			}
		case t == wire.StreamEOF:
			_ = in.Close()
			<-done
			return wire.Exit{}
		}
	}
}

func TestExecCarriesInputOfAnySize(t *testing.T) {
	c, _ := (&fakePID1{exec: cat}).connect(t, nil)
	for _, size := range []int{0, 1, wire.MaxChunk, wire.InputWindow + 1, 5 << 20} {
		in := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		var out bytes.Buffer
		code, err := c.Exec(t.Context(), wire.Command{Argv: []string{"cat"}}, Stdio{In: bytes.NewReader(in), Out: &out})
		if code != 0 || err != nil || !bytes.Equal(out.Bytes(), in) {
			t.Errorf("%d bytes: code %d, %v, %d came back", size, code, err, out.Len())
		}
	}
}

func TestExecEnds(t *testing.T) {
	for name, c := range map[string]struct {
		exit wire.Exit
		code int
		kind errs.Kind
	}{
		"code":      {wire.Exit{Code: 3}, 3, ""},
		"signal":    {wire.Exit{Code: 137, Signal: "SIGKILL"}, 137, ""},
		"not found": {wire.Exit{Code: 127, Error: "nosuch: not found"}, 127, errs.NotFound},
		"not run":   {wire.Exit{Code: 126, Error: "x: permission denied"}, 126, errs.Internal},
		"too big":   {wire.Exit{Code: 1 << 40}, 255, ""},
		"negative":  {wire.Exit{Code: -5}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakePID1{exec: func(wire.Command, *wire.StreamReader, *wire.StreamWriter) wire.Exit { return c.exit }}
			client, _ := f.connect(t, nil)
			code, err := client.Exec(t.Context(), wire.Command{}, Stdio{})
			if code != c.code || (err != nil) != (c.kind != "") || err != nil && errs.KindOf(err) != c.kind {
				t.Fatalf("code %d, %v", code, err)
			}
		})
	}
}

// TestExecPassesControls: signals and sizes arrive although the process does not
// read its input and there is more of that than the window holds.
func TestExecPassesControls(t *testing.T) {
	got := make(chan string, 10)
	f := &fakePID1{exec: func(_ wire.Command, r *wire.StreamReader, w *wire.StreamWriter) wire.Exit {
		in := wire.NewInput(w.Credit)
		for {
			typ, p, err := r.Next()
			switch {
			case err != nil:
				return wire.Exit{}
			case typ == wire.StreamInput:
				if in.Push(p) != nil {
					return wire.Exit{Code: 99}
				}
			case typ == wire.StreamResize:
				rows, cols, _ := wire.ParseResize(p)
				if rows == 50 && cols == 132 {
					got <- "size"
				}
			case typ == wire.StreamSignal:
				got <- string(p)
				return wire.Exit{Code: 130}
			}
		}
	}}
	c, _ := f.connect(t, nil)
	resize, signals := make(chan [2]uint16), make(chan string)
	go func() {
		resize <- [2]uint16{50, 132}
		close(resize)
		<-got
		signals <- "SIGINT"
		close(signals)
	}()
	code, err := c.Exec(t.Context(), wire.Command{}, Stdio{In: zeros{}, Resize: resize, Signals: signals})
	if code != 130 || err != nil || <-got != "SIGINT" {
		t.Fatalf("code %d, %v", code, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestExecKillsWhenItsContextEnds: PID 1 sees the end of the stream, and Exec
// returns when PID 1 says that it is done.
func TestExecKillsWhenItsContextEnds(t *testing.T) {
	killed := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	f := &fakePID1{exec: func(_ wire.Command, r *wire.StreamReader, _ *wire.StreamWriter) wire.Exit {
		for {
			if typ, _, err := r.Next(); err != nil {
				close(killed)
				return wire.Exit{Code: 137}
			} else if typ == wire.StreamEOF {
				cancel()
			}
		}
	}}
	c, _ := f.connect(t, nil)
	if _, err := c.Exec(ctx, wire.Command{}, Stdio{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	<-killed
}

func TestExecDoesNotWaitForAPID1ThatHangs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	hang := make(chan struct{})
	f := &fakePID1{exec: func(wire.Command, *wire.StreamReader, *wire.StreamWriter) wire.Exit {
		<-hang
		return wire.Exit{}
	}}
	c, _ := f.connect(t, nil)
	defer close(hang)
	if _, err := c.Exec(ctx, wire.Command{}, Stdio{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestExecStopsWhenItsOutputHasNoPlace(t *testing.T) {
	f := &fakePID1{exec: func(_ wire.Command, r *wire.StreamReader, w *wire.StreamWriter) wire.Exit {
		for w.Write(wire.StreamOutput, make([]byte, 1000)) == nil {
			if typ, _, err := r.Next(); err != nil || typ == wire.StreamExit {
				break
			}
		}
		return wire.Exit{}
	}}
	c, _ := f.connect(t, nil)
	_, err := c.Exec(t.Context(), wire.Command{}, Stdio{Out: fullDisk{}})
	if err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Fatal(err)
	}
}

// TestExecRefusesWhatOnlyAHostMaySay and other breaches of the protocol.
func TestExecRefusesWhatOnlyAHostMaySay(t *testing.T) {
	for name, say := range map[string]func(w *wire.StreamWriter) error{
		"input":          func(w *wire.StreamWriter) error { return w.Write(wire.StreamInput, []byte("x")) },
		"unknown":        func(w *wire.StreamWriter) error { return w.Write(99, nil) },
		"false credit":   func(w *wire.StreamWriter) error { return w.Credit(1 << 30) },
		"not an exit":    func(w *wire.StreamWriter) error { return w.Write(wire.StreamExit, []byte("7")) },
		"no exit at all": func(*wire.StreamWriter) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakePID1{}
			f.exec = func(_ wire.Command, _ *wire.StreamReader, w *wire.StreamWriter) wire.Exit {
				_ = say(w)
				if name == "no exit at all" {
					_ = f.conn.Close()
				}
				return wire.Exit{}
			}
			c, _ := f.connect(t, nil)
			if _, err := c.Exec(t.Context(), wire.Command{}, Stdio{}); !errors.Is(err, wire.ErrFrame) && !errors.Is(err, ErrLost) {
				t.Fatal(err)
			}
		})
	}
}

func TestArchive(t *testing.T) {
	var stored bytes.Buffer
	f := &fakePID1{archive: func(a wire.Archive, r *wire.StreamReader, w *wire.StreamWriter) wire.Exit {
		switch {
		case a.Path == "/none":
			_, _ = io.WriteString(w.To(wire.StreamError), "tar: /none: no such file\n")
			return wire.Exit{Code: 2}
		case !a.Extract:
			_, _ = w.To(wire.StreamOutput).Write(stored.Bytes())
			return wire.Exit{}
		}
		for {
			typ, p, err := r.Next()
			switch {
			case err != nil:
				return wire.Exit{Code: 1, Error: err.Error()}
			case typ == wire.StreamEOF:
				return wire.Exit{}
			}
			stored.Write(p)
			_ = w.Credit(len(p))
		}
	}}
	c, _ := f.connect(t, nil)
	in := bytes.Repeat([]byte("tar"), 1<<20)
	if err := c.ArchiveIn(t.Context(), "/tmp/x", bytes.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := c.ArchiveOut(t.Context(), "/tmp/x", &out); err != nil || !bytes.Equal(out.Bytes(), in) {
		t.Fatalf("%v, %d bytes", err, out.Len())
	}
	if err := c.ArchiveOut(t.Context(), "/none", &out); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Fatal(err)
	}
}
