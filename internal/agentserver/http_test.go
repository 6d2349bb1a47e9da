//go:build unix

package agentserver_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link/wire"
)

// web is an outside client of a sandbox's HTTP surface, over the link.
type web struct {
	*sandbox
	key    *rsa.PrivateKey
	client *http.Client
	link   *agent.Client
}

func newWeb(t *testing.T) *web { return newWebWith(t, nil) }

func newWebWith(t *testing.T, secrets map[string]string) *web {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	w := &web{key: key}
	w.sandbox = newSandbox(t, func(b *wire.Boot) {
		b.JWTKey = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		b.JWTKeyID = "0123456789abcdef"
		for name, value := range secrets {
			b.Env[name], b.Secrets = value, append(b.Secrets, name)
		}
	})
	w.link = w.connect()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return w.link.Open(ctx, wire.ServiceHTTP)
	}}
	w.client = &http.Client{Transport: transport, Timeout: hangs}
	t.Cleanup(transport.CloseIdleConnections)
	return w
}

// token is a good token with what change does to it.
func (w *web) token(change func(jwt.MapClaims)) string {
	w.t.Helper()
	claims := jwt.MapClaims{"aud": "insights:sandbox_connection", "run_id": "run-1", "exp": time.Now().Add(time.Hour).Unix()}
	if change != nil {
		change(claims)
	}
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = "0123456789abcdef"
	return w.sign(token, w.key)
}

func (w *web) sign(token *jwt.Token, key any) string {
	w.t.Helper()
	s, err := token.SignedString(key)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *web) do(method, path, token, body string) (int, string) {
	w.t.Helper()
	resp := w.open(method, path, token, body, "")
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b))
}

func (w *web) open(method, path, token, body, lastID string) *http.Response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, "http://sandbox"+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

func TestHTTPHealthNeedsNoToken(t *testing.T) {
	status, body := newWeb(t).do("GET", "/health", "", "")
	if status != 200 || !strings.Contains(body, `"hasSession":false`) {
		t.Error(status, body)
	}
}

func TestHTTPUnknownPath(t *testing.T) {
	w := newWeb(t)
	for _, path := range []string{"/", "/command", "/healthz"} { // GET /command is none
		if status, body := w.do("GET", path, w.token(nil), ""); status != 404 {
			t.Error(path, status, body)
		}
	}
}

func TestHTTPTokens(t *testing.T) {
	w := newWeb(t)
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	forged := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
		"aud": "insights:sandbox_connection", "run_id": "run-1", "exp": time.Now().Add(time.Hour).Unix(),
	})
	tests := []struct {
		name, token string
		status      int
		code        string
	}{
		{"none", "", 401, "invalid_token"},
		{"noise", "abc", 401, "invalid_token"},
		{"expired", w.token(func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Hour).Unix() }), 401, "expired"},
		{"endless", w.token(func(c jwt.MapClaims) { delete(c, "exp") }), 401, "invalid_token"},
		{"other audience", w.token(func(c jwt.MapClaims) { c["aud"] = "insights:sandbox_event_ingest" }), 401, "invalid_token"},
		{"other key", w.sign(forged, stranger), 401, "invalid_signature"},
		{"symmetric", w.sign(jwt.NewWithClaims(jwt.SigningMethodHS256, forged.Claims), []byte("secret")), 401, "invalid_signature"},
		{"unsigned", w.sign(jwt.NewWithClaims(jwt.SigningMethodNone, forged.Claims), jwt.UnsafeAllowNoneSignatureType), 401, "invalid_signature"},
		{"other run", w.token(func(c jwt.MapClaims) { c["run_id"] = "run-2" }), 403, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, body := w.do("GET", "/events", tt.token, "")
			var problem struct{ Error, Code string }
			if err := json.Unmarshal([]byte(body), &problem); err != nil {
				t.Fatal(err)
			}
			if status != tt.status || problem.Code != tt.code || problem.Error == "" {
				t.Errorf("%d %+v", status, problem)
			}
		})
	}
	if status, body := w.do("POST", "/command", tests[len(tests)-1].token, "{}"); status != 400 || !strings.Contains(body, "No active session for this run") {
		t.Error(status, body)
	}
}

func TestHTTPCommand(t *testing.T) {
	w := newWeb(t)
	token := w.token(nil)
	call := func(body string) (int, string) { return w.do("POST", "/command", token, body) }
	if status, body := call(`{"jsonrpc":"2.0","id":1,"method":"cancel"}`); status != 400 || !strings.Contains(body, "No active session for this run") {
		t.Error(status, body)
	}
	w.start(w.link, "sleep 1000")
	tests := []struct {
		name, body string
		status     int
		want       string
	}{
		{"malformed", `{"jsonrpc"`, 400, "Invalid JSON-RPC request"},
		{"no version", `{"id":1,"method":"cancel"}`, 400, "Invalid JSON-RPC request"},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"dance"}`, 200, "-32601"},
		{"not for outsiders", `{"jsonrpc":"2.0","id":1,"method":"shutdown"}`, 200, "-32601"},
		{"no content", `{"jsonrpc":"2.0","id":1,"method":"user_message","params":{}}`, 200, "-32602"},
		{"bad parameters", `{"jsonrpc":"2.0","id":1,"method":"user_message","params":[]}`, 200, "-32602"},
		{"a command takes no messages", `{"jsonrpc":"2.0","id":"a","method":"insights/user_message","params":{"content":[{"type":"text","text":"hi"}]}}`, 200, "-32000"},
		{"no permission was asked", `{"jsonrpc":"2.0","id":1,"method":"permission_response","params":{"requestId":"r","optionId":"o"}}`, 200, "-32000"},
		{"busy", `{"jsonrpc":"2.0","id":1,"method":"refresh_session","params":{}}`, 200, "-32002"},
		{"cancel", `{"jsonrpc":"2.0","id":"x","method":"_insights/cancel"}`, 200, `{"jsonrpc":"2.0","id":"x","result":{"cancelled":true}}`},
	}
	for _, tt := range tests {
		if status, body := call(tt.body); status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s", tt.name, status, body)
		}
	}
}

// nextData returns the next event's id and data.
func nextData(t *testing.T, r *bufio.Reader) (id, data string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		line = strings.TrimSpace(line)
		if v, ok := strings.CutPrefix(line, "id: "); ok {
			id = v
		}
		if v, ok := strings.CutPrefix(line, "data: "); ok {
			data = v
		}
		if line == "" && data != "" {
			return id, data
		}
	}
}

func TestEventsBacklogThenLive(t *testing.T) {
	w := newWeb(t)
	w.start(w.link, "echo one")
	w.follow(w.link, &record{}) // the host has taken and acknowledged all of it
	resp := w.open("GET", "/events", w.token(nil), "", "")
	defer func() { _ = resp.Body.Close() }()
	r := bufio.NewReader(resp.Body)
	if id, data := nextData(t, r); id != "1" || !strings.Contains(data, `"method":"_insights/sandbox_output","params":{"stdout":"one\n","lines":1}`) {
		t.Error(id, data)
	}
	if id, data := nextData(t, r); id != "2" || !strings.Contains(data, `"method":"_insights/task_complete"`) {
		t.Error(id, data)
	}
	if _, data := nextData(t, r); data != `{"run_id":"run-1","type":"connected"}` {
		t.Error(data)
	}

	again := w.open("GET", "/events", w.token(nil), "", "1")
	defer func() { _ = again.Body.Close() }()
	if id, _ := nextData(t, bufio.NewReader(again.Body)); id != "2" {
		t.Errorf("after event 1 comes %s", id)
	}
	// The newer client has replaced the older one, whose stream ends.
	if _, err := io.ReadAll(r); err != nil {
		t.Error(err)
	}
}

// TestEventsAreMasked: outside clients see no secret, however output is cut into
// frames and wherever a client begins.
func TestEventsAreMasked(t *testing.T) {
	const canary = "s3cr3t-canary-value"
	w := newWebWith(t, map[string]string{"PW": canary})
	w.start(w.link, `printf 's3cr3t-'; sleep 0.1; printf 'canary'; sleep 0.1; echo "-value after"
printf "%s" "$PW" >&2; sleep 0.1; echo "ghp_0123456789abcdefghij0123456789abcdef"; printf 's3cr3t-ca'`)
	w.follow(w.link, &record{})
	for _, last := range []string{"", "1", "2", "3", "4", "5"} {
		resp := w.open("GET", "/events", w.token(nil), "", last)
		var told strings.Builder
		for r := bufio.NewReader(resp.Body); !strings.Contains(told.String(), `"connected"`); {
			_, data := nextData(t, r)
			told.WriteString(data + "\n")
		}
		_ = resp.Body.Close()
		for _, part := range []string{"s3cr3t-canary", "canary-value", "-value", "ghp_01234"} {
			if strings.Contains(told.String(), part) {
				t.Errorf("after %q a client sees %q:\n%s", last, part, told.String())
			}
		}
		if last == "" && (!strings.Contains(told.String(), "after") || !strings.Contains(told.String(), `"stdout":"s3cr3t-ca"`)) {
			t.Errorf("what is no secret is missing:\n%s", told.String())
		}
	}
}

func TestFailureIsMaskedForOutsideClients(t *testing.T) {
	const canary = "s3cr3t-canary-value"
	w := newWebWith(t, map[string]string{"PW": canary})
	if err := w.link.Start(t.Context(), wire.Start{Agent: "exec", Command: []string{"/no/such/" + canary}}); err != nil {
		t.Fatal(err)
	}
	w.follow(w.link, &record{})
	resp := w.open("GET", "/events", w.token(nil), "", "")
	defer func() { _ = resp.Body.Close() }()
	if _, data := nextData(t, bufio.NewReader(resp.Body)); strings.Contains(data, canary) || !strings.Contains(data, "/no/such/") {
		t.Errorf("got %s", data)
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"` + canary + `"}`
	if status, body := w.do("POST", "/command", w.token(nil), call); strings.Contains(body, canary) {
		t.Error(status, body)
	}
}
