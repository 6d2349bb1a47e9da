//go:build linux || darwin

package tui

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminalState is how the terminal is set, as text.
func terminalState(tty *os.File) (string, bool) {
	if tty == nil {
		return "", false
	}
	t, err := unix.IoctlGetTermios(int(tty.Fd()), getTermios)
	if err != nil {
		return "", false
	}
	b, err := json.Marshal(t)
	return string(b), err == nil
}

func setTerminalState(tty *os.File, state string) error {
	var t unix.Termios
	if err := json.Unmarshal([]byte(state), &t); err != nil {
		return err
	}
	return unix.IoctlSetTermios(int(tty.Fd()), setTermios, &t)
}

// detach keeps the keyboard's signals from the guard.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// unattended ignores what would end or stop the guard before its work: a process in the
// background that sets its terminal is stopped otherwise.
func unattended() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTTOU, syscall.SIGTTIN, syscall.SIGTSTP)
}
