// Package wire is the vocabulary that the host and PID 1 of a sandbox share: what
// PID 1 is given when it starts ([Boot]), the names of the services that streams
// of the link ask for, and the shapes that cross them. Both sides import it; it
// imports the standard library only.
//
// Everything that comes from a sandbox is hostile: sizes are bounded here, once.
package wire

import (
	"encoding/json"
	"time"
)

// Version is the version of everything in this package. PID 1 and the host compare
// it in the handshake; a run is always followed by a host of the version that
// started it.
const Version = 1

// Limits of what the other side may send.
const (
	MaxHello = 4 << 10  // bytes of a handshake message
	MaxFrame = 1 << 20  // bytes of one event frame, header included
	MaxChunk = 64 << 10 // bytes of command output in one frame
	MaxRPC   = 16 << 20 // bytes of one JSON-RPC message
)

// Paths inside every sandbox.
const (
	LinkDir     = "/run/insights"     // bound from the host
	SocketName  = "agent.sock"        // in LinkDir
	BootName    = "boot.json"         // in LinkDir, read and removed by PID 1; absent where a pipe is used
	BinDir      = "/opt/insights/bin" // comes first in the agent's PATH
	ServerPath  = BinDir + "/insights-agent-server"
	GitPath     = BinDir + "/git" // the git guard: a link to the agent server
	ServerLog   = "/tmp/agent-server.log"
	ObjectsDir  = "/opt/insights/objects" // read-only git object directories, one numbered subdirectory each
	ProgramsDir = "/opt/insights/agents"  // agents' programs that were mounted from the host, one entry each
	SkillsDir   = "/scripts/plugins/insights"
	DefaultPort = 47821 // the HTTP surface
)

// The loopback ports of the host's services in every sandbox.
const (
	PortLLM = 47822
	PortMCP = 47823
	PortAPI = 47824
	PortGit = 47825
)

// Where the connections of a sandbox are captured, on 127.0.0.1, and what its programs
// are told about names (DESIGN: network).
const (
	PortEgress = 15001 // every TCP connection ends here; as a proxy, too
	PortDNS    = 53
	// EgressAddresses is the block of addresses that stand for allowed names.
	EgressAddresses = "198.18.0.0/15"
)

// Boot is everything PID 1 is told at start. It is erased from where it was read
// before any process of the agent exists.
type Boot struct {
	V    int    `json:"v"`
	Run  string `json:"run"`
	Task string `json:"task"`
	Team int64  `json:"team"`
	User int64  `json:"user"`

	HostKey []byte `json:"host_key"` // public key of the run, a point of P-256; its private half is the host's
	Secret  []byte `json:"secret"`   // HMAC key by which PID 1 proves that it is PID 1; 32 bytes

	UID  int    `json:"uid"` // of the agent's processes
	GID  int    `json:"gid"`
	Home string `json:"home"` // made and owned by the agent
	Dir  string `json:"dir"`  // working directory of commands

	Env map[string]string `json:"env"` // environment of the agent's processes; secret
	// Secrets names the variables of Env whose values are masked in what PID 1 itself
	// shows to others than the host.
	Secrets []string `json:"secrets,omitempty"`

	Network    string        `json:"network"`     // task.Network
	HostGrace  time.Duration `json:"host_grace"`  // how long service calls wait for a lost host
	JournalMiB int           `json:"journal_mib"` // bound of the event journal; 0 is 64
	// Lifetime ends the agent of a sandbox that no host cares for any more; 0 is never.
	Lifetime time.Duration `json:"lifetime,omitempty"`

	// Capture: there is no network but the capture of every connection. Allow are then the
	// names that may be asked for, as rules of package egress/rule; the host judges each
	// connection by rules of its own.
	Capture bool     `json:"capture,omitempty"`
	Allow   []string `json:"allow,omitempty"`

	// Ports are the loopback ports at which the agent finds services of the host
	// (ServiceLLM, ServiceMCP, ServiceAPI, ServiceGit). Absent: that service is not offered.
	Ports map[string]int `json:"ports,omitempty"`

	HTTPPort int    `json:"http_port"` // 0: no TCP listener
	JWTKey   []byte `json:"jwt_key"`   // PEM of the public key that /events and /command check
	JWTKeyID string `json:"jwt_kid"`
}

// Services that a host asks PID 1 for. The first line of a stream is its name.
const (
	ServiceRPC     = "rpc"     // JSON-RPC 2.0, one message a line: the methods below
	ServiceEvents  = "events"  // event frames out, acknowledgements in
	ServiceExec    = "exec"    // one command with its streams
	ServiceArchive = "archive" // a tar stream out of or into the sandbox
	ServiceHTTP    = "http"    // the HTTP surface, for --publish-agent
)

// Services that a sandbox asks the host for. Hosts serve those they know and
// refuse the rest.
const (
	ServiceLLM    = "llm"
	ServiceMCP    = "mcp"
	ServiceAPI    = "api"
	ServiceGit    = "git"
	ServiceEgress = "egress"
)

// Methods of ServiceRPC beside those of the public /command surface
// (user_message, cancel, close, permission_response, set_config_option,
// refresh_session).
const (
	MethodHealth   = "health"   // -> Health
	MethodStart    = "start"    // Start -> {}: begins the session, once; a second call is an error
	MethodGitHub   = "github"   // GitHub -> {}: the credential that programs inside read with
	MethodThreads  = "threads"  // -> []Thread: what every thread of the sandbox may do
	MethodShutdown = "shutdown" // ends the agent, flushes, ends PID 1
)

// Start begins the session: which driver, and what it runs.
type Start struct {
	Agent   string          `json:"agent"`             // driver: exec
	Command []string        `json:"command,omitempty"` // exec: argv
	Dir     string          `json:"dir"`               // working directory
	Prompt  string          `json:"prompt,omitempty"`
	Schema  json.RawMessage `json:"schema,omitempty"`
	Mode    string          `json:"mode"` // task.Mode

	Model          string      `json:"model,omitempty"`
	Effort         string      `json:"effort,omitempty"`
	PermissionMode string      `json:"permission_mode,omitempty"` // in the agent's words; empty: full access
	MCP            []MCPServer `json:"mcp,omitempty"`
	// PreferMounted: the program under ProgramsDir goes before one in the PATH.
	PreferMounted bool `json:"prefer_mounted,omitempty"`
	// TurnTime bounds one turn: it is cancelled then, and has failed. 0 is no bound.
	TurnTime time.Duration `json:"turn_time,omitempty"`
}

// MCPServer is one MCP server of the agent, over streamable HTTP. The agent
// authenticates with the run's token.
type MCPServer struct {
	Name     string `json:"name"`
	URL      string `json:"url"`
	Required bool   `json:"required,omitempty"` // a turn without it has failed
}

// Health is the answer of /health and MethodHealth. HTTP is up before the session:
// ready means HasSession.
type Health struct {
	Status        string   `json:"status"` // "ok"
	HasSession    bool     `json:"hasSession"`
	Readiness     string   `json:"readiness"` // starting, ready, failed
	FailureCode   string   `json:"failureCode,omitempty"`
	BootMs        float64  `json:"bootMs"`
	SessionInitMs float64  `json:"sessionInitMs,omitempty"`
	Phase         string   `json:"phase,omitempty"` // what it is doing, while starting
	LastSeq       uint64   `json:"lastSeq"`         // number of the newest event
	Active        bool     `json:"active"`          // a turn or a command is going on
	Capabilities  []string `json:"capabilities"`
	Error         string   `json:"error,omitempty"`

	Boot BootReport `json:"boot"`
	// LogTail is the end of the server's own log, told to hosts only, of a session that has
	// failed or takes long to start.
	LogTail []string `json:"logTail,omitempty"`
}

// BootReport tells how the session started, phase by phase.
type BootReport struct {
	ContractVersion int    `json:"contractVersion"` // 1
	BootID          string `json:"bootId"`          // of this process
	State           string `json:"state"`           // starting, ready, failed
	CurrentPhase    string `json:"currentPhase,omitempty"`
	FailedPhase     string `json:"failedPhase,omitempty"`
	// TotalMs is from the process's beginning until the session was ready or had failed,
	// or until now.
	TotalMs     float64            `json:"totalMs"`
	HTTPReadyMs float64            `json:"httpReadyMs"`
	PhasesMs    map[string]float64 `json:"phasesMs"` // of those that are over
}

// Methods of FrameEvent that hosts act on.
const (
	EventTurnComplete = "_insights/turn_complete" // TurnComplete
	EventUserMessage  = "_insights/user_message"  // UserMessage, when its turn begins
	EventUpdate       = "session/update"          // {"update": an ACP session update}
	EventPermission   = "_insights/permission_request"
	EventPermitted    = "_insights/permission_resolved" // {"requestId","optionId","by"}
)

// TurnComplete is the payload of EventTurnComplete.
type TurnComplete struct {
	MessageID  string `json:"messageId,omitempty"` // empty for the prompt of Start
	StopReason string `json:"stopReason"`
	Error      string `json:"error,omitempty"`
	// Structured is the reply where the agent gives it apart from its words.
	Structured json.RawMessage `json:"structured,omitempty"`
	// Rejected is how many replies the agent itself found not to fit the schema.
	Rejected int  `json:"rejected,omitempty"`
	TimedOut bool `json:"timedOut,omitempty"` // the turn was longer than Start.TurnTime
}

// FrameType is the first byte of an event frame.
type FrameType byte

// The types of frame.
const (
	FrameStdout    FrameType = 1 // Data is output bytes
	FrameStderr    FrameType = 2
	FrameEvent     FrameType = 3 // Method and Data, a JSON object
	FrameDone      FrameType = 4 // Data is an Outcome; the last frame
	FrameHeartbeat FrameType = 5 // Seq 0, not journalled: Data is a Heartbeat
)

// Frame is one numbered event of the agent server. Frames are kept until the host
// says that they are durable.
type Frame struct {
	Type FrameType
	Seq  uint64    // gapless from 1; 0 for a heartbeat
	At   time.Time // by the sandbox's clock
	// Continued: the last line of an output frame goes on in the next frame of the
	// same stream.
	Continued bool
	Method    string // FrameEvent: JSON-RPC method
	Data      []byte
}

// Outcome is the payload of FrameDone.
type Outcome struct {
	ExitCode   *int   `json:"exitCode,omitempty"` // exec: the command's own
	Signal     string `json:"signal,omitempty"`   // "SIGKILL"
	StopReason string `json:"stopReason"`         // end_turn, error, cancelled
	Error      string `json:"error,omitempty"`    // why it failed, one line
}

// Failed reports whether the task itself failed. An agent that never ended has no
// Outcome and has not failed by itself.
func (o *Outcome) Failed() bool {
	return o != nil && (o.Error != "" || o.Signal != "" || o.StopReason == "error" || o.ExitCode != nil && *o.ExitCode != 0)
}

// The phases of a start that [Health] tells. Drivers may have further ones.
const (
	PhaseWaiting      = "waiting_for_start"    // until a host begins the session
	PhaseInitialize   = "acp_initialize"       // the agent's program starts
	PhaseDependencies = "session_dependencies" // MCP servers, skills
	PhaseSession      = "session_create"
)

// Heartbeat is the payload of FrameHeartbeat: sent every 30 s while a turn or a
// command is going on, whatever it prints.
type Heartbeat struct {
	Active bool `json:"agent_active"`
}

// Command asks ServiceExec for one process of the agent's uid.
type Command struct {
	Argv []string `json:"argv"`
	Dir  string   `json:"dir,omitempty"` // empty: Boot.Dir
	Env  []string `json:"env,omitempty"` // added to the agent's environment
	TTY  bool     `json:"tty,omitempty"`
	Rows uint16   `json:"rows,omitempty"`
	Cols uint16   `json:"cols,omitempty"`
}

// Archive asks ServiceArchive for a transfer as the agent's uid. Path is absolute
// inside the sandbox.
type Archive struct {
	Path    string `json:"path"`
	Extract bool   `json:"extract,omitempty"` // the stream goes in; else it comes out
}
