package cli

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/gateway/api"
	"github.com/Insights/insightscli/internal/gateway/llm"
	"github.com/Insights/insightscli/internal/gateway/mcp"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/platform"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/telemetry"
)

// scopeLLM is the scope that opens the gateway to models.
const scopeLLM = "llm_gateway:read"

// services are what this process offers to the sandboxes of the runs that it carries
// out, and to outside clients that hold the token of any live run.
type services struct {
	*state
	secrets *runner.Secrets
	gateway *llm.Gateway
	api     *api.Proxy
	hubs    mcp.Mux
	// teller is for requests to receivers of telemetry, mirrorTo takes the lines of the log
	// mirror (nil: nobody), and grace is how long the end of a run waits for them.
	teller   *http.Client
	mirrorTo io.Writer
	grace    time.Duration

	mu   sync.Mutex // guards live
	live map[task.ID]*served
}

// served is one run that this process carries out.
type served struct {
	spec     task.Spec
	reporter steps.Reporter
	hub      *mcp.Hub // nil for a plain command
	// closeGate ends the network of a sandbox that has none of its own; nil: it has.
	closeGate func()
}

// newServices makes the services of this process. What it logs is not reached by the
// cancellation of ctx.
func (s *state) newServices(ctx context.Context, secrets *runner.Secrets) (*services, error) {
	v := &services{state: s, secrets: secrets, live: map[task.ID]*served{}}
	proxy, err := api.New(s.config.APIURL)
	if err != nil {
		return nil, errs.New("cli.services", errs.Config, "correct it", "%w", err)
	}
	v.api = proxy
	ctx = context.WithoutCancel(ctx)
	v.gateway = llm.New(llm.Config{
		Check: v.checkLLM, Route: v.route, Spent: v.spent, Account: v.account, Notify: v.notify,
		Log: func(r llm.Request) { v.logRequest(ctx, r) }, Proxy: v.proxy,
	})
	v.hubs.Lookup = v.hubOf
	v.teller = telemetry.NewClient(v.proxy)
	return v, nil
}

// open makes the services of one run; see steps.Services.
func (v *services) open(ctx context.Context, spec task.Spec, r steps.Reporter) (steps.Services, error) {
	run := &served{spec: spec, reporter: r}
	out := steps.Services{
		Handlers: map[string]link.Handler{
			wire.ServiceLLM: func(ctx context.Context, conn net.Conn) error { return v.gateway.ServeConn(ctx, conn, spec.Run) },
			wire.ServiceAPI: v.api.ServeConn,
		},
		Close: func() { v.forget(spec.Run) },
	}
	if captured(spec) {
		gate, closeGate, err := v.newGate(spec, r)
		if err != nil {
			return steps.Services{}, err
		}
		run.closeGate = closeGate
		out.Handlers[wire.ServiceEgress] = gate.ServeConn
	}
	if all := repo.Upstreams(spec.Repos); len(all) > 0 {
		out.Handlers[wire.ServiceGit] = v.gitGateway(spec.Run, all).ServeConn
	}
	if spec.Agent.Drives() {
		hub, err := v.newHub(ctx, spec, r)
		if err != nil {
			run.close()
			return steps.Services{}, err
		}
		run.hub = hub
		out.Handlers[wire.ServiceMCP] = hub.ServeConn
		out.MCP = hub.Connect
		out.Follow = v.followCI(spec)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.live[spec.Run] = run
	return out, nil
}

func (v *services) forget(run task.ID) {
	v.mu.Lock()
	s := v.live[run]
	delete(v.live, run)
	v.mu.Unlock()
	if s != nil {
		s.close()
	}
}

func (s *served) close() {
	if s.hub != nil {
		s.hub.Close()
	}
	if s.closeGate != nil {
		s.closeGate()
	}
}

func (v *services) find(run task.ID) *served {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.live[run]
}

// check returns what a token allows; it must be valid and hold the scope, if one is named.
func (v *services) check(ctx context.Context, token secret.String, scope string) (platform.Grant, error) {
	g, err := v.tokens.Check(ctx, token)
	if err != nil {
		return g, err
	}
	if scope != "" && !g.Allows(scope) {
		return g, errs.New("cli.services", errs.Auth, "", "the access token has no scope %s", scope)
	}
	return g, nil
}

func (v *services) checkLLM(ctx context.Context, token secret.String) (task.ID, error) {
	g, err := v.check(ctx, token, scopeLLM)
	return g.Run, err
}

// route says where the requests of a run go, with the keys that were sealed for it.
func (v *services) route(ctx context.Context, run task.ID) (llm.Route, error) {
	spec, err := v.specOf(ctx, run)
	if err != nil {
		return llm.Route{}, err
	}
	values, err := v.secrets.All(ctx, run)
	if err != nil {
		return llm.Route{}, err
	}
	prices, err := llm.ParsePrices(spec.LLM.Prices)
	if err != nil {
		return llm.Route{}, err
	}
	return llm.Route{
		Anthropic: llm.Upstream{URL: spec.LLM.AnthropicURL, Key: values[secretAnthropic]},
		OpenAI:    llm.Upstream{URL: spec.LLM.OpenAIURL, Key: values[secretOpenAI]},
		Forward:   spec.LLM.ForwardURL,
		Budget:    llm.Budget{MaxCost: spec.LLM.MaxCost, MaxTokens: spec.LLM.MaxTokens},
		Prices:    prices,
	}, nil
}

// spent is what a run has used.
func (v *services) spent(ctx context.Context, run task.ID) (task.Tokens, error) {
	total, _, err := v.store.Usage(ctx, run)
	return total, err
}

// account records what one request used, and tells the people of the run.
func (v *services) account(ctx context.Context, run task.ID, model string, used task.Tokens) (task.Tokens, error) {
	total, err := v.store.AddUsage(ctx, run, model, used)
	if s := v.find(run); s != nil && err == nil {
		s.reporter.Tell(task.KindUsage, task.Usage{Model: model, Request: used, Run: total})
	}
	return total, err
}

// specOf is the Spec of a run, which may be another process's.
func (v *services) specOf(ctx context.Context, run task.ID) (task.Spec, error) {
	if s := v.find(run); s != nil {
		return s.spec, nil
	}
	rec, err := v.store.Run(ctx, run)
	return rec.Spec, err
}

// notify tells the people of a run that is carried out here.
func (v *services) notify(run task.ID, level, message string) {
	if s := v.find(run); s != nil {
		s.reporter.Tell(task.KindNotice, task.Notice{Level: level, Message: message})
	}
}

// logRequest adds one line to the log of a run's requests to models, which has no content
// of theirs. It is a help for people: what cannot be written is lost.
func (v *services) logRequest(ctx context.Context, r llm.Request) {
	if r.Run == "" {
		return
	}
	spec, err := v.specOf(ctx, r.Run)
	if err != nil {
		return
	}
	line, err := json.Marshal(requestLine{
		At: time.Now().UTC(), Method: r.Method, Path: r.Path, Model: r.Model, Status: r.Status,
		Sent: r.Sent, Received: r.Received, FirstByteMs: r.FirstByte.Milliseconds(), TookMs: r.Took.Milliseconds(),
		Used: r.Used, Estimated: r.Estimated, Refused: r.Refused,
	})
	if err != nil {
		return
	}
	f, err := os.OpenFile(v.store.RequestLogPath(spec), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = f.Write(append(line, '\n'))
	_ = f.Close()
}

// requestLine is one request to a model as it is logged.
type requestLine struct {
	At          time.Time   `json:"timestamp"`
	Method      string      `json:"method"`
	Path        string      `json:"path"`
	Model       string      `json:"model,omitempty"`
	Status      int         `json:"status"`
	Sent        int64       `json:"request_bytes"`
	Received    int64       `json:"response_bytes"`
	FirstByteMs int64       `json:"first_byte_ms"`
	TookMs      int64       `json:"took_ms"`
	Used        task.Tokens `json:"usage"`
	Estimated   bool        `json:"estimated,omitempty"`
	Refused     string      `json:"refused,omitempty"`
}

// proxy is the proxy for requests to models, as the machine is set up.
func (v *services) proxy(r *http.Request) (*url.URL, error) {
	m := v.config.Machine
	return (&httpproxy.Config{HTTPProxy: m.HTTPProxy.Reveal(), HTTPSProxy: m.HTTPSProxy.Reveal(), NoProxy: m.NoProxy}).ProxyFunc()(r.URL)
}
