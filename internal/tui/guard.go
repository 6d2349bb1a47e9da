package tui

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
)

// goodbye is what the guard is told when the terminal was given back in order.
const goodbye = "\x00bye\n"

// restore leaves every mode that a screen may have entered.
const restore = "\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?25h\x1b[?1049l\x1b[0m"

// maxCrash is how much of a crash is told.
const maxCrash = 1 << 20

// guarding is the guard of this process's terminal.
type guarding struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// startGuard starts the guard. It waits for the end of a pipe that the kernel closes
// however this process ends; the Go runtime writes there what it has to say of a crash,
// which would be lost with the screen.
func startGuard(o Options) (*guarding, error) {
	state, ok := terminalState(o.In)
	if !ok || len(o.Guard) == 0 {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()                // the guard has its own
	cmd := exec.Command(o.Guard[0], o.Guard[1:]...) //nolint:noctx // it outlives everything: that is its purpose
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, o.Out, o.Out
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	g := &guarding{cmd: cmd, pipe: w}
	if _, err := fmt.Fprintf(w, "%s\n", state); err != nil {
		g.release()
		return nil, err
	}
	if err := debug.SetCrashOutput(w, debug.CrashOptions{}); err != nil {
		g.release()
		return nil, err
	}
	return g, nil
}

// release tells the guard that it is not needed, and waits for it. What goes wrong with a
// guard that is not needed is of no concern.
func (g *guarding) release() {
	if g == nil {
		return
	}
	_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
	_, _ = io.WriteString(g.pipe, goodbye)
	_ = g.pipe.Close()
	_ = g.cmd.Wait()
}

// Guard is the guard's work: it waits until in ends and, unless it was told goodbye, gives
// the terminal back and tells what the process died of.
func Guard(in io.Reader, tty *os.File) error {
	unattended()
	r := bufio.NewReader(in)
	state, err := r.ReadString('\n')
	if err != nil {
		return nil // the process died before its screen was there
	}
	said, err := io.ReadAll(io.LimitReader(r, maxCrash))
	if bytes.HasSuffix(said, []byte(goodbye)) {
		return nil
	}
	_, werr := io.WriteString(tty, restore)
	serr := setTerminalState(tty, state)
	if len(said) > 0 {
		_, werr = fmt.Fprintf(tty, "%s\r\n", clean(string(said)))
	}
	return errors.Join(err, werr, serr)
}
