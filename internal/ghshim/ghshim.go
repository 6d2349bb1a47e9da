// Package ghshim is the gh that an agent finds first in its PATH: it asks PID 1 for the
// credential that reads the run's repositories, and becomes the real gh with it. The host
// renews the credential while the run goes on, so it is asked for at each call; an empty
// one means that there is none any more, and none of the caller's takes its place. Where
// PID 1 does not answer there is no gh: what it would do would be nobody's.
package ghshim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/Insights/insightscli/internal/gitguard"
	"github.com/Insights/insightscli/internal/link/wire"
)

// Exit codes of the shim itself, the last two as a shell has them.
const (
	exitFailed = 1
	exitCannot = 126
	exitNoGH   = 127
)

// askTime bounds the question to PID 1, which may wait for the host.
const askTime = 15 * time.Second

// Process is an invocation of gh.
type Process struct {
	Args    []string // what follows the program's name
	Environ []string
	Stderr  io.Writer
	// Self are paths of the shim's own program. One that is missing, or that may not be
	// looked at, does no harm.
	Self []string
	// Ask asks for the credential; nil asks PID 1.
	Ask func(context.Context) (wire.GitHubState, error)
}

// Run becomes the real gh. It returns an exit code only where it did not.
func Run(ctx context.Context, p Process) int {
	gh := gitguard.Next(p.Environ, "gh", p.Self)
	if gh == "" {
		_, _ = fmt.Fprintln(p.Stderr, "gh: there is no gh in this sandbox: install it in the image")
		return exitNoGH
	}
	ask := p.Ask
	if ask == nil {
		ask = askPID1
	}
	state, err := ask(ctx)
	if err == nil && state.Pending {
		err = errors.New("the host has none yet; try again in a while")
	}
	if err != nil {
		_, _ = fmt.Fprintf(p.Stderr, "gh: the credential of this sandbox cannot be read: %v\n", err)
		return exitFailed
	}
	err = syscall.Exec(gh, append([]string{"gh"}, p.Args...), Environ(p.Environ, state))
	_, _ = fmt.Fprintf(p.Stderr, "gh: %s: %v\n", gh, err)
	return exitCannot
}

func askPID1(ctx context.Context) (wire.GitHubState, error) {
	var state wire.GitHubState
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", wire.GitHubSocket)
	if err != nil {
		return state, err
	}
	defer func() { _ = conn.Close() }() // it was read only
	_ = conn.SetDeadline(time.Now().Add(askTime))
	return state, json.NewDecoder(io.LimitReader(conn, wire.MaxGitHub)).Decode(&state)
}

// tokens are the variables in which gh looks for a credential.
func tokens() []string {
	return []string{"GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"}
}

// Environ is the environment of the real gh.
func Environ(environ []string, s wire.GitHubState) []string {
	env := withoutRewrites(environ)
	if !s.Managed {
		return env
	}
	env = slices.DeleteFunc(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(tokens(), name)
	})
	if s.Token == "" {
		return env
	}
	if s.Host == "" || s.Host == "github.com" {
		return append(env, "GH_TOKEN="+s.Token)
	}
	name := "GH_ENTERPRISE_TOKEN" // gh would send the other one to github.com
	if strings.HasSuffix(s.Host, ".ghe.com") {
		name = "GH_TOKEN"
	}
	return append(env, name+"="+s.Token, "GH_HOST="+s.Host)
}

// withoutRewrites takes out what has git fetch from the host: gh reads in the remotes which
// repository it is in, and git shows those as they are fetched.
func withoutRewrites(environ []string) []string {
	values := map[string]string{}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, "GIT_CONFIG_") {
			values[name] = value
		}
	}
	count, err := strconv.Atoi(values["GIT_CONFIG_COUNT"])
	if err != nil || count < 0 || count > len(values) {
		return slices.Clone(environ)
	}
	env := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "GIT_CONFIG_COUNT" || strings.HasPrefix(name, "GIT_CONFIG_KEY_") || strings.HasPrefix(name, "GIT_CONFIG_VALUE_")
	})
	kept := 0
	for i := range count {
		key, value := values[fmt.Sprintf("GIT_CONFIG_KEY_%d", i)], values[fmt.Sprintf("GIT_CONFIG_VALUE_%d", i)]
		if strings.HasPrefix(key, wire.GitRewrite) {
			continue
		}
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", kept, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", kept, value))
		kept++
	}
	if kept > 0 {
		env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(kept))
	}
	return env
}
