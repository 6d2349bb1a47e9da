//go:build !linux && !darwin

package tui

import (
	"os"
	"os/exec"
)

// A console of Windows is given back by the system when its process ends.
func terminalState(*os.File) (string, bool) { return "", false }

func setTerminalState(*os.File, string) error { return nil }

func detach(*exec.Cmd) {}

func unattended() {}
