package cli

import (
	"fmt"
	"io"

	// golang.org/x/term switches terminals to raw mode on every system we build for.
	"golang.org/x/term"

	"github.com/Insights/insightscli/internal/errs"
)

// tty is the terminal of this process in raw mode: keys go to the sandbox as they
// are, Ctrl-C too.
type tty struct {
	fd      int
	before  *term.State
	resized <-chan [2]uint16
	stop    func()
}

// openTTY switches a terminal to raw mode, until restore.
func openTTY(in io.Reader) (*tty, error) {
	f, ok := in.(interface{ Fd() uintptr })
	if !ok {
		return nil, errs.New("cli.exec", errs.Usage, "use --no-tty", "standard input is not a terminal of the system")
	}
	t := &tty{fd: int(f.Fd())}
	before, err := term.MakeRaw(t.fd)
	if err != nil {
		return nil, fmt.Errorf("switch the terminal to raw mode: %w", err)
	}
	t.before = before
	t.resized, t.stop = watchSize(t.size)
	return t, nil
}

// size returns rows and columns.
func (t *tty) size() (rows, cols uint16) {
	w, h, err := term.GetSize(t.fd)
	if err != nil || w <= 0 || h <= 0 || w > 1<<15 || h > 1<<15 {
		return 24, 80
	}
	return uint16(h), uint16(w)
}

// restore gives the terminal back as it was.
func (t *tty) restore() {
	t.stop()
	_ = term.Restore(t.fd, t.before) // a terminal that is gone needs no restoring
}
