package agentserver

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/link/wire"
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environ returns the environment of the agent's processes, commands of the host among
// them: defaults, then what the host gave, less what must not be there ([wire.Withheld]),
// whose names it returns too.
func environ(boot wire.Boot) (list, withheld []string) {
	env := map[string]string{
		"HOME": boot.Home, "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/sh",
		"TERM": "dumb", "LANG": "C.UTF-8", "PATH": defaultPath,
	}
	for _, k := range slices.Sorted(maps.Keys(boot.Env)) {
		if wire.Withheld(k, boot.Env[k]) != "" {
			withheld = append(withheld, k)
			continue
		}
		env[k] = boot.Env[k]
	}
	env["PATH"] = wire.BinDir + string(os.PathListSeparator) + env["PATH"]
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return list, withheld
}

// commandEnv is the agent's environment, with what the host adds for this command. A
// credential is refused there too: the agent can read the environment of every process of
// its uid. What loads code is the business of whoever asks for it.
func (s *Server) commandEnv(cmd wire.Command) ([]string, error) {
	env := slices.Clone(s.env)
	if cmd.TTY {
		env = append(env, "TERM=xterm-256color")
	}
	for _, kv := range cmd.Env {
		name, value, _ := strings.Cut(kv, "=")
		if why := wire.Withheld(name, value); why != "" && why != wire.WithheldCode {
			return nil, fmt.Errorf("%s: %s", name, why)
		}
	}
	return append(env, cmd.Env...), nil // of two values the last counts
}
