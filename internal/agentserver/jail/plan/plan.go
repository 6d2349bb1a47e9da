// Package plan is the vocabulary that provider `local` and package jail share: what
// PID 1 of a sandbox is to build around itself, and how it reports that it did. It
// is a package of its own so that the host links none of jail.
//
// A [Job] crosses an inherited pipe, never argv or the environment: the agent may
// read both of PID 1's in some configurations, and the job holds the run's secrets.
package plan

import "encoding/json"

// ArgInit is the word (the first argument) that makes the agent-server binary PID 1
// of a sandbox made by provider `local`.
const ArgInit = "init"

// Descriptors that PID 1 inherits beside its standard ones.
const (
	JobFD    = 3 // pipe: the Job as JSON, until end of file
	ReportFD = 4 // pipe: one Report as JSON, then closed
	ListenFD = 5 // the listening socket of the link; absent in a probe
	FirstFD  = 6 // Mount.FD counts from here
)

// MaxJob bounds the JSON of a Job: an environment of a few megabytes and then some.
const MaxJob = 16 << 20

// Job is all that PID 1 is told.
type Job struct {
	Plan Plan            `json:"plan"`
	Boot json.RawMessage `json:"boot,omitempty"` // wire.Boot; absent in a probe
}

// Plan says what to build. All paths of the host are absolute and free of
// symbolic links: PID 1 looks them up below another root, where an absolute link
// would lead astray.
type Plan struct {
	// Probe ends after the last step that can fail because of the machine.
	Probe bool `json:"probe,omitempty"`

	UID int `json:"uid"` // of the agent
	GID int `json:"gid"`
	// OneUID: the namespace maps the agent's uid alone, and PID 1 runs as it.
	OneUID bool `json:"one_uid,omitempty"`

	Hostname string `json:"hostname"`
	Home     string `json:"home"`   // of the agent, inside
	Dir      string `json:"dir"`    // workspace, inside; made even when nothing is mounted
	Server   string `json:"server"` // host path of the agent-server binary
	LinkDir  string `json:"link"`   // host path of the link directory

	Mounts []Mount `json:"mounts,omitempty"` // made in order
	// NProc bounds the processes and threads of each started command; 0 is none.
	NProc uint64 `json:"nproc,omitempty"`
	// ScratchMiB bounds what all writable directories that lie in memory hold
	// together; 0 is half of the machine's memory.
	ScratchMiB int64 `json:"scratch_mib,omitempty"`
}

// Mount is one file or directory of the host in the sandbox. Source is a host
// path, or empty where FD is the index of an inherited detached mount.
type Mount struct {
	Source   string `json:"source,omitempty"`
	FD       int    `json:"fd,omitempty"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"ro,omitempty"`
}

// Report is PID 1's one word about its set-up: the step that failed, or none.
type Report struct {
	OK    bool   `json:"ok"`
	Step  Step   `json:"step,omitempty"`
	Errno int    `json:"errno,omitempty"` // 0 where the failure was no system call's
	Text  string `json:"text,omitempty"`
}

// Step names a part of the set-up whose failure has a reason outside of us.
type Step string

// The steps, in order.
const (
	StepClone   Step = "create namespaces"
	StepJob     Step = "read the job"
	StepNetwork Step = "set up the network"
	StepSysctl  Step = "write net sysctl"
	StepTmpfs   Step = "mount tmpfs"
	StepPivot   Step = "pivot_root"
	StepBind    Step = "bind mount"
	StepFiles   Step = "fill the new root"
	StepSeal    Step = "make the root read-only"
	StepProc    Step = "mount proc"
	StepDev     Step = "make /dev"
	StepMount   Step = "mount the workspace"
	StepCaps    Step = "drop capabilities"
)
