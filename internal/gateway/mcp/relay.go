package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/Insights/insightscli/internal/task"
)

// Bounds of a relay.
const (
	callTime        = 10 * time.Minute // one call, without the time that people take to answer
	listTime        = 30 * time.Second // a list, a prompt
	maxItems        = 2000             // of one list
	maxInstructions = 32 << 10
)

// toolName is what names of tools look like in every agent.
var toolName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_./-]{1,128}$`)
})

// relay is a server for the agent whose answers are those of another one. It registers
// nothing with the SDK, whose registration panics on schemas that it does not like:
// every method is answered before the SDK would look for a tool or a prompt.
type relay struct {
	hub   *Hub
	up    *upstream
	guard *guard

	mu    sync.Mutex           // guards tools
	tools map[string]*sdk.Tool // as last listed; nil: not yet
}

// marker is what is registered and removed to make the SDK tell its sessions that a list
// has changed. No list ever holds it.
const marker = "insightscli-changed"

// connect opens the session and returns the server for the agent.
func (r *relay) connect(ctx context.Context) (*sdk.Server, error) {
	var server *sdk.Server
	ready := make(chan struct{})
	r.listen(func(tell func(*sdk.Server)) {
		select {
		case <-ready:
			tell(server)
		default: // nobody has seen a list yet
		}
	})
	s, err := r.up.session(ctx)
	if err != nil {
		return nil, err
	}
	init := s.InitializeResult()
	caps := &sdk.ServerCapabilities{}
	if c := init.Capabilities; c != nil {
		if c.Tools != nil {
			caps.Tools = &sdk.ToolCapabilities{ListChanged: true}
		}
		if c.Prompts != nil {
			caps.Prompts = &sdk.PromptCapabilities{ListChanged: true}
		}
		if c.Resources != nil {
			caps.Resources = &sdk.ResourceCapabilities{ListChanged: true}
		}
	}
	server = sdk.NewServer(&sdk.Implementation{Name: r.up.name, Version: "1"}, &sdk.ServerOptions{
		Instructions: cut(init.Instructions, maxInstructions), Capabilities: caps,
	})
	server.AddReceivingMiddleware(r.middleware)
	close(ready)
	return server, nil
}

// listen passes on that a list of the server has changed.
func (r *relay) listen(changed func(tell func(*sdk.Server))) {
	r.up.options.ToolListChangedHandler = func(context.Context, *sdk.ToolListChangedRequest) {
		r.mu.Lock()
		r.tools = nil
		r.mu.Unlock()
		changed(func(s *sdk.Server) {
			s.AddTool(&sdk.Tool{Name: marker, InputSchema: map[string]any{"type": "object"}}, nil)
			s.RemoveTools(marker)
		})
	}
	r.up.options.PromptListChangedHandler = func(context.Context, *sdk.PromptListChangedRequest) {
		changed(func(s *sdk.Server) {
			s.AddPrompt(&sdk.Prompt{Name: marker}, nil)
			s.RemovePrompts(marker)
		})
	}
	r.up.options.ResourceListChangedHandler = func(context.Context, *sdk.ResourceListChangedRequest) {
		changed(func(s *sdk.Server) {
			s.AddResource(&sdk.Resource{Name: marker, URI: marker + ":/"}, nil)
			s.RemoveResources(marker + ":/")
		})
	}
}

// middleware answers what a relay answers. The rest is between the agent and the SDK.
func (r *relay) middleware(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch req := req.(type) {
		case *sdk.CallToolRequest:
			return r.call(ctx, req)
		case *sdk.ListToolsRequest:
			tools, err := r.list(ctx)
			return &sdk.ListToolsResult{Tools: tools, Cacheable: uncached()}, err
		case *sdk.ListPromptsRequest, *sdk.GetPromptRequest, *sdk.ListResourcesRequest, *sdk.ListResourceTemplatesRequest, *sdk.ReadResourceRequest:
			ctx, cancel := r.hub.bound(ctx, listTime)
			defer cancel()
			return r.read(ctx, req)
		}
		return next(ctx, method, req)
	}
}

// uncached says that an answer is good for this moment and this agent.
func uncached() sdk.Cacheable { return sdk.Cacheable{CacheScope: "private"} }

// read answers what changes nothing.
func (r *relay) read(ctx context.Context, req sdk.Request) (res sdk.Result, err error) {
	err = r.up.do(ctx, true, func(ctx context.Context, cs *sdk.ClientSession) error {
		switch req := req.(type) {
		case *sdk.ListPromptsRequest:
			list, err := collect(cs.Prompts(ctx, nil), func(p *sdk.Prompt) bool { return p.Name != "" })
			res = &sdk.ListPromptsResult{Prompts: list, Cacheable: uncached()}
			return err
		case *sdk.ListResourcesRequest:
			list, err := collect(cs.Resources(ctx, nil), func(r *sdk.Resource) bool { return r.URI != "" })
			res = &sdk.ListResourcesResult{Resources: list, Cacheable: uncached()}
			return err
		case *sdk.ListResourceTemplatesRequest:
			list, err := collect(cs.ResourceTemplates(ctx, nil), func(t *sdk.ResourceTemplate) bool { return t.URITemplate != "" })
			res = &sdk.ListResourceTemplatesResult{ResourceTemplates: list, Cacheable: uncached()}
			return err
		case *sdk.GetPromptRequest:
			got, err := cs.GetPrompt(ctx, &sdk.GetPromptParams{Name: req.Params.Name, Arguments: req.Params.Arguments})
			if err == nil {
				res = &sdk.GetPromptResult{Meta: got.Meta, Description: got.Description, Messages: got.Messages}
			}
			return err
		case *sdk.ReadResourceRequest:
			got, err := cs.ReadResource(ctx, &sdk.ReadResourceParams{URI: req.Params.URI})
			if err == nil {
				res = &sdk.ReadResourceResult{Meta: got.Meta, Contents: got.Contents, Cacheable: uncached()}
			}
			return err
		}
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}
	})
	return res, err
}

// collect gathers the pages of a list, without what no agent could use.
func collect[T any](pages iter.Seq2[T, error], usable func(T) bool) ([]T, error) {
	list := []T{}
	seen := 0
	for item, err := range pages {
		if err != nil {
			return nil, err
		}
		if seen++; seen > maxItems {
			break // a server without end
		}
		if usable(item) {
			list = append(list, item)
		}
	}
	return list, nil
}

// list returns the tools that the agent may know of. A server that does not answer now
// has the tools that it had.
func (r *relay) list(ctx context.Context) ([]*sdk.Tool, error) {
	ctx, cancel := r.hub.bound(ctx, listTime)
	defer cancel()
	var all []*sdk.Tool
	err := r.up.do(ctx, true, func(ctx context.Context, cs *sdk.ClientSession) (err error) {
		all, err = collect(cs.Tools(ctx, nil), func(t *sdk.Tool) bool { return toolName().MatchString(t.Name) })
		return err
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if r.tools == nil {
			return nil, err
		}
		for _, t := range r.tools {
			all = append(all, t)
		}
	} else {
		r.tools = make(map[string]*sdk.Tool, len(all))
		for _, t := range all {
			r.tools[t.Name] = t
		}
	}
	shown := []*sdk.Tool{}
	for _, t := range all {
		if r.guard.listed(t) {
			shown = append(shown, t)
		}
	}
	return shown, nil
}

// tool returns what the server says about one of its tools.
func (r *relay) tool(ctx context.Context, name string) (*sdk.Tool, error) {
	known := func() *sdk.Tool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.tools[name]
	}
	if t := known(); t != nil {
		return t, nil
	}
	if _, err := r.list(ctx); err != nil {
		return nil, err
	}
	if t := known(); t != nil {
		return t, nil
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", cut(name, maxName))}
}

// call makes one call of the agent's.
func (r *relay) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	t, err := r.tool(ctx, req.Params.Name)
	if err != nil {
		return failed(ctx, err)
	}
	args := rawArgs(req.Params.Arguments)
	if refused, err := r.leave(ctx, t, args); err != nil {
		return nil, err
	} else if refused != "" {
		return refusal(refused), nil
	}
	ctx, cancel := r.hub.bound(ctx, callTime)
	defer cancel()
	params := &sdk.CallToolParams{Name: t.Name, Arguments: args}
	if token := req.Params.GetProgressToken(); token != nil {
		defer r.progress(ctx, req.Session, token, params)()
	}
	again := t.Annotations != nil && t.Annotations.ReadOnlyHint
	var res *sdk.CallToolResult
	err = r.up.do(ctx, again, func(ctx context.Context, cs *sdk.ClientSession) (err error) {
		res, err = cs.CallTool(ctx, params)
		return err
	})
	if err != nil {
		return failed(ctx, err)
	}
	return &sdk.CallToolResult{Meta: res.Meta, Content: res.Content, StructuredContent: res.StructuredContent, IsError: res.IsError}, nil
}

// leave is the guard's decision, for which people may take their time.
func (r *relay) leave(ctx context.Context, t *sdk.Tool, args json.RawMessage) (refused string, err error) {
	ctx, cancel := r.hub.bound(ctx, 0)
	defer cancel()
	return r.guard.check(ctx, t, args)
}

// failed turns an error into what the model reads, except for what the server or the
// agent itself said.
func failed(ctx context.Context, err error) (*sdk.CallToolResult, error) {
	if answer := answerIn(err); answer != nil {
		return nil, answer
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	return refusal(err.Error()), nil
}

// progress has the server's progress told to the agent under the agent's own token. The
// function that it returns ends that.
func (r *relay) progress(ctx context.Context, to *sdk.ServerSession, token any, params *sdk.CallToolParams) (end func()) {
	ours := string(task.NewID())
	params.SetProgressToken(ours)
	r.up.progress.Store(ours, func(p *sdk.ProgressNotificationParams) {
		_ = to.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: token, Message: cut(p.Message, maxMessage), Progress: p.Progress, Total: p.Total,
		})
	})
	return func() { r.up.progress.Delete(ours) }
}
