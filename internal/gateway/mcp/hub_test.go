package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// nobody is an address that nothing listens at.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return "http://" + l.Addr().String() + "/mcp"
}

func TestConfigurationIsChecked(t *testing.T) {
	ok := task.MCPServer{Name: "a", URL: "http://127.0.0.1:1/"}
	for name, change := range map[string]func(*Config){
		"a bad pattern":        func(c *Config) { c.Approve = "(" },
		"two of one name":      func(c *Config) { c.Servers = []task.MCPServer{ok, ok} },
		"required, unknown":    func(c *Config) { c.Require = []string{"b"} },
		"required, not chosen": func(c *Config) { c.Require = []string{Insights} },
		"a bad Insights URL":   func(c *Config) { c.Insights = &InsightsServer{URL: "localhost:8787"} },
		"a missing variable": func(c *Config) {
			c.Servers = []task.MCPServer{{Name: "a", URL: ok.URL, Headers: map[string]string{"K": "${V}"}}}
			c.Expand = func(string) (secret.String, error) { return secret.String{}, errors.New("V is not set") }
		},
	} {
		cfg := config(&run{})
		change(&cfg)
		if _, err := New(cfg); errs.KindOf(err) != errs.Config {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, s := range map[string]task.MCPServer{
		"no name":         {URL: "http://h/"},
		"upper case":      {Name: "A", URL: "http://h/"},
		"a path":          {Name: "../a", URL: "http://h/"},
		"two underscores": {Name: "a__b", URL: "http://h/"},
		"ours":            {Name: "sandbox", URL: "http://h/"},
		"nothing":         {Name: "a"},
		"both":            {Name: "a", URL: "http://h/", Command: []string{"x"}},
		"an empty word":   {Name: "a", Command: []string{""}},
		"no scheme":       {Name: "a", URL: "localhost:80/mcp"},
		"another scheme":  {Name: "a", URL: "ftp://h/"},
		"no host":         {Name: "a", URL: "http:///mcp"},
		"a password":      {Name: "a", URL: "http://u:p@h/"},
		"a bad header":    {Name: "a", URL: "http://h/", Headers: map[string]string{"a b": "v"}},
		"a bad variable":  {Name: "a", Command: []string{"x"}, Env: map[string]string{"A=B": "v"}},
	} {
		if err := Validate(s); errs.KindOf(err) != errs.Config || errs.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, s := range []task.MCPServer{
		{Name: "a_b-1", URL: "https://h/mcp?x=1", Headers: map[string]string{"X-Key": "v"}}, {Name: "a", Command: []string{"npx", "x"}},
	} {
		if err := Validate(s); err != nil {
			t.Error(err)
		}
	}
}

func TestConnectListsWhatThereIs(t *testing.T) {
	f := newFar(t)
	r := &run{}
	cfg := config(r)
	cfg.Insights, cfg.Require = insights(f), []string{"mine"}
	cfg.Servers = []task.MCPServer{{Name: "mine", URL: f.url()}, {Name: "gone", URL: nobody(t)}}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	got, err := h.Connect(t.Context())
	want := []wire.MCPServer{
		{Name: Insights, URL: "http://127.0.0.1:47823/insights"},
		{Name: Own, URL: "http://127.0.0.1:47823/sandbox"},
		{Name: "mine", URL: "http://127.0.0.1:47823/mine", Required: true},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if len(r.notices) != 1 || !strings.HasPrefix(r.notices[0], `warn: the MCP server "gone" is not connected`) {
		t.Errorf("%q", r.notices)
	}
}

func TestRequiredServerThatIsNotThere(t *testing.T) {
	cfg := config(&run{})
	cfg.Insights, cfg.Require = &InsightsServer{URL: nobody(t)}, []string{Insights}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Connect(t.Context())
	if errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), "insights") || !strings.Contains(errs.HintOf(err), "SANDBOX_MCP_URL") {
		t.Errorf("%v (%s)", err, errs.HintOf(err))
	}
}

func TestAbsentInsightsServerIsOneLine(t *testing.T) {
	r := &run{}
	cfg := config(r)
	url := nobody(t)
	cfg.Insights = &InsightsServer{URL: url, Default: true}
	connected(t, cfg)
	if want := []string{"warn: the Insights MCP server does not answer at " + url + "; its tools are unavailable"}; !slices.Equal(r.notices, want) {
		t.Errorf("%q", r.notices)
	}
}

// What answers is not an MCP server, or does not want us: neither hangs, and neither is
// followed to another host with our token.
func TestServersThatAreNone(t *testing.T) {
	var stolen string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen = r.Header.Get("Authorization") }))
	defer thief.Close()
	for name, handler := range map[string]http.HandlerFunc{
		"a web page": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"refused":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) },
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		},
		"endless": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for b := bytes.Repeat([]byte(" "), 1<<20); r.Context().Err() == nil; {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		},
	} {
		s := httptest.NewServer(handler)
		r := &run{}
		cfg := config(r)
		cfg.Insights = &InsightsServer{URL: s.URL, Token: secret.New("tok")}
		connected(t, cfg).Close()
		s.Close()
		if len(r.notices) != 1 {
			t.Errorf("%s: %q", name, r.notices)
		}
	}
	if stolen != "" {
		t.Errorf("the token went to another host: %q", stolen)
	}
}

// host.docker.internal is this machine, also for the host itself.
func TestNameOfTheHost(t *testing.T) {
	f := newFar(t)
	cfg := config(&run{})
	cfg.Insights = insights(f)
	cfg.Insights.URL = strings.Replace(f.url(), "127.0.0.1", "host.docker.internal", 1)
	if text, bad := use(t, agent(t, connected(t, cfg), Insights, nil), "plain", nil); bad {
		t.Error(text)
	}
}

func processes(t *testing.T, mode string) Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("MCP_TEST_OTHER", "of this process")
	cfg := config(&run{})
	cfg.Environ = []string{"HOME=/h"}
	cfg.Expand = func(v string) (secret.String, error) { return secret.New(strings.ReplaceAll(v, "${S}", "s3")), nil }
	cfg.Servers = []task.MCPServer{{Name: "local", Command: []string{self}, Env: map[string]string{asServer: mode, "SECRET": "${S}"}}}
	return cfg
}

// A server's process has its own variables and an empty directory, is started again
// after its death, and is gone with the hub.
func TestServerAsProcess(t *testing.T) {
	h := connected(t, processes(t, "good"))
	cs := agent(t, h, "local", nil)
	first, bad := use(t, cs, "where", nil)
	if bad || !strings.HasSuffix(first, `files=0 secret=s3 home="/h" other=""`) {
		t.Errorf("%q", first)
	}
	if text, bad := use(t, cs, "die", nil); !bad || !strings.Contains(text, `"local"`) {
		t.Errorf("%q", text)
	}
	second, bad := use(t, cs, "where", nil)
	if bad || second == first {
		t.Errorf("%q", second)
	}
	h.Close()
	var pid int
	if _, err := fmt.Sscanf(second, "pid=%d", &pid); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			t.Errorf("process %d is still there", pid)
		}
	}
}

func TestProcessThatEnds(t *testing.T) {
	cfg := processes(t, "broken")
	cfg.Require = []string{"local"}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "starting | cannot open the database") {
		t.Errorf("%v", err)
	}
}

func TestProgramThatIsMissing(t *testing.T) {
	cfg := config(&run{})
	cfg.Servers = []task.MCPServer{{Name: "x", Command: []string{"no-such-program-here"}}}
	cfg.Require = []string{"x"}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "no-such-program-here") {
		t.Errorf("%v", err)
	}
}

// A process that does not listen is given up when the caller gives up, and is ended.
func TestProcessThatDoesNotAnswer(t *testing.T) {
	h, err := New(processes(t, "deaf"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := h.Connect(ctx); err == nil {
		t.Error("connected")
	}
}

func post(t *testing.T, c *http.Client, url, body string, change func(*http.Request)) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if change != nil {
		change(req)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

func TestEveryRequestNeedsTheToken(t *testing.T) {
	h := connected(t, config(&run{}))
	for _, path := range []string{"/sandbox", "/other", "/"} {
		if got := post(t, client(t, h, "insx_wrong"), "http://127.0.0.1:47823"+path, hello, nil).StatusCode; got != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, got)
		}
	}
	c := client(t, h, good)
	if got := post(t, c, "http://127.0.0.1:47823/other", hello, nil).StatusCode; got != http.StatusNotFound {
		t.Errorf("another server: %d", got)
	}
	if got := post(t, c, "http://host.docker.internal/sandbox", hello, nil).StatusCode; got != http.StatusOK {
		t.Errorf("by another name: %d", got)
	}
	if got := post(t, c, "http://127.0.0.1:47823/sandbox", strings.Repeat(" ", maxBody+1)+hello, nil).StatusCode; got/100 != 4 {
		t.Errorf("a body that is too large: %d", got)
	}
}

// Claude asks for server/discover of 2026-07-28 first, Codex ends its sessions with
// DELETE; agents that are started again leave sessions behind.
func TestHabitsOfAgents(t *testing.T) {
	h := connected(t, config(&run{}))
	c := client(t, h, good)
	resp := post(t, c, "http://127.0.0.1:47823/sandbox", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		func(r *http.Request) {
			r.Header.Set("MCP-Protocol-Version", "2026-07-28")
			r.Header.Set("Mcp-Method", "server/discover")
		})
	if resp.StatusCode >= 500 || resp.Header.Get("Content-Type") == "" {
		t.Errorf("server/discover: %s", resp.Status)
	}
	resp = post(t, c, "http://127.0.0.1:47823/sandbox", hello, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://127.0.0.1:47823/sandbox", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id"))
	deleted, err := c.Do(req)
	if err != nil || deleted.StatusCode != http.StatusNoContent {
		t.Fatalf("DELETE: %v, %v", deleted, err)
	}
	_ = deleted.Body.Close()
	for range maxSessions + 5 {
		if got := post(t, c, "http://127.0.0.1:47823/sandbox", hello, nil); got.StatusCode != http.StatusOK {
			t.Fatal(got.Status)
		}
	}
	if cs := agent(t, h, Own, nil); len(names(t, cs)) != 3 {
		t.Errorf("%v", names(t, cs))
	}
}

func TestMux(t *testing.T) {
	f := newFar(t)
	cfg := config(&run{})
	cfg.Insights = insights(f)
	h := connected(t, cfg)
	s := httptest.NewServer(&Mux{Lookup: func(ctx context.Context, token secret.String) (*Hub, error) {
		return h, cfg.CheckToken(ctx, token)
	}})
	defer s.Close()
	c := &http.Client{Transport: withToken{http.DefaultTransport, good}}
	for _, tt := range []struct {
		path, host, origin string
		want               int
	}{
		{"/mcp", "", "", 200},
		{"/mcp/sandbox", "", "", 200},
		{"/sandbox", "", "", 200},
		{"/nothing", "", "", 404},
		{"/mcp", "host.docker.internal:8787", "", 200},
		{"/mcp", "localhost", "", 200},
		{"/mcp", "[::1]:8787", "", 200},
		{"/mcp", "evil.example", "", 403},
		{"/mcp", "127.0.0.1.evil.example", "", 403},
		{"/mcp", "10.0.0.1", "", 403},
		{"/mcp", "", "http://localhost", 403},
		{"/mcp", "", "null", 403},
	} {
		resp := post(t, c, s.URL+tt.path, hello, func(r *http.Request) {
			r.Host = tt.host
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
		})
		if resp.StatusCode != tt.want {
			t.Errorf("%+v: %s", tt, resp.Status)
		}
	}
	if got := post(t, http.DefaultClient, s.URL+"/mcp", hello, nil).StatusCode; got != 401 {
		t.Errorf("without a token: %d", got)
	}
	if got := post(t, &http.Client{Transport: withToken{http.DefaultTransport, "x"}}, s.URL+"/mcp", hello, nil).StatusCode; got != 401 {
		t.Errorf("with a wrong one: %d", got)
	}
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "a", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: s.URL + "/mcp", HTTPClient: c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cs.Close() }()
	if text, bad := use(t, cs, "plain", nil); bad {
		t.Error(text)
	}
}

// Nothing of a hub is left behind: not a goroutine, whatever was going on.
func TestNothingIsLeft(t *testing.T) {
	f := newFar(t)
	before := runtime.NumGoroutine()
	t.Run("a run", func(t *testing.T) {
		cfg := processes(t, "good")
		cfg.Insights = insights(f)
		h := connected(t, cfg)
		for _, name := range []string{Own, Insights, "local"} {
			names(t, agent(t, h, name, nil))
		}
		h.Close()
	})
	f.stop()
	deadline := time.Now().Add(30 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines before, %d after:\n%s", before, n, buf[:runtime.Stack(buf, true)])
	}
}

// The default address of the Insights server is also ours, with `start --serve mcp`: a
// relay that met itself there waited for itself for ever.
func TestARelayDoesNotMeetItself(t *testing.T) {
	var hub *Hub
	cfg := config(&run{})
	s := httptest.NewServer(&Mux{Lookup: func(ctx context.Context, token secret.String) (*Hub, error) {
		return hub, cfg.CheckToken(ctx, token)
	}})
	defer s.Close()
	cfg.Insights = &InsightsServer{URL: s.URL + "/mcp", Token: secret.New(good)}
	var said []string
	cfg.Notice = func(_, text string) { said = append(said, text) }
	var err error
	if hub, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	servers, err := hub.Connect(t.Context())
	if err != nil || len(servers) != 1 || servers[0].Name != Own || len(said) != 1 {
		t.Errorf("servers %v, told %q, %v", servers, said, err)
	}
}
