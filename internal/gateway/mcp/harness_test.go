package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// asServer makes the test binary an MCP server on its standard streams.
const asServer = "MCP_TEST_SERVER"

func TestMain(m *testing.M) {
	switch os.Getenv(asServer) {
	case "":
		os.Exit(m.Run())
	case "broken":
		fmt.Fprintln(os.Stderr, "starting\ncannot open the database")
		os.Exit(3)
	case "deaf": // neither answers nor ends with its input
		fmt.Fprintln(os.Stderr, "deaf")
		select {}
	}
	fmt.Println("ready to serve") // as programs do that were not told better
	s := sdk.NewServer(&sdk.Implementation{Name: "stdio", Version: "1"}, nil)
	tool(s, "where", nil, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		dir, _ := os.Getwd()
		left, _ := os.ReadDir(dir)
		return text(fmt.Sprintf("pid=%d files=%d secret=%s home=%q other=%q", os.Getpid(), len(left),
			os.Getenv("SECRET"), os.Getenv("HOME"), os.Getenv("MCP_TEST_OTHER"))), nil
	})
	tool(s, "die", nil, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) { os.Exit(1); return nil, nil })
	_ = s.Run(context.Background(), &sdk.StdioTransport{})
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

func tool(s *sdk.Server, name string, a *sdk.ToolAnnotations, f func(context.Context, json.RawMessage) (*sdk.CallToolResult, error)) {
	s.AddTool(&sdk.Tool{Name: name, Description: "does " + name, Annotations: a, InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"}}}`)},
		func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return f(ctx, req.Params.Arguments)
		})
}

// far is a server behind a relay. It can be stopped and started again at its address.
type far struct {
	t      *testing.T
	addr   string
	server *sdk.Server

	mu      sync.Mutex // guards what follows
	http    *http.Server
	headers http.Header // of the last request
	calls   []string
	block   chan struct{} // what slow waits for
	entered chan struct{} // slow tells that it has begun
}

func newFar(t *testing.T) *far {
	t.Helper()
	f := &far{t: t, addr: "127.0.0.1:0", block: make(chan struct{}), entered: make(chan struct{}, 8)}
	f.server = sdk.NewServer(&sdk.Implementation{Name: "far", Version: "9"}, &sdk.ServerOptions{Instructions: "be kind"})
	note := func(name string) func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		return func(_ context.Context, args json.RawMessage) (*sdk.CallToolResult, error) {
			f.mu.Lock()
			f.calls = append(f.calls, name+string(args))
			f.mu.Unlock()
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: name}}, StructuredContent: map[string]any{"tool": name}}, nil
		}
	}
	reads, changes := &sdk.ToolAnnotations{ReadOnlyHint: true}, &sdk.ToolAnnotations{Title: "Deletes"}
	tool(f.server, "flag-list", reads, note("flag-list"))
	tool(f.server, "feature-flag-delete", changes, note("feature-flag-delete"))
	tool(f.server, "experiment_update", nil, note("experiment_update"))
	tool(f.server, "plain", nil, note("plain"))
	tool(f.server, "exec", changes, note("exec"))
	tool(f.server, "fails", nil, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no such flag"}}}, nil
	})
	tool(f.server, "slow", nil, func(ctx context.Context, _ json.RawMessage) (*sdk.CallToolResult, error) {
		f.entered <- struct{}{}
		select {
		case <-f.block:
		case <-ctx.Done():
		}
		return text("late"), nil
	})
	tool(f.server, "huge", nil, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("x", maxAnswer+1)), nil
	})
	f.server.AddPrompt(&sdk.Prompt{Name: "greet"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "hello"}}}}, nil
	})
	f.server.AddResource(&sdk.Resource{Name: "r", URI: "file:///r"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "file:///r", Text: "content"}}}, nil
	})
	f.start()
	t.Cleanup(f.stop)
	return f
}

func (f *far) start() {
	f.t.Helper()
	l, err := net.Listen("tcp", f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	f.addr = l.Addr().String()
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return f.server }, nil)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.headers = r.Header.Clone()
		f.mu.Unlock()
		inner.ServeHTTP(w, r)
	})}
	f.mu.Lock()
	f.http = s
	f.mu.Unlock()
	go func() { _ = s.Serve(l) }()
}

// stop cuts every connection and forgets every session.
func (f *far) stop() {
	f.mu.Lock()
	s := f.http
	f.mu.Unlock()
	_ = s.Close()
	for ss := range f.server.Sessions() {
		go func() { _ = ss.Close() }()
	}
}

func (f *far) url() string { return "http://" + f.addr + "/mcp" }

func (f *far) called() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

// run is a run that remembers.
type run struct {
	mu        sync.Mutex
	progress  []string
	finished  []string
	artifacts map[string]string
	notices   []string
}

func (r *run) Progress(_ context.Context, step, message string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = append(r.progress, step+":"+message)
	return nil
}

func (r *run) Artifact(_ context.Context, a Artifact, from io.Reader) (string, error) {
	if a.Name == "full.disk" {
		return "", errors.New("write /secret/place: no space")
	}
	n := &bytes.Buffer{}
	if _, err := io.Copy(n, from); err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.artifacts == nil {
		r.artifacts = map[string]string{}
	}
	r.artifacts[a.Name] = a.MediaType + "|" + cut(n.String(), 100)
	return "kept as " + a.Name, nil
}

func (r *run) Finish(_ context.Context, status, summary string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished = append(r.finished, status+":"+summary)
	return nil
}

func (r *run) notice(level, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notices = append(r.notices, level+": "+text)
}

const good = "insx_good"

func config(r *run) Config {
	return Config{
		Run: task.NewID(), Do: r, Notice: r.notice,
		CheckToken: func(_ context.Context, t secret.String) error {
			if t.Reveal() != good {
				return errors.New("wrong")
			}
			return nil
		},
	}
}

func connected(t *testing.T, cfg Config) *Hub {
	t.Helper()
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	if _, err := h.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

// client is the HTTP client of a sandbox: every connection is a stream of the link.
func client(t *testing.T, h *Hub, token string) *http.Client {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	pool := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, agent := net.Pipe()
		served.Go(func() { _ = h.ServeConn(ctx, near) })
		return agent, nil
	}}
	t.Cleanup(func() { pool.CloseIdleConnections(); cancel(); served.Wait() })
	return &http.Client{Transport: withToken{pool, token}}
}

type withToken struct {
	http.RoundTripper

	token string
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.RoundTripper.RoundTrip(r)
}

// agent connects as an agent does to one server of the hub.
func agent(t *testing.T, h *Hub, name string, opts *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, opts).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: "http://127.0.0.1:47823/" + name, HTTPClient: client(t, h, good)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// use calls a tool and returns its text and whether it is an error.
func use(t *testing.T, cs *sdk.ClientSession, name string, args any) (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var b strings.Builder
	for _, c := range res.Content {
		if tc, ok := c.(*sdk.TextContent); ok {
			b.WriteString(tc.Text)
		}
	}
	return b.String(), res.IsError
}

func names(t *testing.T, cs *sdk.ClientSession) []string {
	t.Helper()
	var out []string
	for tl, err := range cs.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, tl.Name)
	}
	return out
}
