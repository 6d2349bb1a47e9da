package codex

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/Insights/insightscli/internal/link/wire"
)

// toolTime bounds one call of a tool of an MCP server, in seconds. The host may hold it
// until somebody has approved it, for which there is half an hour.
const toolTime = 2100

// serverName is what can be a key in Codex's configuration without quotes, which its -c
// does not know.
var serverName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// hidden are the variables that Codex's commands do not get: the tokens that are ours.
// Codex's own rule (every name with KEY, SECRET or TOKEN in it) would take from them what
// the user gave them, and break git, whose GIT_CONFIG_KEY_0 goes with a GIT_CONFIG_COUNT.
var hidden = []string{
	"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
	"INSIGHTS_*KEY*", "INSIGHTS_*TOKEN*", "INSIGHTS_*SECRET*",
}

// arguments are those of the program: all of its configuration, which goes before what
// the image has in a config.toml, but for when to ask for leave: that is told with the
// thread, where "untrusted" still is a word. env is the agent's environment.
func arguments(start wire.Start, env []string) ([]string, error) {
	gateway := value(env, "OPENAI_BASE_URL")
	if gateway == "" {
		return nil, errors.New("agent codex needs a model gateway: OPENAI_BASE_URL is not set in its environment")
	}
	set := []string{
		`model_provider="gw"`,
		// A provider of its own: the built-in one begins with WebSockets, which the
		// gateway does not speak.
		`model_providers.gw={name="gateway",base_url=` + quote(gateway) +
			`,wire_api="responses",env_key="OPENAI_API_KEY",request_max_retries=5,stream_max_retries=5}`,
		`sandbox_mode="danger-full-access"`,
		// A login shell reads /etc/profile, which makes a PATH of its own: that would
		// pass our git by.
		`allow_login_shell=false`,
		`features.shell_snapshot=false`,
		`shell_environment_policy.inherit="all"`,
		`shell_environment_policy.ignore_default_excludes=true`,
		`shell_environment_policy.exclude=["` + strings.Join(hidden, `","`) + `"]`,
		// Without this it waits for the gateway for ever.
		`features.unbounded_connection_retries=false`,
		`check_for_update_on_startup=false`,
		`analytics.enabled=false`,
		`features.plugins=false`,
		`features.apps=false`,
	}
	for _, s := range start.MCP {
		if !serverName.MatchString(s.Name) {
			return nil, fmt.Errorf("MCP server %q: codex takes letters, digits, - and _ as a name", s.Name)
		}
		set = append(set, fmt.Sprintf(
			`mcp_servers.%s={url=%s,bearer_token_env_var="INSIGHTS_PERSONAL_API_KEY",startup_timeout_sec=30,tool_timeout_sec=%d}`,
			s.Name, quote(s.URL), toolTime))
	}
	argv := []string{"app-server"}
	for _, s := range set {
		argv = append(argv, "-c", s)
	}
	return argv, nil
}

// quote makes a string of TOML, which for what is no control character is one of JSON.
func quote(s string) string {
	b, _ := json.Marshal(s) // cannot fail
	return strings.ReplaceAll(string(b), "\x7f", `\u007f`)
}

// value is that of a variable, or "".
func value(env []string, name string) string {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return ""
}
