package claude

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/agentcli"
	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
)

const (
	// tokenName is the variable with the run's token.
	tokenName = "INSIGHTS_PERSONAL_API_KEY"
	// fullAccess is the permission mode of an agent that asks for no leave.
	fullAccess = "bypassPermissions"
	// install is what to do without the program.
	install = "npm install -g @anthropic-ai/claude-code"
	// versionTime bounds the question for the program's version.
	versionTime = 10 * time.Second
)

// launch starts the program. The driver's mutex is held. ctx is the session's life.
func (d *driver) launch(ctx context.Context, schema string) (*process, error) {
	argv := append([]string{d.host.Program(Name, d.start.PreferMounted)}, d.arguments(schema)...)
	pipe, err := d.host.Pipe(ctx, argv, d.start.Dir, environ(d.host.Env))
	switch {
	case err == nil:
	case errors.Is(err, proc.ErrNotFound) && strings.Contains(argv[0], "/"):
		return nil, fmt.Errorf("Claude Code cannot run in this image, which lacks its interpreter or C library (glibc): %w", err)
	case errors.Is(err, proc.ErrNotFound):
		return nil, fmt.Errorf("there is no Claude Code in the sandbox's image, and none was mounted: %s", install)
	default:
		return nil, fmt.Errorf("start Claude Code: %w", err)
	}
	life, cancel := context.WithCancel(ctx)
	p := newProcess(pipe, schema, cancel)
	d.proc, d.stale = p, false
	p.run(life, newView(d, p))
	return p, nil
}

// arguments are those of the program. Nothing secret is among them: the program itself
// puts the token into the headers of the MCP servers.
func (d *driver) arguments(schema string) []string {
	s := d.start
	args := []string{
		"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
		"--include-partial-messages", "--permission-mode", cmp.Or(s.PermissionMode, fullAccess),
		"--permission-prompt-tool", "stdio", "--strict-mcp-config",
	}
	if len(s.MCP) > 0 {
		args = append(args, "--mcp-config", mcpConfig(s.MCP, hasEnv(d.host.Env, tokenName)))
	}
	if s.Model != "" {
		args = append(args, "--model", s.Model)
	}
	if s.Effort != "" {
		args = append(args, "--effort", s.Effort)
	}
	if schema != "" {
		args = append(args, "--json-schema", schema)
	}
	if d.kept {
		return append(args, "--resume", d.session)
	}
	return append(args, "--session-id", d.session)
}

// mcpConfig is the program's configuration of MCP servers.
func mcpConfig(servers []wire.MCPServer, token bool) string {
	type entry struct {
		Type    string            `json:"type"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers,omitempty"`
	}
	entries := map[string]entry{}
	for _, s := range servers {
		e := entry{Type: "http", URL: s.URL}
		if token {
			e.Headers = map[string]string{"Authorization": "Bearer ${" + tokenName + "}"}
		}
		entries[s.Name] = e
	}
	b, _ := json.Marshal(map[string]any{"mcpServers": entries}) // of strings
	return string(b)
}

// environ is the program's environment: the agent's, and what is not yet in it of what
// silences the program, bounds its retries, and tells it that it is in a sandbox, without
// which it refuses full access to root.
func environ(env []string) []string {
	env = slices.Clone(env)
	for _, kv := range []string{
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
		"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_MAX_RETRIES=5", "IS_SANDBOX=1",
	} {
		if name, _, _ := strings.Cut(kv, "="); !hasEnv(env, name) {
			env = append(env, kv)
		}
	}
	return env
}

func hasEnv(env []string, name string) bool {
	return slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

// checkEffort refuses what the program would only warn of.
func checkEffort(effort string) error {
	levels := []string{"low", "medium", "high", "xhigh", "max"}
	if effort != "" && !slices.Contains(levels, effort) {
		return fmt.Errorf("effort %q is none of %s", effort, strings.Join(levels, ", "))
	}
	return nil
}

// checkVersion refuses a program that is too old, in one line.
func checkVersion(version string) error {
	if err := agentcli.CheckVersion(agentcli.Claude, version); err != nil {
		return fmt.Errorf("%w: %s", err, errs.HintOf(err))
	}
	return nil
}

// tooOld asks the program for its version, and says what is wrong with it or "". A
// program too old for our arguments does not get as far as to tell it.
func (d *driver) tooOld(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	d.mu.Lock()
	argv := []string{d.host.Program(Name, d.start.PreferMounted), "--version"}
	dir := d.start.Dir
	d.mu.Unlock()
	pipe, err := d.host.Pipe(ctx, argv, dir, environ(d.host.Env))
	if err != nil {
		return ""
	}
	stop := context.AfterFunc(ctx, func() { pipe.Close(0) })
	said, _ := io.ReadAll(io.LimitReader(pipe.Out, 1<<10))
	stop()
	pipe.Close(d.grace)
	version, _, _ := strings.Cut(strings.TrimSpace(string(said)), " ")
	if err := checkVersion(version); err != nil {
		return err.Error()
	}
	return ""
}
