package term_test

import (
	"errors"
	"os"
	"testing"

	"github.com/Insights/insightscli/internal/term"
)

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return r, w
}

func TestPipesAreNoTerminals(t *testing.T) {
	r, w := pipe(t)
	s := term.System(r, w, w, []string{"TERM=xterm"})
	if s.InTTY || s.OutTTY || s.ErrTTY || s.Color {
		t.Errorf("a pipe is taken for a terminal: %+v", s)
	}
	if s.Width != term.DefaultWidth {
		t.Errorf("width = %d", s.Width)
	}
}

func TestLastValueOfTERMCounts(t *testing.T) {
	r, w := pipe(t)
	if s := term.System(r, w, w, []string{"TERM=xterm", "TERM=dumb"}); !s.Dumb {
		t.Error("TERM=dumb is not seen")
	}
}

// `insightscli logs RUN | head -1` must end quietly: the write that finds no
// reader says ErrGone, and Gone is closed so that work can stop.
func TestClosedReaderIsGone(t *testing.T) {
	r, w := pipe(t)
	s := term.System(r, w, os.Stderr, nil)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Out.Write([]byte("x\n")); !errors.Is(err, term.ErrGone) {
			t.Fatalf("err = %v, want ErrGone", err)
		}
	}
	select {
	case <-s.Gone():
	default:
		t.Error("Gone is not closed")
	}
}

func TestMessagesWithoutReaderDoNotStopTheWork(t *testing.T) {
	r, w := pipe(t)
	s := term.System(r, os.Stdout, w, nil)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Err.Write([]byte("x\n")); !errors.Is(err, term.ErrGone) {
		t.Fatalf("err = %v, want ErrGone", err)
	}
	select {
	case <-s.Gone():
		t.Error("Gone is closed though Out has a reader")
	default:
	}
}
