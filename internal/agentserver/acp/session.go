package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/link/wire"
)

// codeLogin is the protocol's error for an agent that nobody has logged in to.
const codeLogin = -32000

// initialized is what is read of the answer to initialize.
type initialized struct {
	Version      int `json:"protocolVersion"`
	Capabilities struct {
		Load bool `json:"loadSession"`
		MCP  struct {
			HTTP bool `json:"http"`
		} `json:"mcpCapabilities"`
	} `json:"agentCapabilities"`
	Auth []struct {
		ID string `json:"id"`
	} `json:"authMethods"`
}

// open makes the agent's session: that of before if there is one and it can be had, else
// a new one. It returns its id.
func (d *driver) open(ctx context.Context, a *agent, before string) (string, error) {
	info, err := ask[initialized](ctx, a, sdk.AgentMethodInitialize, sdk.InitializeRequest{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		ClientInfo:      &sdk.Implementation{Name: "insightscli", Version: build.Get().Version},
	})
	if err != nil {
		return "", fmt.Errorf("it does not speak the Agent Client Protocol: %w", a.explain(err))
	}
	if info.Version != sdk.ProtocolVersionNumber {
		return "", fmt.Errorf("it speaks version %d of the Agent Client Protocol, and %d is known here", info.Version, sdk.ProtocolVersionNumber)
	}
	servers, err := d.servers(ctx, info.Capabilities.MCP.HTTP)
	if err != nil {
		return "", err
	}
	if before != "" {
		offer, err := d.load(ctx, a, info.Capabilities.Load, before, servers)
		if err == nil {
			return before, d.choose(ctx, a, before, offer)
		}
		if ctx.Err() != nil || a.lost() {
			return "", err
		}
		d.notice(ctx, "warn", fmt.Sprintf("the agent was started again and knows nothing of what was said before: %v", err))
	}
	offer, err := d.create(ctx, a, info, servers)
	if err != nil {
		return "", err
	}
	if offer.Session == "" {
		return "", errors.New("its new session has no id")
	}
	return offer.Session, d.choose(ctx, a, offer.Session, offer)
}

// load takes up a session. What the agent repeats of it is in the journal already.
func (d *driver) load(ctx context.Context, a *agent, can bool, id string, servers []sdk.McpServer) (offered, error) {
	if !can {
		return offered{}, errors.New("it cannot load sessions")
	}
	a.muted.Store(true)
	defer a.muted.Store(false)
	offer, err := ask[offered](ctx, a, sdk.AgentMethodSessionLoad, sdk.LoadSessionRequest{
		SessionId: sdk.SessionId(id), Cwd: d.start.Dir, McpServers: servers,
	})
	if err != nil {
		return offered{}, a.explain(err)
	}
	return offer, nil
}

// create makes a new session. An agent that wants a login is offered the key that is in
// its environment; nobody could do more in a sandbox.
func (d *driver) create(ctx context.Context, a *agent, info initialized, servers []sdk.McpServer) (offered, error) {
	request := sdk.NewSessionRequest{Cwd: d.start.Dir, McpServers: servers}
	offer, err := ask[offered](ctx, a, sdk.AgentMethodSessionNew, request)
	if err == nil || !wantsLogin(err) {
		return offer, a.explain(err)
	}
	var methods []string
	for _, method := range info.Auth {
		methods = append(methods, method.ID)
		if !strings.Contains(strings.ReplaceAll(strings.ToLower(method.ID), "_", "-"), "api-key") {
			continue
		}
		_, err := ask[json.RawMessage](ctx, a, sdk.AgentMethodAuthenticate, map[string]string{"methodId": method.ID})
		if err != nil {
			continue
		}
		if offer, err = ask[offered](ctx, a, sdk.AgentMethodSessionNew, request); err == nil || !wantsLogin(err) {
			return offer, a.explain(err)
		}
	}
	return offered{}, fmt.Errorf("it wants a login (it knows: %s), and there is nobody in a sandbox who could log in; "+
		"give it its key in its environment", strings.Join(methods, ", "))
}

func wantsLogin(err error) bool {
	var answer *sdk.RequestError
	return errors.As(err, &answer) && answer.Code == codeLogin
}

// servers are the MCP servers of the run, for an agent that can reach them.
func (d *driver) servers(ctx context.Context, http bool) ([]sdk.McpServer, error) {
	servers := []sdk.McpServer{} // null is refused
	var out []string
	for _, s := range d.start.MCP {
		switch {
		case http:
			servers = append(servers, sdk.McpServer{Http: &sdk.McpServerHttpInline{
				Type: "http", Name: s.Name, Url: s.URL,
				Headers: []sdk.HttpHeader{{Name: "Authorization", Value: "Bearer " + d.env("INSIGHTS_PERSONAL_API_KEY")}},
			}})
		case s.Required:
			return nil, fmt.Errorf("it knows no MCP servers over HTTP, and %q is required", s.Name)
		default:
			out = append(out, s.Name)
		}
	}
	if len(out) > 0 {
		d.notice(ctx, "warn", "the agent knows no MCP servers over HTTP and works without "+strings.Join(out, ", "))
	}
	return servers, nil
}

// prompt does one turn and says how it ended.
func (d *driver) prompt(ctx context.Context, a *agent, text string) wire.Outcome {
	stop := context.AfterFunc(ctx, func() { a.close(d.times.grace) }) // the session is over
	defer stop()
	d.mu.Lock()
	session := d.session
	d.mu.Unlock()
	answer, err := ask[struct {
		StopReason string `json:"stopReason"`
	}](ctx, a, sdk.AgentMethodSessionPrompt, sdk.PromptRequest{
		SessionId: sdk.SessionId(session), Prompt: []sdk.ContentBlock{sdk.TextBlock(text)},
	})
	switch {
	case wantsLogin(err):
		return failed("the agent wants a login: %v", inWords(err))
	case err != nil:
		reason := a.explain(err)
		if a.lost() {
			d.host.Log.Warn("the agent is lost", "agent", d.argv[0], "stderr", a.pipe.Tail())
			return failed("the agent is lost: %v", reason)
		}
		return failed("%v", reason)
	case answer.StopReason == "":
		return failed("the agent does not say how its turn ended")
	}
	return wire.Outcome{StopReason: answer.StopReason}
}

func failed(format string, args ...any) wire.Outcome {
	return wire.Outcome{StopReason: agentserver.StopError, Error: fmt.Sprintf(format, args...)}
}

// withSchema asks for a reply of a schema, for which the protocol has no field.
func withSchema(text string, schema json.RawMessage) string {
	if len(schema) == 0 {
		return text
	}
	return text + "\n\nEnd your work with a message that is one JSON value and nothing else: no words around it. " +
		"It must be valid under this JSON Schema:\n\n```json\n" + string(schema) + "\n```\n"
}

// environ is the environment of the agent's program: that of every program, and what
// keeps the known agents from calling home or opening a browser, and shows the adapters
// of other agents which program to use.
func (d *driver) environ() []string {
	env := slices.Clone(d.host.Env)
	add := func(name, value string) {
		if d.env(name) == "" {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range []string{
		"NO_BROWSER", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_DEFAULT_PLUGINS",
	} {
		add(name, "1")
	}
	for variable, program := range map[string]string{"CLAUDE_CODE_EXECUTABLE": "claude", "CODEX_PATH": "codex"} {
		if found := d.host.Program(program, d.start.PreferMounted); found != program {
			add(variable, found)
		}
	}
	return env
}

// env is the value of a variable of the agent.
func (d *driver) env(name string) string {
	value := ""
	for _, kv := range d.host.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

func (d *driver) notice(ctx context.Context, level, text string) {
	if err := d.host.Notice(ctx, level, text); err != nil {
		d.host.Log.Warn("notice", "text", text, "err", err)
	}
}
