// Package local is the provider that needs no engine: a sandbox is a process tree
// in namespaces of its own, with a new root in a tmpfs made from an allow-list. It
// works for root and, where the kernel lets ordinary users make user namespaces,
// for everybody. PID 1 is the agent-server binary; package jail has what it does
// inside, this package has what the host does.
//
// # Life
//
// A record of the sandbox is in Spec.Dir before its first process exists, and names
// that process before it is told anything: until then PID 1 waits on a pipe, and
// ends when its creator dies. So whoever finds the record can end the sandbox, and
// there is never one without. The sandbox outlives its creator on purpose; any
// process of the same user may Open it.
//
// The listening socket of the link is made here and inherited by PID 1, so that
// Link never waits for a file to appear.
//
// # What it does not do
//
// There is no image: programs are the host's, read-only. Unprivileged, one uid is
// mapped, so apt and dpkg do not work, and limits of memory and processor need a
// delegated cgroup. There is no network at any level, only the capture of what is
// dialled inside.
package local

import (
	"path/filepath"

	"github.com/Insights/insightscli/internal/sandbox"
)

// Options are what a Provider needs to know.
type Options struct {
	// Root is the directory that holds the directories of sandboxes (Spec.Dir): what
	// List looks through, and what short ids are relative to. Without it List finds
	// nothing, and ids are paths.
	Root string
}

var _ sandbox.Capturer = (*Provider)(nil)

// Provider makes sandboxes, one directory a sandbox (Spec.Dir). It keeps no state
// beside the records in them.
type Provider struct {
	root string
}

// New returns a provider.
func New(o Options) *Provider {
	p := &Provider{}
	if o.Root != "" {
		p.root = filepath.Clean(o.Root)
	}
	return p
}

// Files of a sandbox in its directory.
const (
	recordName = "sandbox.json"
	logName    = "init.log" // standard output and error of PID 1
	linkName   = "link"     // bound to wire.LinkDir
)

// defaultPIDs bounds the processes and threads of each command that is started in
// a sandbox whose Spec does not say.
const defaultPIDs = 4096

// Captures implements sandbox.Capturer: a sandbox has no network at any level.
func (p *Provider) Captures(sandbox.Network) bool { return true }
