package egress_test

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/egress"
	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// behindProxy holds, in a process that the test has started, the URL of a proxy.
const behindProxy = "TEST_EGRESS_PROXY"

// A company's own authority vouches for its proxy where SSL_CERT_FILE or SSL_CERT_DIR names
// it. A process reads them once, so that each case is one of its own.
func TestProxyOfACompanysAuthority(t *testing.T) {
	if via := os.Getenv(behindProxy); via != "" {
		fmt.Println("verdict:", throughProxy(t, via))
		return
	}
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(echoTunnel))
	proxy.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that must fail
	proxy.StartTLS()
	t.Cleanup(proxy.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "company.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ env, want string }{
		"in a file":      {"SSL_CERT_FILE=" + file, "ping"},
		"in a directory": {"SSL_CERT_DIR=" + dir, "ping"},
		"unknown":        {"SSL_CERT_DIR=" + t.TempDir(), "connect to the proxy of this machine: tls: failed to verify certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProxyOfACompanysAuthority$")
			cmd.Env = []string{behindProxy + "=" + proxy.URL, c.env}
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "verdict: "+c.want) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// throughProxy has a gate make a connection by way of a proxy, and returns what came back
// on it, or why there is none.
func throughProxy(t *testing.T, via string) string {
	t.Helper()
	set, err := rule.Compile([]string{"good.test:9000"})
	if err != nil {
		t.Fatal(err)
	}
	g := egress.New(egress.Config{
		Set: set, Run: task.ID("run"),
		Proxy: egress.ProxyFunc("", via, ""),
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.1")}, nil
		},
	})
	defer g.Close()
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- g.ServeConn(t.Context(), theirs) }()
	defer func() {
		_ = ours.Close()
		<-served
	}()
	line, err := json.Marshal(wire.Egress{Name: "good.test", Addr: "198.18.0.1:9000"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(ours)
	line, err = in.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var v wire.EgressVerdict
	if err := json.Unmarshal(line, &v); err != nil || !v.OK {
		return v.Reason
	}
	if _, err := io.WriteString(ours, "ping\n"); err != nil {
		t.Fatal(err)
	}
	line, err = in.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

// echoTunnel is a proxy whose every tunnel leads to a server that repeats what it gets.
func echoTunnel(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect || r.RequestURI != "good.test:9000" {
		http.Error(w, "not a tunnel", http.StatusBadRequest)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	_, _ = io.Copy(conn, rw)
}
