//go:build unix

package agentserver_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link/wire"
)

// TestNoCredentialReachesTheAgent: neither the agent nor a command sees one, whatever the
// host was told to give.
func TestNoCredentialReachesTheAgent(t *testing.T) {
	const canary = "s3cr3t-canary"
	s := newSandbox(t, func(b *wire.Boot) {
		for _, name := range []string{"GITHUB_TOKEN", "GITLAB_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "NODE_OPTIONS", "LD_AUDIT"} {
			b.Env[name] = canary
		}
		b.Env["ANTHROPIC_AUTH_TOKEN"], b.Env["OPENAI_API_KEY"] = "insx_run", "insx_run"
	})
	c := s.connect()
	var out bytes.Buffer
	if _, err := c.Exec(t.Context(), wire.Command{Argv: []string{"env"}}, agent.Stdio{Out: &out}); err != nil {
		t.Fatal(err)
	}
	r := &record{}
	s.start(c, "env")
	s.follow(c, r)
	for who, env := range map[string]string{"command": out.String(), "agent": r.stdout.String()} {
		if strings.Contains(env, canary) || !strings.Contains(env, "ANTHROPIC_AUTH_TOKEN=insx_run\n") || !strings.Contains(env, "OPENAI_API_KEY=insx_run\n") {
			t.Errorf("%s sees:\n%s", who, env)
		}
	}
}

func TestCommandWithACredentialIsRefused(t *testing.T) {
	c := newSandbox(t, nil).connect()
	_, err := c.Exec(t.Context(), wire.Command{Argv: []string{"env"}, Env: []string{"A=b", "GH_TOKEN=x"}}, agent.Stdio{})
	if err == nil || !strings.Contains(err.Error(), "GH_TOKEN: a credential that can write") {
		t.Error(err)
	}
	var out bytes.Buffer
	_, err = c.Exec(t.Context(), wire.Command{Argv: []string{"env"}, Env: []string{"NODE_OPTIONS=--title=x"}}, agent.Stdio{Out: &out})
	if err != nil || !strings.Contains(out.String(), "NODE_OPTIONS=--title=x") {
		t.Errorf("%v, %s", err, out.String())
	}
}

// Programs are led to the capture only where it can refuse something, the user's own proxy
// stays, and the ports of the host's services are asked for through none.
func TestProxies(t *testing.T) {
	const capture, own = "http://127.0.0.1:15001", "localhost,127.0.0.1,::1"
	for name, c := range map[string]struct {
		boot wire.Boot
		want string
	}{
		"no capture": {wire.Boot{}, "||||"},
		"everything": {wire.Boot{Capture: true, Allow: []string{"*"}}, "||||"},
		"restricted": {wire.Boot{Capture: true, Allow: []string{"example.com"}}, capture + "|" + capture + "|" + capture + "|" + capture + "|" + own},
		"deny all":   {wire.Boot{Capture: true}, capture + "|" + capture + "|" + capture + "|" + capture + "|" + own},
		"own": {
			wire.Boot{Capture: true, Env: map[string]string{"https_proxy": "http://p:1", "NO_PROXY": "intern"}},
			"|||http://p:1|intern," + own,
		},
		"own none": {wire.Boot{Capture: true, Env: map[string]string{"HTTP_PROXY": ""}}, "||||" + own},
		"star":     {wire.Boot{Capture: true, Env: map[string]string{"NO_PROXY": "*"}}, capture + "|" + capture + "|" + capture + "|" + capture + "|*"},
	} {
		s := newSandbox(t, func(b *wire.Boot) {
			b.Capture, b.Allow = c.boot.Capture, c.boot.Allow
			maps.Copy(b.Env, c.boot.Env)
		})
		var out bytes.Buffer
		script := `echo "$HTTP_PROXY|$HTTPS_PROXY|$http_proxy|$https_proxy|$NO_PROXY"`
		_, err := s.connect().Exec(t.Context(), wire.Command{Argv: []string{"sh", "-c", script}}, agent.Stdio{Out: &out})
		if got := strings.TrimSpace(out.String()); err != nil || got != c.want {
			t.Errorf("%s: %q, want %q (%v)", name, got, c.want, err)
		}
	}
}
