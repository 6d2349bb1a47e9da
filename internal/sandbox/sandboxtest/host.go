package sandboxtest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
)

// host is a host that plays the internet. It makes no connection: it answers itself, with
// what it was told was dialled.
type host struct {
	// refuse tells why a connection is not made; "" is no reason.
	refuse func(wire.Egress) string
	// serve is the other end of a connection that is made.
	serve func(wire.Egress, net.Conn)

	mu   sync.Mutex // guards seen
	seen []wire.Egress
}

// handle is the host's handler of wire.ServiceEgress.
func (h *host) handle(_ context.Context, conn net.Conn) error {
	in := bufio.NewReaderSize(conn, wire.MaxEgressLine)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	var req wire.Egress
	if err := json.Unmarshal(line, &req); err != nil {
		return err
	}
	h.mu.Lock()
	h.seen = append(h.seen, req)
	h.mu.Unlock()
	verdict := wire.EgressVerdict{Reason: "not allowed"}
	if !req.Lookup {
		verdict.Reason = h.refuse(req)
		verdict.OK = verdict.Reason == ""
	}
	answer, err := json.Marshal(verdict)
	if err != nil {
		return err
	}
	if _, err := conn.Write(append(answer, '\n')); err != nil || !verdict.OK {
		return err
	}
	h.serve(req, &buffered{Conn: conn, in: in})
	return nil
}

// buffered is a connection of which some bytes have been read already.
type buffered struct {
	net.Conn
	in *bufio.Reader
}

// Read implements net.Conn.
func (b *buffered) Read(p []byte) (int, error) { return b.in.Read(p) }

// saw reports whether a connection or a question like req was offered.
func (h *host) saw(req wire.Egress) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.seen, req)
}

func (h *host) all() []wire.Egress {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.seen)
}

// greet tells a client what it has dialled, as the host sees it, in the words of HTTP where
// that is what the client speaks.
func greet(req wire.Egress, conn net.Conn) {
	_, port, _ := net.SplitHostPort(req.Addr)
	if !req.Proxy && port != "80" {
		_, _ = io.WriteString(conn, "host "+req.Name+" "+port+"\n")
		return
	}
	asked, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	body := "host " + asked.Host + " by name\n"
	if req.Proxy {
		body = "host " + asked.Host + " by proxy\n"
	}
	answer := http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Close: true,
		ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
	}
	_ = answer.Write(conn)
}

// echo gives a client back what it says.
func echo(_ wire.Egress, conn net.Conn) { _, _ = io.Copy(conn, conn) }

// everything refuses nothing.
func everything(wire.Egress) string { return "" }

// connectAs is connect for a host that serves the sandbox's connections.
func (l *lab) connectAs(box sandbox.Sandbox, r run, h *host) *agent.Client {
	l.Helper()
	conn, err := box.Link(l.context())
	if err != nil {
		l.Fatalf("link: %v", err)
	}
	c, err := agent.Connect(l.context(), conn, r.key, map[string]link.Handler{wire.ServiceEgress: h.handle})
	if err != nil {
		l.Fatalf("connect: %v", err)
	}
	l.Cleanup(func() { _ = c.Close() })
	return c
}

// restricted makes a sandbox that may ask for the names that rules allow.
func (l *lab) restricted(h *host, rules ...string) *agent.Client {
	l.Helper()
	r := l.newRun()
	r.spec.Network, r.boot.Network, r.boot.Allow = "custom", "custom", rules
	box := l.create(r)
	return l.connectAs(box, r, h)
}

// python runs a program that prints what want says.
func (l *lab) python(c *agent.Client, program, want string) {
	l.Helper()
	out, code := l.shellWith(c, "exec python3 -", strings.NewReader(program))
	if code != 0 || strings.TrimSpace(out) != strings.TrimSpace(want) {
		l.Errorf("code %d, printed\n%s\nwant\n%s", code, out, want)
	}
}
