package egress_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/egress"
	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/link/wire"
)

// proxied offers a client of the proxy.
func (w *world) proxied(t testing.TB) *net.TCPConn {
	t.Helper()
	conn, v := w.offer(t, wire.Egress{Proxy: true})
	if !v.OK {
		t.Fatal(v.Reason)
	}
	return conn
}

// request sends one request and reads the head of its answer.
func request(t testing.TB, conn net.Conn, in *bufio.Reader, text string) (status int, body string) {
	t.Helper()
	_, _ = io.WriteString(conn, text)
	method, _, _ := strings.Cut(text, " ")
	res, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if method == http.MethodConnect && res.StatusCode == http.StatusOK {
		return res.StatusCode, ""
	}
	b, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(b)
}

// A client keeps its connection to the proxy for any host: each request is judged.
func TestProxyJudgesEachRequest(t *testing.T) {
	w := newWorld(t, []string{"good.test", "other.test:8080", "GET http://some.test/pub/*", "secure.test"})
	for name, addr := range map[string]string{"good.test": "93.184.216.1", "other.test": "93.184.216.2", "some.test": "93.184.216.3", "evil.test": "93.184.216.4"} {
		w.name(name, addr)
	}
	w.name("inside.good.test", "10.0.0.1")
	good := w.serve(t, "93.184.216.1:80", respond)
	other := w.serve(t, "93.184.216.2:8080", respond)
	some := w.serve(t, "93.184.216.3:80", respond)
	evil := w.serve(t, "93.184.216.4:80", respond)
	conn := w.proxied(t)
	in := bufio.NewReader(conn)
	for _, c := range []struct {
		target, host string
		status       int
	}{
		{"http://good.test/a", "good.test", 200},
		{"http://GOOD.test/a", "GOOD.test", 200},
		{"http://evil.test/", "evil.test", 403},
		{"http://good.test/b", "evil.test", 200}, // it goes to the host of the URL, and is told so
		{"http://other.test:8080/", "other.test:8080", 200},
		{"http://other.test/", "other.test", 403},
		{"http://good.test:8080/", "good.test:8080", 403},
		{"http://good.test:443/", "good.test:443", 403},
		{"http://good.test./", "good.test.", 403},
		{"http://93.184.216.1/", "93.184.216.1", 403},
		{"http://1572395009/", "1572395009", 403},
		{"http://0x5db8d801/", "0x5db8d801", 403},
		{"http://[::ffff:169.254.169.254]/", "x", 403},
		{"http://169.254.169.254/latest/meta-data", "169.254.169.254", 403},
		{"http://localhost/", "localhost", 403},
		{"http://xgood.test/", "xgood.test", 403},
		{"http://some.test/pub/a", "some.test", 200},
		{"http://some.test/private", "some.test", 403},
		{"http://some.test/pub/../private", "some.test", 403},
		{"https://good.test/", "good.test", 400},
		{"http://user@good.test/", "good.test", 400},
		{"/", "good.test", 400},
	} {
		status, body := request(t, conn, in, "GET "+c.target+" HTTP/1.1\r\nHost: "+c.host+"\r\nX-Kept: yes\r\nProxy-Authorization: Basic eDp5\r\n\r\n")
		if status != c.status {
			t.Errorf("%s: %d %s", c.target, status, body)
		}
		if status == 403 && (!strings.Contains(body, "network policy") || !strings.Contains(body, "Do not retry it by other routes")) {
			t.Errorf("%s: %q", c.target, body)
		}
	}
	_ = conn.Close()
	if got := w.ended(t, evil); got != "" {
		t.Errorf("%q arrived", got)
	}
	w.gate.Close() // ends what is kept open
	if got := w.ended(t, good); strings.Contains(got, "evil") || !strings.Contains(got, "X-Kept") || strings.Contains(got, "Authorization") || strings.Count(got, "GET ") != 3 {
		t.Errorf("%q arrived", got)
	}
	if got := w.ended(t, other); strings.Count(got, "GET ") != 1 {
		t.Errorf("%q arrived", got)
	}
	if got := w.ended(t, some); strings.Contains(got, "private") {
		t.Errorf("%q arrived", got)
	}
}

// The rule that is suggested is in the answer.
func TestProxySaysWhichRule(t *testing.T) {
	w := newWorld(t, nil)
	conn := w.proxied(t)
	_, body := request(t, conn, bufio.NewReader(conn), "CONNECT evil.test:8443 HTTP/1.1\r\nHost: evil.test:8443\r\n\r\n")
	if !strings.Contains(body, `"evil.test:8443"`) {
		t.Errorf("%q", body)
	}
}

// What was allowed and cannot be reached is one record. None holds all that a client makes up.
func TestProxyRecordsARequestOnce(t *testing.T) {
	w := newWorld(t, []string{"good.test", "GET http://some.test/x"})
	w.name("good.test", "93.184.216.1") // where nobody listens
	conn := w.proxied(t)
	in := bufio.NewReader(conn)
	if status, body := request(t, conn, in, "GET http://good.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n"); status != http.StatusBadGateway {
		t.Errorf("%d %s", status, body)
	}
	method := strings.Repeat("M", 8<<10)
	if status, _ := request(t, conn, in, method+" http://some.test/x HTTP/1.1\r\nHost: some.test\r\n\r\n"); status != http.StatusForbidden {
		t.Errorf("%d", status)
	}
	_, records := w.told()
	if len(records) != 2 || records[0].Verdict != "error" || records[1].Verdict != "deny" || len(records[1].Reason) > 1<<10 {
		t.Errorf("%+v", records)
	}
}

func TestConnect(t *testing.T) {
	for authority, status := range map[string]int{
		"good.test:443": 200, "GOOD.test:443": 200, "good.test:22": 200,
		"evil.test:443": 403, "good.test:8443": 403, "good.test.:443": 403, "93.184.216.1:443": 403, "1572395009:443": 403,
		"0x5d.0xb8.0xd8.1:443": 403, "[::1]:443": 403, "[::ffff:93.184.216.1]:443": 403, "localhost:443": 403,
		"host.docker.internal:8888": 403, "inside.good.test:443": 403,
		"good.test": 400, "good.test:0": 400, "good.test%00.evil.test:443": 400, "good.test:443/x": 400, "": 400,
	} {
		t.Run(authority, func(t *testing.T) {
			w := newWorld(t, []string{"*.good.test"})
			w.name("good.test", "93.184.216.1")
			w.name("inside.good.test", "169.254.169.254")
			w.serve(t, "93.184.216.1:443", nil)
			w.serve(t, "93.184.216.1:22", nil)
			conn := w.proxied(t)
			got, body := request(t, conn, bufio.NewReader(conn), "CONNECT "+authority+" HTTP/1.1\r\nHost: x\r\n\r\n")
			if got != status {
				t.Errorf("%d %s", got, body)
			}
			if (status == 200) != (len(w.dialled) > 0) {
				t.Errorf("dialled %q", w.dialled)
			}
		})
	}
}

// In a tunnel the client is judged like one without a proxy, whether it waits for the answer
// or not.
func TestTunnelIsJudged(t *testing.T) {
	for _, c := range []struct {
		text   string
		passes bool
	}{
		{string(hello(names("good.test"))), true},
		{string(hello(names("evil.test"))), false},
		{"GET / HTTP/1.1\r\nHost: good.test\r\n\r\n", false},
	} {
		for _, waits := range []bool{true, false} {
			w := newWorld(t, []string{"good.test"})
			w.name("good.test", "93.184.216.1")
			s := w.serve(t, "93.184.216.1:443", nil)
			conn := w.proxied(t)
			connect := "CONNECT good.test:443 HTTP/1.1\r\nHost: good.test:443\r\n\r\n"
			if !waits {
				connect += c.text
			}
			if status, body := request(t, conn, bufio.NewReader(conn), connect); status != 200 {
				t.Fatal(status, body)
			}
			if waits {
				_, _ = io.WriteString(conn, c.text)
			}
			say(t, conn, "")
			if got := w.ended(t, s); c.passes && got != c.text || !c.passes && got != "" {
				t.Errorf("%q arrived", got)
			}
		}
	}
}

// corporate is a proxy that a machine is behind. It connects to the servers of an internet,
// and is itself at a private address.
func corporate(t testing.TB, n *internet, secure *tls.Config) *target {
	t.Helper()
	return n.serve(t, "127.0.0.1:3128", func(r io.Reader, conn *net.TCPConn) {
		var client net.Conn = joined{conn, r}
		if secure != nil {
			client = tls.Server(client, secure)
		}
		in := bufio.NewReader(client)
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		up, err := n.dial(t.Context(), "tcp", req.RequestURI)
		if err != nil {
			_, _ = io.WriteString(client, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
			return
		}
		defer up.Close()
		_, _ = fmt.Fprintf(client, "HTTP/1.1 200 OK\r\nX-Got: %s\r\n\r\n", req.Header.Get("Proxy-Authorization"))
		go func() { _, _ = io.Copy(client, up); conn.CloseWrite() }()
		_, _ = io.Copy(up, in)
	})
}

func TestChainsToACorporateProxy(t *testing.T) {
	cert := certificate(t, "proxy.test")
	pool := x509.NewCertPool()
	leaf, _ := x509.ParseCertificate(cert.Certificate[0])
	pool.AddCert(leaf)
	for name, c := range map[string]struct {
		plain, secure, none string
		rules               []string
		name                string
		port                int
		via                 string // what the proxy is asked for; empty: it is not
	}{
		"https":                {"", "http://127.0.0.1:3128", "", []string{"good.test"}, "good.test", 443, "good.test:443"},
		"host.docker":          {"", "http://host.docker.internal:3128", "", []string{"good.test"}, "good.test", 443, "good.test:443"},
		"without a scheme":     {"", "127.0.0.1:3128", "", []string{"good.test"}, "good.test", 443, "good.test:443"},
		"over TLS":             {"", "https://127.0.0.1:3128", "", []string{"good.test"}, "good.test", 443, "good.test:443"},
		"ssh":                  {"", "http://127.0.0.1:3128", "", []string{"good.test"}, "good.test", 22, "good.test:22"},
		"plain":                {"http://127.0.0.1:3128", "", "", []string{"good.test"}, "good.test", 80, "good.test:80"},
		"plain is not https":   {"http://127.0.0.1:3128", "", "", []string{"good.test"}, "good.test", 443, ""},
		"a password":           {"", "http://me:secret@127.0.0.1:3128", "", []string{"good.test"}, "good.test", 443, "good.test:443"},
		"not for this":         {"", "http://127.0.0.1:3128", "good.test", []string{"good.test"}, "good.test", 443, ""},
		"not below":            {"", "http://127.0.0.1:3128", ".good.test", []string{"*.good.test"}, "a.good.test", 443, ""},
		"not for a block":      {"", "http://127.0.0.1:3128", "93.184.216.0/24", []string{rule.All}, "", 443, ""},
		"not for others":       {"", "http://127.0.0.1:3128", "other.test,10.0.0.0/8", []string{"good.test"}, "good.test", 443, "good.test:443"},
		"the proxy knows it":   {"", "http://127.0.0.1:3128", "", []string{"unknown.test"}, "unknown.test", 443, "unknown.test:443"},
		"every public":         {"", "http://127.0.0.1:3128", "", []string{rule.All}, "good.test", 443, "93.184.216.1:443"},
		"every public, a bare": {"", "http://127.0.0.1:3128", "", []string{rule.All}, "", 443, "93.184.216.1:443"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.rules, func(cfg *egress.Config) {
				cfg.Proxy, cfg.RootCAs = egress.ProxyFunc(c.plain, c.secure, c.none), pool
			})
			w.name("good.test", "93.184.216.1")
			w.name("a.good.test", "93.184.216.1")
			s := w.serve(t, fmt.Sprintf("93.184.216.1:%d", c.port), nil)
			for _, known := range []string{"good.test", "unknown.test"} { // as the proxy dials them
				w.servers[fmt.Sprintf("%s:%d", known, c.port)] = s
			}
			var secure *tls.Config
			if strings.HasPrefix(c.secure, "https:") {
				secure = &tls.Config{Certificates: []tls.Certificate{cert}}
			}
			corporate(t, w.internet, secure)
			what := wire.Egress{Name: c.name, Addr: fmt.Sprintf("93.184.216.1:%d", c.port)}
			conn, v := w.offer(t, what)
			if !v.OK {
				t.Fatal(v.Reason)
			}
			text := map[int]string{443: string(hello(names(c.name))), 80: plain, 22: "SSH-2.0-x\r\n"}[c.port]
			say(t, conn, text)
			if got := w.ended(t, s); got != text {
				t.Errorf("%q arrived", got)
			}
			asked := ""
			if w.dialled[0] == "127.0.0.1:3128" {
				asked = w.dialled[1]
			}
			if asked != c.via {
				t.Errorf("dialled %q", w.dialled)
			}
		})
	}
}

// A proxy is not a way to addresses that are not public.
func TestProxyIsNotLedInside(t *testing.T) {
	for _, c := range []struct{ rules, name string }{
		{"inside.test", "inside.test"}, {rule.All, "inside.test"}, {rule.All, "unknown.test"}, {rule.All, ""},
	} {
		w := newWorld(t, []string{c.rules}, func(cfg *egress.Config) {
			cfg.Proxy = egress.ProxyFunc("http://127.0.0.1:3128", "http://127.0.0.1:3128", "")
		})
		w.name("inside.test", "10.0.0.1")
		s := corporate(t, w.internet, nil)
		if _, v := w.offer(t, wire.Egress{Name: c.name, Addr: "10.0.0.1:443"}); v.OK {
			t.Errorf("%q by %q is let through", c.name, c.rules)
		}
		if got := w.ended(t, s); got != "" {
			t.Errorf("the proxy got %q", got)
		}
	}
}

func TestProxyThatRefuses(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n": "it answers 407",
		"nonsense\r\n\r\n": "malformed HTTP",
		"":                 "EOF",
	} {
		w := newWorld(t, []string{"good.test"}, func(cfg *egress.Config) {
			cfg.Proxy = egress.ProxyFunc("", "http://me:secret@127.0.0.1:3128", "")
		})
		w.name("good.test", "93.184.216.1")
		w.serve(t, "127.0.0.1:3128", func(r io.Reader, conn *net.TCPConn) {
			_, _ = bufio.NewReader(r).ReadString('\n')
			_, _ = io.WriteString(conn, answer)
		})
		_, v := w.named(t, "good.test", 443)
		if v.OK || !strings.Contains(v.Reason, want) || strings.Contains(v.Reason, "secret") {
			t.Errorf("%+v", v)
		}
	}
}
