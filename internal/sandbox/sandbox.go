// Package sandbox is the port to the isolated places that runs live in. A
// [Provider] makes, re-opens and lists sandboxes; a [Sandbox] is one of them.
// Commands, files and forwarded ports are not here: they go over the link that
// [Sandbox.Link] opens to PID 1, so that every provider behaves alike.
//
// The port holds what every provider can do. Abilities that only some have are
// optional one-method interfaces, found by type assertion in one place, the
// runner's wiring. The contract below is enforced by package sandboxtest.
package sandbox

import (
	"context"
	"errors"
	"net"
	"time"
)

// ID names a sandbox within its provider (a container id, a run id, a Modal id).
type ID string

// ErrNotFound is wrapped when no sandbox of that id exists any more.
var ErrNotFound = errors.New("no such sandbox")

// Provider makes sandboxes. All methods may be called at the same time and return
// promptly after ctx is done.
type Provider interface {
	// Create makes and starts one sandbox. Its labels are on it before Create
	// returns, and before it can be lost: a sandbox whose Create failed or was
	// cancelled is removed by Create, and one whose creator was killed is found by
	// List. Creating a second sandbox for the same run first removes the first.
	Create(ctx context.Context, spec Spec) (Sandbox, error)
	// Open attaches to a live sandbox again, from any process of the same user.
	// The error wraps ErrNotFound when it is gone.
	Open(ctx context.Context, id ID) (Sandbox, error)
	// List returns the sandboxes that carry all the given labels. Sandboxes of
	// others (without a run label) are never returned.
	List(ctx context.Context, labels map[string]string) ([]Info, error)
}

// Sandbox is one live or finished sandbox.
type Sandbox interface {
	// ID names it for Provider.Open.
	ID() ID
	// Link opens a new byte stream to PID 1 by the best transport that works. The
	// caller makes the handshake and owns the connection. It waits, bounded by
	// ctx, until PID 1 listens; if PID 1 ended meanwhile the error says so with
	// its last output.
	Link(ctx context.Context) (net.Conn, error)
	// Wait blocks until the sandbox has ended or ctx is done.
	Wait(ctx context.Context) (Exit, error)
	// Destroy ends the sandbox and removes everything that belongs to it. It may
	// be called again, and on one that is gone already.
	Destroy(ctx context.Context) error
}

// Labels that every sandbox carries.
const (
	LabelRun   = "insightscli.run"
	LabelTask  = "insightscli.task"
	LabelOwner = "insightscli.owner" // host/boot id/pid/process start time
	LabelState = "insightscli.state" // identifies the state directory, so that two of them leave each other alone
)

// Spec is what a provider needs to know. It holds no value that is secret except
// Boot, which a provider hands to PID 1 by a way that leaves no trace in argv,
// environment, labels or configuration that outlives the start.
type Spec struct {
	Name   string            // for people; unique enough, never used to find it again
	Labels map[string]string // at least LabelRun, LabelTask, LabelOwner, LabelState

	Image   string  // image reference; providers without images ignore it
	Runtime string  // OCI runtime; empty: the engine's own; providers without engines refuse any
	Network Network // level, as package task has it

	CPUs      float64 // cores; 0: the provider's default
	MemoryMiB int64   // 0: the provider's default
	PIDs      int64   // 0: the provider's default

	AgentUID, AgentGID int // numeric ids of the agent's processes and files

	// Boot is the wire.Boot of PID 1, as JSON. Secret.
	Boot []byte
	// AgentServer is the path of the static agent-server binary for the sandbox's
	// platform.
	AgentServer string
	// Dir is the run's own directory on the host, 0700, owned by the invoking
	// user; its subdirectory "link" is bound to /run/insights. The provider may
	// keep its record of the sandbox in it.
	Dir string
	// Mounts are made in order.
	Mounts []Mount
	// ToolDirs are host directories bound read-only at the same path (`local`).
	ToolDirs []string
	// Lifetime bounds the sandbox where the provider can enforce it; 0 is none. Those
	// on this machine cannot: there the runner's wall clock ends a run. Without a
	// runner PID 1 ends the agent after wire.Boot.Lifetime, and the sandbox waits, idle,
	// for the next command that opens the state directory.
	Lifetime time.Duration
}

// Network is the network level, a copy of task.Network for layering.
type Network string

// MountKind says how a mount is made.
type MountKind string

// The kinds of mount.
const (
	// MountBind binds Source at Target.
	MountBind MountKind = "bind"
	// MountOverlay shows the immutable directory Source at Target; changes go to
	// Upper/Work, which are directories on a local disk beside each other. It has
	// redirect_dir=on, so that directories can be renamed.
	MountOverlay MountKind = "overlay"
)

// Mount is one directory of the host (or file, for MountBind) in the sandbox.
type Mount struct {
	Kind        MountKind
	Source      string
	Target      string
	Upper, Work string // MountOverlay
	ReadOnly    bool
}

// Limit names a limit of a Spec.
type Limit string

// The limits that a provider may be unable to hold.
const (
	LimitMemory Limit = "memory"
	LimitCPUs   Limit = "cpus"
	LimitPIDs   Limit = "pids"
)

// Limiter is implemented by sandboxes whose limits do not hold everywhere.
type Limiter interface {
	// Unheld returns the limits that the Spec asked for and that nothing enforces in
	// this sandbox.
	Unheld() []Limit
}

// Overlayer is implemented by providers that can serve MountOverlay here and now.
// Without it, or when it says no, the caller makes a copy and binds that.
type Overlayer interface {
	// CanOverlay reports whether a MountOverlay with all its directories under dir
	// will work, by trying or by knowing.
	CanOverlay(ctx context.Context, dir string) bool
}

// Capturer is implemented by providers whose sandboxes have no network interface at some
// levels, so that PID 1 has to capture what is dialled inside (wire.Boot.Capture).
type Capturer interface {
	// Captures reports whether that is so at a level.
	Captures(level Network) bool
}

// Info describes a sandbox that List found.
type Info struct {
	ID      ID
	Labels  map[string]string
	Created time.Time
	Running bool
}

// Exit is how PID 1 ended. Code is -1 when only the end is known.
type Exit struct {
	Code int
	// Output is the last output of PID 1, at most 4 KiB, for error messages.
	Output string
}
