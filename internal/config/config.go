package config

import (
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
)

// Config is every setting of the program, read once and passed by value.
type Config struct {
	Provider        string `mapstructure:"sandbox_provider"` // as written; see ChooseProvider
	Debug           bool   `mapstructure:"debug"`
	Test            bool   `mapstructure:"test"`
	CloudDeployment string `mapstructure:"cloud_deployment"`

	APIURL        string      `mapstructure:"sandbox_api_url"`
	LLMGatewayURL string      `mapstructure:"sandbox_llm_gateway_url"`
	MCPURL        string      `mapstructure:"sandbox_mcp_url"`
	RepoMounts    []RepoMount `mapstructure:"sandbox_repo_mount_map"`

	Run     Run     `mapstructure:",squash"`
	Agents  Agents  `mapstructure:",squash"`
	Account Account `mapstructure:",squash"`
	Tell    Tell    `mapstructure:",squash"`
	Machine Machine `mapstructure:",squash"`

	// Notices tell people what is odd about the files; they name no value.
	Notices []string `mapstructure:"-"`

	values []Value
}

// Run holds the defaults of the `run` command.
type Run struct {
	Agent       string        `mapstructure:"insightscli_agent"` // empty: claude
	Template    string        `mapstructure:"insightscli_template"`
	Image       string        `mapstructure:"insightscli_image"`
	Runtime     string        `mapstructure:"insightscli_runtime"`
	Network     string        `mapstructure:"insightscli_network"`
	Scopes      string        `mapstructure:"insightscli_scopes"`
	CPUs        float64       `mapstructure:"insightscli_cpus"`
	MemoryMiB   int64         `mapstructure:"insightscli_memory"`
	Timeout     time.Duration `mapstructure:"insightscli_timeout"`
	IdleTimeout time.Duration `mapstructure:"insightscli_idle_timeout"`
	HostGrace   time.Duration `mapstructure:"insightscli_host_grace"`
	Tools       string        `mapstructure:"insightscli_tools"`
	FollowCI    bool          `mapstructure:"insightscli_follow_ci"`
	FollowIdle  int           `mapstructure:"tasks_ci_follow_up_idle_seconds"`
	FollowPoll  int           `mapstructure:"tasks_ci_follow_up_poll_seconds"`

	Environments map[string]Environment `mapstructure:"insightscli_environments"`
}

// Agents holds what concerns agents that talk to a model.
type Agents struct {
	Model          string               `mapstructure:"insightscli_model"`
	Effort         string               `mapstructure:"insightscli_effort"`
	PermissionMode string               `mapstructure:"insightscli_permission_mode"`
	TurnTimeout    time.Duration        `mapstructure:"insightscli_turn_timeout"`
	MaxCost        float64              `mapstructure:"insightscli_max_cost"`
	MaxTokens      int                  `mapstructure:"insightscli_max_tokens"`
	AnthropicURL   string               `mapstructure:"insights_llm_anthropic_url"`
	OpenAIURL      string               `mapstructure:"insights_llm_openai_url"`
	Prices         string               `mapstructure:"insights_llm_prices"`
	MCPServers     map[string]MCPServer `mapstructure:"insights_mcp_servers"`
	RequireMCP     []string             `mapstructure:"insightscli_require_mcp"`
	Approval       string               `mapstructure:"insights_exec_permission_regex"`
	Skills         []string             `mapstructure:"insightscli_skills"`
	SkillsOverlay  string               `mapstructure:"sandbox_local_skills_host_path"`
	ClaudePath     string               `mapstructure:"claude_code_executable"`
	CodexPath      string               `mapstructure:"codex_path"`
}

// Account holds what belongs to accounts elsewhere.
type Account struct {
	GitHubURL          string        `mapstructure:"insights_github_url"`
	RefreshSeconds     int           `mapstructure:"tasks_credential_refresh_initial_delay_seconds"`
	AnthropicKey       secret.String `mapstructure:"anthropic_api_key"`
	OpenAIKey          secret.String `mapstructure:"openai_api_key"`
	JWTPrivateKey      secret.String `mapstructure:"sandbox_jwt_private_key"`
	GitHubClientID     string        `mapstructure:"github_app_client_id"`
	GitHubClientSecret secret.String `mapstructure:"github_app_client_secret"`
	GitHubSlug         string        `mapstructure:"github_app_slug"`
	GitHubPrivateKey   secret.String `mapstructure:"github_app_private_key"`
	GHToken            secret.String `mapstructure:"gh_token"`
	GitHubToken        secret.String `mapstructure:"github_token"`
	ModalTokenID       secret.String `mapstructure:"modal_token_id"`
	ModalTokenSecret   secret.String `mapstructure:"modal_token_secret"`
}

// Tell holds what is told to others about runs.
type Tell struct {
	LogsURL       string        `mapstructure:"sandbox_agent_otel_logs_url"`
	LogsToken     secret.String `mapstructure:"sandbox_agent_otel_logs_token"`
	TracesURL     string        `mapstructure:"sandbox_agent_otel_traces_url"`
	MirrorOrigins []string      `mapstructure:"task_run_logs_mirror_origin_products"`
	MirrorURL     string        `mapstructure:"task_run_logs_mirror_otlp_url"`
	MirrorToken   secret.String `mapstructure:"task_run_logs_mirror_otlp_token"`
	Own           Own           `mapstructure:",squash"`
}

// Own holds what is told to others about what insightscli itself does, by the variables of
// OpenTelemetry.
type Own struct {
	Disabled      bool          `mapstructure:"otel_sdk_disabled"`
	Endpoint      string        `mapstructure:"otel_exporter_otlp_endpoint"`
	TracesURL     string        `mapstructure:"otel_exporter_otlp_traces_endpoint"`
	Headers       secret.String `mapstructure:"otel_exporter_otlp_headers"`
	TracesHeaders secret.String `mapstructure:"otel_exporter_otlp_traces_headers"`
	Service       string        `mapstructure:"otel_service_name"`
	Parent        string        `mapstructure:"traceparent"`
}

// Machine holds what the machine and its session say.
type Machine struct {
	Home string `mapstructure:"-"`

	StateOverride string `mapstructure:"insightscli_state_dir"`
	StateHome     string `mapstructure:"xdg_state_home"`
	ConfigHome    string `mapstructure:"xdg_config_home"`
	RuntimeDir    string `mapstructure:"xdg_runtime_dir"`

	DockerHost      string `mapstructure:"docker_host"`
	DockerContext   string `mapstructure:"docker_context"`
	DockerConfig    string `mapstructure:"docker_config"`
	DockerCertPath  string `mapstructure:"docker_cert_path"`
	DockerTLSVerify string `mapstructure:"docker_tls_verify"`

	HTTPProxy  secret.String `mapstructure:"http_proxy"`
	HTTPSProxy secret.String `mapstructure:"https_proxy"`
	NoProxy    string        `mapstructure:"no_proxy"`

	SudoUID int    `mapstructure:"sudo_uid"` // 0: not run by sudo
	SudoGID int    `mapstructure:"sudo_gid"`
	Path    string `mapstructure:"path"`
	NoColor string `mapstructure:"no_color"`
	Term    string `mapstructure:"term"`
	CI      string `mapstructure:"ci"`
	Plain   bool   `mapstructure:"insightscli_plain"`
}

// Value is one setting as it stands, for people.
type Value struct {
	Setting
	Text   string // [hidden] if it is a secret and set
	Source string // "default", "environment", "flag --x" or file:line
	// Project is set where a file of the working directory or of the repository around it
	// decided, which need not be the user's own words.
	Project bool
	// Over is the place of a value of the project that was passed over, because it would
	// have allowed more than the user's own does; empty is none.
	Over string
}

// sourceDefault is the source of a value that nobody has set.
const sourceDefault = "default"

// Values returns every setting with its value and where that came from.
func (c Config) Values() []Value { return c.values }

// ByProject returns the value of a setting if a file of the project has decided it.
func (c Config) ByProject(name string) (Value, bool) {
	i := slices.IndexFunc(c.values, func(v Value) bool { return v.Name == name })
	if i < 0 || !c.values[i].Project {
		return Value{}, false
	}
	return c.values[i], true
}

// ByUser returns the value of a setting if the user has decided it: neither a file of the
// project nor the default.
func (c Config) ByUser(name string) (Value, bool) {
	i := slices.IndexFunc(c.values, func(v Value) bool { return v.Name == name })
	if i < 0 || c.values[i].Project || c.values[i].Source == sourceDefault {
		return Value{}, false
	}
	return c.values[i], true
}

// GitHub returns the address of the GitHub that repositories and credentials are for, or ""
// where that is github.com.
func (c Config) GitHub() string {
	address := strings.TrimRight(c.Account.GitHubURL, "/")
	if u, err := url.Parse(address); err != nil || strings.TrimPrefix(strings.ToLower(u.Host), "www.") == "github.com" {
		return ""
	}
	return address
}

// StateDir returns the directory of all state. Nothing is created or looked at.
func (c Config) StateDir() (string, error) {
	m := c.Machine
	switch {
	case m.StateOverride != "":
		return m.StateOverride, nil
	case m.StateHome != "":
		return filepath.Join(m.StateHome, "insightscli"), nil
	case m.Home == "":
		return "", errs.New("config.StateDir", errs.Config,
			"set INSIGHTSCLI_STATE_DIR to a directory on a local disk",
			"no state directory: HOME is not set")
	case runtime.GOOS == "windows":
		return filepath.Join(m.Home, "AppData", "Local", "insightscli"), nil
	}
	return filepath.Join(m.Home, ".local", "state", "insightscli"), nil
}
