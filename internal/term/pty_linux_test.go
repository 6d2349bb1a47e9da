package term_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/term"
	"github.com/Insights/insightscli/internal/testenv"
)

// pty opens a terminal of the given size.
func pty(t *testing.T, cols uint16) *os.File {
	t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	testenv.Need(t, "a machine that gives out terminals", err == nil)
	t.Cleanup(func() { _ = ptmx.Close() })
	fd := int(ptmx.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	peer, err := unix.Open(fmt.Sprintf("/dev/pts/%d", number), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	tty := os.NewFile(uintptr(peer), "tty")
	t.Cleanup(func() { _ = tty.Close() })
	if err := unix.IoctlSetWinsize(peer, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: cols}); err != nil {
		t.Fatal(err)
	}
	return tty
}

// Colour is for somebody who sees both streams and has not declined: an escape sequence
// in a file, or before a person who asked for none, is a fault.
func TestColourOnATerminal(t *testing.T) {
	tty := pty(t, 132)
	r, w := pipe(t)
	for name, tt := range map[string]struct {
		out, err    *os.File
		environ     []string
		color, dumb bool
	}{
		"a terminal":         {tty, tty, []string{"TERM=xterm"}, true, false},
		"TERM not set":       {tty, tty, nil, true, false},
		"NO_COLOR":           {tty, tty, []string{"TERM=xterm", "NO_COLOR=1"}, false, false},
		"NO_COLOR, empty":    {tty, tty, []string{"TERM=xterm", "NO_COLOR="}, true, false},
		"the last NO_COLOR":  {tty, tty, []string{"NO_COLOR=1", "NO_COLOR="}, true, false},
		"another variable":   {tty, tty, []string{"XNO_COLOR=1", "NO_COLOR_X=1"}, true, false},
		"dumb":               {tty, tty, []string{"TERM=dumb"}, false, true},
		"output to a file":   {w, tty, []string{"TERM=xterm"}, false, false},
		"messages to a file": {tty, w, []string{"TERM=xterm"}, false, false},
	} {
		s := term.System(r, tt.out, tt.err, tt.environ)
		if s.Color != tt.color || s.Dumb != tt.dumb || s.OutTTY != (tt.out == tty) || s.ErrTTY != (tt.err == tty) || s.InTTY {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// The width is that of whichever stream is a terminal; one that says 0 (a serial line)
// has none, and dividing a line by it would end the program.
func TestWidth(t *testing.T) {
	wide, none := pty(t, 132), pty(t, 0)
	r, w := pipe(t)
	for name, tt := range map[string]struct {
		out, err *os.File
		want     int
	}{
		"output":         {wide, w, 132},
		"messages":       {w, wide, 132},
		"the first":      {none, wide, 132},
		"unknown":        {none, none, term.DefaultWidth},
		"no terminal":    {w, w, term.DefaultWidth},
		"closed streams": {nil, nil, term.DefaultWidth},
	} {
		if s := term.System(r, tt.out, tt.err, nil); s.Width != tt.want {
			t.Errorf("%s: %d", name, s.Width)
		}
	}
}

// A file, the null device and a stream that the caller closed are no terminals, though the
// null device is a character device.
func TestWhatIsNoTerminal(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	_, closed := pipe(t)
	_ = closed.Close()
	for name, f := range map[string]*os.File{"null": null, "file": file, "closed": closed, "absent": nil} {
		if s := term.System(f, f, f, nil); s.InTTY || s.OutTTY || s.ErrTTY || s.Color {
			t.Errorf("%s is taken for a terminal", name)
		}
	}
	_, _ = null.Close(), file.Close()
}

// Only a reader that went away is that: a full disk must be told, not end the run as
// quietly as `head` does.
func TestOtherErrorsAreTold(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	testenv.Need(t, "/dev/full", err == nil)
	defer func() { _ = full.Close() }()
	r, _ := pipe(t)
	s := term.System(r, full, full, nil)
	if _, err := s.Out.Write([]byte("x")); err == nil || errors.Is(err, term.ErrGone) {
		t.Errorf("err = %v", err)
	}
	select {
	case <-s.Gone():
		t.Error("Gone is closed though there is a reader")
	default:
	}
}

// Streams of tests are those of a process in a pipe.
func TestStreamsOfTests(t *testing.T) {
	s, in, out, errs := term.Test()
	in.WriteString("typed")
	got, err := io.ReadAll(s.In)
	if err != nil || string(got) != "typed" || s.OutTTY || s.Color || s.Width != term.DefaultWidth {
		t.Errorf("%q, %v, %+v", got, err, s)
	}
	_, _ = io.Copy(s.Out, strings.NewReader("data"))
	_, _ = io.Copy(s.Err, strings.NewReader("message"))
	if !bytes.Equal(out.Bytes(), []byte("data")) || errs.String() != "message" {
		t.Errorf("%q, %q", out, errs)
	}
}
