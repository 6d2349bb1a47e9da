package task

import "encoding/json"

// SpecVersion is the version of the Spec's JSON form. A reader refuses a newer one.
const SpecVersion = 1

// Mode says whether somebody is there to answer.
type Mode string

// The modes of a run.
const (
	ModeBackground  Mode = "background"
	ModeInteractive Mode = "interactive"
)

// Network is the network level of a sandbox (DESIGN: network).
type Network string

// The network levels.
const (
	NetworkFull    Network = "full"    // everything but metadata and link-local addresses
	NetworkTrusted Network = "trusted" // the trusted list
	NetworkCustom  Network = "custom"  // the environment's own list
	NetworkLink    Network = "link"    // as full, through the link: the host makes every connection
)

// Spec is everything a run needs to know, decided before it starts. It holds
// names of secrets, never values, and no absolute choice is left for later: a
// recovering runner reads the Spec and nothing else.
type Spec struct {
	V    int `json:"v"`    // SpecVersion
	Task ID  `json:"task"` // the task this run belongs to
	Run  ID  `json:"run"`

	Team int64 `json:"team"` // row ids in state.db
	User int64 `json:"user"`

	Title         string   `json:"title"`
	Description   string   `json:"description,omitempty"` // the prompt; empty for a plain command
	OriginProduct string   `json:"origin_product"`
	Agent         Agent    `json:"agent"`
	Repos         []Repo   `json:"repos,omitempty"`
	Scopes        []string `json:"scopes"` // resolved: preset expanded, internal ones added
	CreatePR      bool     `json:"create_pr"`
	Mode          Mode     `json:"mode"`

	Environment string  `json:"environment,omitempty"` // SandboxEnvironment name
	Provider    string  `json:"provider"`
	Engine      Engine  `json:"engine,omitzero"` // docker: the engine that the run was started on
	Template    string  `json:"template"`
	Image       string  `json:"image,omitempty"`   // image reference; empty where the provider has none
	Runtime     string  `json:"runtime,omitempty"` // docker: the OCI runtime; empty is the engine's own choice
	Network     Network `json:"network"`
	// Allow are the rules of what a sandbox may reach, in the words of package
	// egress/rule, complete: the trusted list and the environment are among them. The
	// level full needs none; for any other nothing is allowed without one.
	Allow     []string `json:"allow,omitempty"`
	CPUs      float64  `json:"cpus,omitempty"`       // cores; 0 is the provider's default
	MemoryMiB int64    `json:"memory_mib,omitempty"` // 0 is the provider's default

	Timeout     Duration `json:"timeout"`      // wall clock of the run; 0 is none
	IdleTimeout Duration `json:"idle_timeout"` // without activity; 0 is none
	HostGrace   Duration `json:"host_grace"`   // how long the sandbox holds service calls for a lost host

	Env     map[string]string `json:"env,omitempty"`     // plain values for the agent
	Secrets []string          `json:"secrets,omitempty"` // names only; values are sealed elsewhere
	Schema  json.RawMessage   `json:"schema,omitempty"`  // JSON Schema of the reply

	LLM      LLM      `json:"llm,omitzero"`
	MCP      MCP      `json:"mcp,omitzero"`
	Skills   string   `json:"skills,omitempty"`       // content hash of the bundle of skills; empty is none
	Session  bool     `json:"session,omitempty"`      // open for further turns until somebody ends it
	TurnTime Duration `json:"turn_timeout,omitempty"` // bound of one turn of an agent; 0 is none

	AgentUID int `json:"agent_uid"` // numeric owner of the workspace and of the agent's processes
	AgentGID int `json:"agent_gid"`

	FollowCI     bool     `json:"follow_ci,omitempty"`     // ask the agent to mend its pull request where checks fail
	FollowIdle   Duration `json:"follow_idle,omitempty"`   // rest of the agent before FollowCI looks; 0 is its default
	FollowPoll   Duration `json:"follow_poll,omitempty"`   // between looks of FollowCI; 0 is its default
	Keep         bool     `json:"keep,omitempty"`          // leave the sandbox for a look
	PublishAgent string   `json:"publish_agent,omitempty"` // host address of the agent server's HTTP surface
	TrustMount   bool     `json:"trust_mount,omitempty"`
	ExitCode     bool     `json:"exit_code,omitempty"` // the process exits with the command's own code
	ToolDirs     []string `json:"tool_dirs,omitempty"` // host directories bound read-only on `local`
	Detached     bool     `json:"detached,omitempty"`

	Telemetry Telemetry `json:"telemetry,omitzero"`
}

// Telemetry says what is told about the run, and where. Tokens are sealed with the run's
// secrets.
type Telemetry struct {
	// Enabled is the flag tasks-agent-run-otel-telemetry as it was when the run was
	// dispatched; on a developer's machine it is set. Without it nothing is told.
	Enabled   bool   `json:"agent_otel_telemetry_enabled,omitempty"`
	LogsURL   string `json:"logs_url,omitempty"`   // OTLP; empty: no agent telemetry
	TracesURL string `json:"traces_url,omitempty"` // OTLP; empty: logs only
	Mirror    bool   `json:"mirror,omitempty"`     // the log of runs of this origin is mirrored
	MirrorURL string `json:"mirror_url,omitempty"` // OTLP; empty: to the background runner's own log only

	// Traces of insightscli itself, for which Enabled does not matter.
	OwnURL      string `json:"own_url,omitempty"`     // OTLP; empty: none
	OwnService  string `json:"own_service,omitempty"` // the name of the service
	TraceParent string `json:"traceparent,omitempty"` // the span that the run belongs to; empty: none
}

// Engine says which container engine a run is on, in the words of the engine's own
// client. A runner that takes the run over was perhaps started with others.
type Engine struct {
	Host      string `json:"host,omitempty"`       // DOCKER_HOST
	Context   string `json:"context,omitempty"`    // DOCKER_CONTEXT
	ConfigDir string `json:"config_dir,omitempty"` // DOCKER_CONFIG
	CertPath  string `json:"cert_path,omitempty"`  // DOCKER_CERT_PATH
	TLSVerify bool   `json:"tls_verify,omitempty"` // DOCKER_TLS_VERIFY
}

// Agent says who does the work.
type Agent struct {
	Name    string   `json:"name"`              // exec, claude, codex, acp:CMD
	Command []string `json:"command,omitempty"` // exec: argv, at least one element

	Model          string `json:"model,omitempty"`           // empty is the agent's own choice
	Effort         string `json:"effort,omitempty"`          // reasoning effort, in the agent's words
	PermissionMode string `json:"permission_mode,omitempty"` // in the agent's words, see PermissionModes
	// Program is the agent's program on the host: a file, or a directory that holds it.
	// It is mounted for sandboxes whose image has none.
	Program string `json:"program,omitempty"`
}

// The agents beside acp:CMD.
const (
	AgentExec   = "exec"
	AgentClaude = "claude"
	AgentCodex  = "codex"
	AgentACP    = "acp:" // a prefix: what follows is the command of an ACP agent
)

// Drives reports whether the agent talks to a model, as opposed to a plain command.
func (a Agent) Drives() bool { return a.Name != AgentExec }

// LLM says where the requests of an agent to a model go, and how much they may cost. Keys
// are sealed with the run's secrets.
type LLM struct {
	AnthropicURL string  `json:"anthropic_url,omitempty"` // base URL, without /v1
	OpenAIURL    string  `json:"openai_url,omitempty"`    // base URL, without /v1
	ForwardURL   string  `json:"forward_url,omitempty"`   // another gateway, reached with the run's own token
	MaxCost      float64 `json:"max_cost,omitempty"`      // US dollars; 0 is no bound
	MaxTokens    int64   `json:"max_tokens,omitempty"`    // of all kinds; 0 is no bound
	Prices       string  `json:"prices,omitempty"`        // the user's own, see setting INSIGHTS_LLM_PRICES
}

// MCP says which MCP servers an agent gets beside our own tools.
type MCP struct {
	URL     string      `json:"url,omitempty"`     // the Insights MCP server, as the host reaches it
	Require []string    `json:"require,omitempty"` // names of servers that must be connected
	Approve string      `json:"approve,omitempty"` // regular expression of the tools that need leave; empty is none
	Servers []MCPServer `json:"servers,omitempty"`
}

// MCPServer is one server of the user's. Exactly one of URL and Command is set. In
// Headers and Env "${NAME}" stands for the sealed value of that variable.
type MCPServer struct {
	Name    string            `json:"name"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Command []string          `json:"command,omitempty"` // started on the host, speaks over its standard streams
	Env     map[string]string `json:"env,omitempty"`
}

// RepoSource says where a repository comes from.
type RepoSource string

// The sources of a repository.
const (
	RepoLocal  RepoSource = "local"  // a path on this machine
	RepoRemote RepoSource = "remote" // a URL that git understands
)

// Repo is one repository of a run.
type Repo struct {
	Source RepoSource `json:"source"`
	Org    string     `json:"org"`  // lower case; "local" for a path without a GitHub origin
	Name   string     `json:"name"` // lower case
	Path   string     `json:"path,omitempty"`
	URL    string     `json:"url,omitempty"` // without credentials

	Branch      string `json:"branch,omitempty"`       // start from this one; empty is HEAD
	Commit      string `json:"commit,omitempty"`       // resolved when the Spec was frozen; local only
	Mount       bool   `json:"mount,omitempty"`        // bind Path read-write instead of cloning it
	Uncommitted bool   `json:"uncommitted,omitempty"`  // bring the uncommitted work along
	FullHistory bool   `json:"full_history,omitempty"` // all commits and branches of a repository on a server
}

// Dir is where the repository lies inside the sandbox.
func (r Repo) Dir() string { return WorkspaceDir + "/repos/" + r.Org + "/" + r.Name }

// WorkspaceDir is the working directory of every sandbox.
const WorkspaceDir = "/tmp/workspace"

// WorkDir is where the agent starts: the first repository, else the workspace.
func (s Spec) WorkDir() string {
	if len(s.Repos) == 0 {
		return WorkspaceDir
	}
	return s.Repos[0].Dir()
}
