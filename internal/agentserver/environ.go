package agentserver

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/link/wire"
)

// binDir holds what we give the agent: it comes first in its PATH.
const binDir = "/opt/insights/bin"

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environ returns the environment of the agent's processes: defaults, then what the
// host gave, less what would load foreign code into every program, and less the
// GitHub tokens, which are never in an environment.
func environ(boot wire.Boot) []string {
	env := map[string]string{
		"HOME": boot.Home, "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/sh",
		"TERM": "dumb", "LANG": "C.UTF-8", "PATH": defaultPath,
	}
	for k, v := range boot.Env {
		if !unset(k) {
			env[k] = v
		}
	}
	env["PATH"] = binDir + string(os.PathListSeparator) + env["PATH"]
	list := make([]string, 0, len(env))
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return list
}

// unset reports whether the agent's processes must not see the variable. A command
// of the host ([wire.Command]) may still set it for itself.
func unset(name string) bool {
	switch name {
	case "NODE_OPTIONS", "NODE_REPL_EXTERNAL_MODULE", "GITHUB_TOKEN", "GH_TOKEN":
		return true
	}
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_")
}
