package config

import (
	"slices"
	"strings"
)

// Type says how the text of a setting is read.
type Type string

// The types of setting.
const (
	TypeString   Type = "string"
	TypeBool     Type = "bool"
	TypeInt      Type = "number"
	TypeFloat    Type = "decimal"
	TypeAmount   Type = "amount"
	TypeSize     Type = "size"
	TypeDuration Type = "duration"
	TypeURL      Type = "url"
	TypeOrigin   Type = "origin"   // a URL of a host alone, to which keys may travel
	TypeEndpoint Type = "endpoint" // a URL of everybody's variables: a text that is none is no error
	TypePath     Type = "path"
	TypeMounts   Type = "org/repo:path,…"
	TypeList     Type = "list" // comma-separated
	TypeServers  Type = "servers"

	TypeEnvironments Type = "environments"
)

// EnvStateDir is the variable that a child process is given its state directory by.
const EnvStateDir = "INSIGHTSCLI_STATE_DIR"

// Setting is one row of the table from which Load works and from which
// `insightscli help environment`, README and `insightscli config` are made.
type Setting struct {
	Name    string // the environment variable
	Key     string // the key in insights.yaml and config.yaml; empty: not settable there
	Flag    string // the flag of `run` that overrides it, without dashes; empty: none
	Type    Type
	Default string
	Secret  bool // printed as [hidden]; never read from a YAML file
	// EnvOnly is set where a file of a checked-out repository must not decide: what
	// belongs to the machine, and what says where our own state lies.
	EnvOnly bool
	// UserFile is set beside EnvOnly where the user's own config.yaml may decide as well,
	// and an insights.yaml may not.
	UserFile bool
	Empty    bool   // an empty text is a value, and not the same as none
	Doc      string // one sentence
}

// mapping is set where the value is a mapping from name to more than a text.
func (s Setting) mapping() bool { return s.Type == TypeServers || s.Type == TypeEnvironments }

// viperKey is the name of the setting inside viper, which lower-cases keys.
func (s Setting) viperKey() string { return strings.ToLower(s.Name) }

// Settings returns the table, in the order in which it is shown.
func Settings() []Setting {
	return slices.Concat(sandboxSettings(), runSettings(), agentSettings(), accountSettings(), telemetrySettings(),
		directorySettings(), engineSettings(), processSettings())
}

func sandboxSettings() []Setting {
	return []Setting{
		{
			Name: "SANDBOX_PROVIDER", Key: "provider", Flag: "provider", Type: TypeString,
			Doc: "Where sandboxes are made: docker, local, modal or MODAL_DOCKER; unset: docker if an engine answers, else local.",
		},
		{
			Name: "DEBUG", Type: TypeBool, Default: "1",
			Doc: "0 marks a production machine: docker and MODAL_DOCKER are refused there and modal is the default provider. Anything but 0, false, no and off is 1.",
		},
		{
			Name: "TEST", Type: TypeBool, Default: "0",
			Doc: "1 allows docker and MODAL_DOCKER although DEBUG is 0.",
		},
		{
			Name: "CLOUD_DEPLOYMENT", Type: TypeString,
			Doc: "The deployment this machine belongs to; if set, modal is the default provider.",
		},
		{
			Name: "SANDBOX_API_URL", Key: "api-url", Type: TypeURL, Default: "http://localhost:8000",
			Doc: "The Insights API as the host reaches it; sandboxes reach it over the link.",
		},
		{
			Name: "SANDBOX_LLM_GATEWAY_URL", Key: "llm-gateway-url", Type: TypeURL,
			Doc: "The LLM gateway as the host reaches it.",
		},
		{
			Name: "SANDBOX_MCP_URL", Key: "mcp-url", Type: TypeURL,
			Doc: "The Insights MCP server as the host reaches it.",
		},
		{
			Name: "SANDBOX_REPO_MOUNT_MAP", Key: "repo-mounts", Type: TypeMounts,
			Doc: "Local checkouts to bind read-write instead of cloning: org/repo:/path, comma-separated; ~ is your home.",
		},
	}
}

func runSettings() []Setting {
	return []Setting{
		{
			Name: "INSIGHTSCLI_AGENT", Key: "agent", Flag: "agent", Type: TypeString,
			Doc: "The agent of `run` with a PROMPT; unset: claude.",
		},
		{
			Name: "INSIGHTSCLI_TEMPLATE", Key: "template", Flag: "template", Type: TypeString, Default: "default_base",
			Doc: "The sandbox template.",
		},
		{
			Name: "INSIGHTSCLI_IMAGE", Key: "image", Flag: "image", Type: TypeString,
			Doc: "The image of the sandbox, where the provider has images; unset: the template's.",
		},
		{
			Name: "INSIGHTSCLI_RUNTIME", Key: "runtime", Flag: "runtime", Type: TypeString,
			Doc: "The OCI runtime of Docker sandboxes, such as runsc; unset: the engine's own choice.",
		},
		{
			Name: "INSIGHTSCLI_NETWORK", Key: "network", Flag: "network", Type: TypeString, Default: "full",
			Doc: "The network level: full, trusted, custom, link or none.",
		},
		{
			Name: "INSIGHTSCLI_ENVIRONMENTS", Key: "environments", Type: TypeEnvironments,
			Doc: "Sandbox environments for --env beside those of `insightscli env`, as a mapping from name to {network, allow, include-default-domains, env, secrets, image, repos}.",
		},
		{
			Name: "INSIGHTSCLI_SCOPES", Key: "scopes", Flag: "scopes", Type: TypeString, Default: "full",
			Doc: "What the agent may do in Insights: read_only, full or a comma-separated list such as query:read.",
		},
		{
			Name: "INSIGHTSCLI_CPUS", Key: "cpus", Flag: "cpus", Type: TypeFloat, Default: "0",
			Doc: "Processor cores of a sandbox; 0: the provider's default.",
		},
		{
			Name: "INSIGHTSCLI_MEMORY", Key: "memory", Flag: "memory", Type: TypeSize, Default: "0",
			Doc: "Memory of a sandbox, such as 512m or 8g; 0: the provider's default.",
		},
		{
			Name: "INSIGHTSCLI_TIMEOUT", Key: "timeout", Flag: "timeout", Type: TypeDuration, Default: "3h",
			Doc: "Wall-clock limit of a run; 0: none.",
		},
		{
			Name: "INSIGHTSCLI_IDLE_TIMEOUT", Key: "idle-timeout", Flag: "idle-timeout", Type: TypeDuration, Default: "30m",
			Doc: "A run without activity for this long is completed; 0: never.",
		},
		{
			Name: "INSIGHTSCLI_HOST_GRACE", Key: "host-grace", Flag: "host-grace", Type: TypeDuration, Default: "2m",
			Doc: "How long a sandbox holds requests to the host while no host process is there.",
		},
		{
			Name: "INSIGHTSCLI_TOOLS", Key: "tools", Flag: "tools", Type: TypeString, Default: "auto",
			Doc: "auto binds the tool directories of PATH read-only into local sandboxes, none does not.",
		},
		{
			Name: "INSIGHTSCLI_FOLLOW_CI", Key: "follow-ci", Flag: "follow-ci", Type: TypeBool, Default: "0",
			Doc: "1: a run with --create-pr goes on after its agent has come to rest, and asks it to mend what checks and reviews of its pull requests find, three times at most.",
		},
		{
			Name: "TASKS_CI_FOLLOW_UP_IDLE_SECONDS", Type: TypeInt, Default: "900", EnvOnly: true,
			Doc: "How many seconds an agent has to be at rest before checks and reviews are looked at (--follow-ci).",
		},
		{
			Name: "TASKS_CI_FOLLOW_UP_POLL_SECONDS", Type: TypeInt, Default: "60", EnvOnly: true,
			Doc: "How many seconds lie between two looks at checks that are going on (--follow-ci).",
		},
	}
}

func accountSettings() []Setting {
	return []Setting{
		{
			Name: "ANTHROPIC_API_KEY", Type: TypeString, Secret: true,
			Doc: "Key of the Anthropic API; it stays on the host, the sandbox gets a token of the run.",
		},
		{
			Name: "OPENAI_API_KEY", Type: TypeString, Secret: true,
			Doc: "Key of the OpenAI API; it stays on the host, the sandbox gets a token of the run.",
		},
		{
			Name: "SANDBOX_JWT_PRIVATE_KEY", Type: TypeString, Secret: true,
			Doc: "RSA key (PEM; literal \\n is fine) that signs the tokens of the agent server's HTTP surface.",
		},
		{
			Name: "INSIGHTS_GITHUB_URL", Key: "github-url", Type: TypeOrigin, Default: "https://github.com",
			Doc: "The GitHub that org/repo, the GitHub App and tokens belong to: github.com, a GitHub Enterprise Server or a tenant of ghe.com.",
		},
		{
			Name: "TASKS_CREDENTIAL_REFRESH_INITIAL_DELAY_SECONDS", Type: TypeInt, Default: "1200", EnvOnly: true,
			Doc: "After how many seconds the GitHub credential of a sandbox is first renewed.",
		},
		{
			Name: "GITHUB_APP_CLIENT_ID", Type: TypeString,
			Doc: "OAuth client ID of your GitHub App; it starts with Iv1 or Iv23 and is not the numeric App ID.",
		},
		{
			Name: "GITHUB_APP_CLIENT_SECRET", Type: TypeString, Secret: true,
			Doc: "Client secret of your GitHub App.",
		},
		{
			Name: "GITHUB_APP_SLUG", Type: TypeString,
			Doc: "Name of your GitHub App in its address, github.com/apps/SLUG.",
		},
		{
			Name: "GITHUB_APP_PRIVATE_KEY", Type: TypeString, Secret: true,
			Doc: "Private key of your GitHub App (PEM; literal \\n is fine).",
		},
		{
			Name: "GH_TOKEN", Type: TypeString, Secret: true, EnvOnly: true,
			Doc: "GitHub token that the host clones private repositories with where no GitHub App does; GITHUB_TOKEN is taken too.",
		},
		{
			Name: "GITHUB_TOKEN", Type: TypeString, Secret: true, EnvOnly: true,
			Doc: "As GH_TOKEN, which wins.",
		},
		{
			Name: "MODAL_TOKEN_ID", Type: TypeString, Secret: true,
			Doc: "Modal token id, for the providers modal and MODAL_DOCKER.",
		},
		{
			Name: "MODAL_TOKEN_SECRET", Type: TypeString, Secret: true,
			Doc: "Modal token secret, for the providers modal and MODAL_DOCKER.",
		},
	}
}

func directorySettings() []Setting {
	return []Setting{
		{
			Name: EnvStateDir, Type: TypePath, EnvOnly: true,
			Doc: "Where runs, logs and caches are kept; must be on a local disk; unset: insightscli below XDG_STATE_HOME.",
		},
		{
			Name: "XDG_STATE_HOME", Type: TypePath, EnvOnly: true,
			Doc: "Base of the state directory; unset: ~/.local/state.",
		},
		{
			Name: "XDG_CONFIG_HOME", Type: TypePath, EnvOnly: true,
			Doc: "Base of insightscli/config.yaml; unset: ~/.config.",
		},
		{
			Name: "XDG_RUNTIME_DIR", Type: TypePath, EnvOnly: true,
			Doc: "Where the sockets of rootless Docker and podman are looked for.",
		},
	}
}

func engineSettings() []Setting {
	return []Setting{
		{
			Name: "DOCKER_HOST", Type: TypeString, EnvOnly: true,
			Doc: "Address of the Docker engine; wins over DOCKER_CONTEXT.",
		},
		{
			Name: "DOCKER_CONTEXT", Type: TypeString, EnvOnly: true,
			Doc: "Docker context; unset: the current one of the docker command.",
		},
		{
			Name: "DOCKER_CONFIG", Type: TypePath, EnvOnly: true,
			Doc: "Directory of the docker command's configuration; unset: ~/.docker.",
		},
		{
			Name: "DOCKER_CERT_PATH", Type: TypePath, EnvOnly: true,
			Doc: "Directory of the certificates for a DOCKER_HOST over TLS.",
		},
		{
			Name: "DOCKER_TLS_VERIFY", Type: TypeString, EnvOnly: true,
			Doc: "Anything but empty: the engine's certificate is verified.",
		},
	}
}

func processSettings() []Setting {
	return []Setting{
		{
			Name: "HTTPS_PROXY", Type: TypeString, Secret: true, EnvOnly: true,
			Doc: "Proxy for the host's own requests to https addresses; https_proxy is taken too.",
		},
		{
			Name: "HTTP_PROXY", Type: TypeString, Secret: true, EnvOnly: true,
			Doc: "Proxy for the host's own requests to http addresses; http_proxy is taken too.",
		},
		{
			Name: "NO_PROXY", Type: TypeString, EnvOnly: true,
			Doc: "Hosts that are reached without a proxy, comma-separated; no_proxy is taken too.",
		},
		{
			Name: "SUDO_UID", Type: TypeInt, EnvOnly: true,
			Doc: "Set by sudo: the user whose files the sandbox's agent owns when insightscli runs as root.",
		},
		{
			Name: "SUDO_GID", Type: TypeInt, EnvOnly: true,
			Doc: "Set by sudo: the group beside SUDO_UID.",
		},
		{
			Name: "PATH", Type: TypeString, EnvOnly: true,
			Doc: "Searched for git and others; its directories inside hidden homes are bound into local sandboxes.",
		},
		{
			Name: "NO_COLOR", Type: TypeString, EnvOnly: true,
			Doc: "Anything but empty: no colour.",
		},
		{
			Name: "TERM", Type: TypeString, EnvOnly: true,
			Doc: "dumb: plain lines without any escape sequence.",
		},
		{
			Name: "CI", Type: TypeString, EnvOnly: true,
			Doc: "Anything but empty: plain lines, also on a terminal.",
		},
		{
			Name: "INSIGHTSCLI_PLAIN", Key: "plain", Flag: "plain", Type: TypeBool, Default: "0", EnvOnly: true, UserFile: true,
			Doc: "1 prints plain lines where `run` and `logs -f` would show the run on the screen.",
		},
	}
}

// find returns the setting that match accepts.
func find(match func(Setting) bool) (Setting, bool) {
	all := Settings()
	if i := slices.IndexFunc(all, match); i >= 0 {
		return all[i], true
	}
	return Setting{}, false
}

// Keys returns the keys that YAML files may hold, sorted.
func Keys() []string {
	var keys []string
	for _, s := range Settings() {
		if s.Key != "" {
			keys = append(keys, s.Key)
		}
	}
	slices.Sort(keys)
	return keys
}
