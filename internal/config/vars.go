package config

import (
	"fmt"
	"slices"
	"strings"
)

// ParseVar reads the argument of --env-var and --secret: K=V, or K alone for the
// value that the environment of this process has. Names that would change how the
// sandbox itself works are refused.
func ParseVar(arg string, environ []string) (name, value string, err error) {
	name, value, given := strings.Cut(arg, "=")
	if err := CheckVar(name); err != nil {
		return "", "", err
	}
	if !given {
		if value, given = lookup(environ, name); !given {
			return "", "", fmt.Errorf("%s is not set in the environment; write %s=VALUE", name, name)
		}
	}
	if strings.ContainsRune(value, 0) {
		return "", "", fmt.Errorf("the value of %s holds a NUL byte", name)
	}
	return name, value, nil
}

// CheckVar reports why a variable of that name cannot be given to an agent.
func CheckVar(name string) error {
	switch {
	case !validVarName(name):
		return fmt.Errorf("%q is not the name of a variable", name)
	case slices.Contains(reservedVars(), name):
		return fmt.Errorf("%s is set by insightscli itself", name)
	case slices.Contains(blockedVars(), name), hasBlockedPrefix(name):
		return fmt.Errorf("%s changes how programs of the sandbox start, and is not passed on", name)
	}
	return nil
}

func validVarName(name string) bool {
	for i, r := range []byte(name) {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

func hasBlockedPrefix(name string) bool {
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || strings.HasPrefix(name, "GIT_")
}

func reservedVars() []string {
	return []string{
		"INSIGHTS_PERSONAL_API_KEY", "INSIGHTS_WIZARD_API_KEY", "INSIGHTS_API_URL", "INSIGHTS_PROJECT_ID",
		"INSIGHTS_TASK_ID", "INSIGHTS_TASK_RUN_ID", "JWT_PUBLIC_KEY", "GITHUB_TOKEN", "GH_TOKEN",
		"LLM_GATEWAY_URL", "AI_GATEWAY_URL", "AI_GATEWAY_PRODUCTS", "INSIGHTS_RESUME_RUN_ID",
		"INSIGHTS_AGENT_OTEL_LOGS_URL", "INSIGHTS_AGENT_OTEL_LOGS_TOKEN", "INSIGHTS_AGENT_OTEL_TRACES_URL",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING",
	}
}

func blockedVars() []string {
	return []string{
		"NODE_OPTIONS", "NODE_REPL_EXTERNAL_MODULE", "BASH_ENV", "PROMPT_COMMAND",
		"PYTHONSTARTUP", "PERL5OPT", "RUBYOPT",
	}
}

// lookup finds the last value of a variable, as the system would.
func lookup(environ []string, name string) (string, bool) {
	for i := len(environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(environ[i], name+"="); ok {
			return v, true
		}
	}
	return "", false
}
