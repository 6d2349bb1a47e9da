package agentserver

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/Insights/insightscli/internal/egress/rule"
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
	addProxies(env, boot)
	env["PATH"] = wire.BinDir + string(os.PathListSeparator) + env["PATH"]
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return list, withheld
}

// addProxies leads programs to the capture as a proxy. Every connection is captured without
// that, too; but a program that heeds the variables gets an answer that says why it is
// refused, where it would otherwise see a connection that is reset. They are left out where
// everything is allowed, so that there is nothing to say, and where the user has a proxy of
// his own. The sandbox's own servers, and the ports of the host's services, are asked for
// through neither.
func addProxies(env map[string]string, boot wire.Boot) {
	restricted := boot.Capture && !slices.Contains(boot.Allow, rule.All)
	theirs := false
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		_, upper := env[name]
		_, lower := env[strings.ToLower(name)]
		theirs = theirs || upper || lower
	}
	if !theirs && !restricted {
		return
	}
	if !theirs {
		address := "http://127.0.0.1:" + strconv.Itoa(wire.PortEgress)
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
			env[name] = address
		}
	}
	const own = "localhost,127.0.0.1,::1"
	for name, other := range map[string]string{"NO_PROXY": env["no_proxy"], "no_proxy": env["NO_PROXY"]} {
		if list := cmp.Or(env[name], other); list != "*" { // which stands for everything only alone
			env[name] = strings.TrimPrefix(list+","+own, ",")
		}
	}
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
