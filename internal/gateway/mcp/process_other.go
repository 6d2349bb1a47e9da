//go:build !unix

package mcp

import (
	"os"
	"os/exec"
)

// ownGroup does nothing: there are no process groups here.
func ownGroup(*exec.Cmd) {}

// signalGroup ends p: there is no signal that asks it to.
func signalGroup(p *os.Process, _ bool) { _ = p.Kill() }
