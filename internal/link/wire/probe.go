package wire

import "encoding/json"

// MethodInspect asks PID 1 what it sees of its own sandbox -> Inspection. No process of the
// agent, and no file of an image, has a say in the answer.
const MethodInspect = "inspect"

// Inspection is a sandbox as its PID 1 sees it.
type Inspection struct {
	Threads []Thread `json:"threads"`
	// Mounts is /proc/self/mountinfo.
	Mounts string `json:"mounts"`
	// Dumpable: processes of the same uid may look into PID 1.
	Dumpable bool `json:"dumpable"`
}

// ProbeWord is the word of the agent server's command line that starts a probe: a process of
// the agent that tries what an agent could. It reads a [ProbeRequest] a line from its
// standard input and answers each with a [ProbeAnswer] a line; at the end of the input it
// ends, and with it all that it has started.
const ProbeWord = "probe"

// ProbeRequest asks a probe for one thing.
type ProbeRequest struct {
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args,omitempty"`
}

// ProbeAnswer is Result, or why there is none.
type ProbeAnswer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// What a probe can be asked for.
const (
	ProbeLook      = "look"      // -> Look
	ProbeDial      = "dial"      // Dial -> Dialled
	ProbeFile      = "file"      // path -> "": makes a file
	ProbeOccupy    = "occupy"    // Marker -> null: leaves itself wherever another sandbox could find it
	ProbeReach     = "reach"     // Marker -> []string: where it is found
	ProbeProcesses = "processes" // number -> Tried: starts that many processes
	ProbeMemory    = "memory"    // MiB -> Tried: has a child use that much
	ProbeCPU       = "cpu"       // number of threads -> CPUTime
)

// Look is what an agent finds around itself.
type Look struct {
	// Calls are the system calls that were tried, each with the name of its error; "" is
	// one that succeeded.
	Calls map[string]string `json:"calls"`
	// PID1 are the ways into PID 1, likewise.
	PID1       map[string]string `json:"pid1"`
	Interfaces []Interface       `json:"interfaces"`
	// Sockets are the sockets in the file system that somebody listens at, beside ours.
	Sockets []string `json:"sockets"`
	// Runs: programs may be run from /tmp; or why not.
	Runs string `json:"runs"`
	// NoNewPrivs is what the kernel says to the process itself.
	NoNewPrivs bool `json:"no_new_privs"`
	Seccomp    int  `json:"seccomp"`
}

// Interface is a network interface.
type Interface struct {
	Name      string   `json:"name"`
	Up        bool     `json:"up"`
	Loopback  bool     `json:"loopback"`
	Addresses []string `json:"addresses"`
}

// Dial asks for one TCP connection.
type Dial struct {
	Address string `json:"address"` // host:port
}

// Dialled is what came of it.
type Dialled struct {
	Connected bool   `json:"connected"`
	Bytes     int    `json:"bytes"` // that the other side sent
	Error     string `json:"error,omitempty"`
}

// Marker is how one sandbox would show in another.
type Marker struct {
	Name string `json:"name"` // letters and digits
	Port int    `json:"port"`
	// Addresses are those at which Port is tried, beside the sandbox's own.
	Addresses []string `json:"addresses,omitempty"`
}

// Tried is how far something came.
type Tried struct {
	Done  int    `json:"done"`
	Error string `json:"error,omitempty"` // what stopped it; "": nothing did
}

// CPUTime is what threads that never wait were given.
type CPUTime struct {
	Used float64 `json:"used"` // seconds
	Wall float64 `json:"wall"`
}
