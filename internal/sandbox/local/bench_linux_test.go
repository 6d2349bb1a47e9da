package local

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
)

// BenchmarkSandbox is the provider alone: make a sandbox, run true in it, remove it.
// first-byte-ms is the time to the first output of echo.
func BenchmarkSandbox(b *testing.B) {
	needNamespaces(b)
	root := b.TempDir()
	provider := New(Options{Root: root})
	var first time.Duration
	n := 0
	for b.Loop() {
		n++
		spec, key := newSpec(b, root, "r"+strconv.Itoa(n))
		began := time.Now()
		s, err := provider.Create(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		conn, err := s.Link(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		client, err := agent.Connect(b.Context(), conn, key, nil)
		if err != nil {
			b.Fatal(err)
		}
		out := writerFunc(func(p []byte) (int, error) { first += time.Since(began); return len(p), nil })
		if _, err := client.Exec(b.Context(), wire.Command{Argv: []string{"echo", "x"}}, agent.Stdio{Out: out}); err != nil {
			b.Fatal(err)
		}
		_ = client.Close()
		if err := s.Destroy(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(first.Microseconds())/1000/float64(n), "first-byte-ms")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// BenchmarkCreate is the part of BenchmarkSandbox before the link.
func BenchmarkCreate(b *testing.B) {
	needNamespaces(b)
	root := b.TempDir()
	provider := New(Options{Root: root})
	spec, _ := newSpec(b, root, "r1")
	for b.Loop() {
		s, err := provider.Create(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		_ = s.Destroy(context.WithoutCancel(b.Context()))
		b.StartTimer()
	}
}

func BenchmarkProbe(b *testing.B) {
	needNamespaces(b)
	for b.Loop() {
		if err := New(Options{}).Probe(b.Context(), os.Getenv(serverEnv)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBubblewrap is what BenchmarkSandbox is compared with.
func BenchmarkBubblewrap(b *testing.B) {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		b.Skip("needs bwrap")
	}
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), bwrap, "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true")
		cmd.Stdout = io.Discard
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCapture is BenchmarkCreate with the capture of connections, which is what every
// run has.
func BenchmarkCapture(b *testing.B) {
	needNamespaces(b)
	root := b.TempDir()
	provider := New(Options{Root: root})
	for _, capture := range []bool{false, true} {
		b.Run(strconv.FormatBool(capture), func(b *testing.B) {
			spec, _ := captured(b, root, capture)
			for b.Loop() {
				s, err := provider.Create(b.Context(), spec)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				_ = s.Destroy(context.WithoutCancel(b.Context()))
				b.StartTimer()
			}
		})
	}
}

func captured(b *testing.B, root string, capture bool) (sandbox.Spec, link.HostKey) {
	b.Helper()
	spec, key := newSpec(b, root, "r1")
	var boot wire.Boot
	if err := json.Unmarshal(spec.Boot, &boot); err != nil {
		b.Fatal(err)
	}
	boot.Capture, boot.Allow = capture, []string{"*"}
	var err error
	if spec.Boot, err = json.Marshal(boot); err != nil {
		b.Fatal(err)
	}
	return spec, key
}

// BenchmarkConnection is one connection after another from inside a sandbox to a host that
// answers by itself, compared with a server inside, and the bytes of one stream.
func BenchmarkConnection(b *testing.B) {
	needNamespaces(b)
	root := b.TempDir()
	spec, key := captured(b, root, true)
	s, err := New(Options{Root: root}).Create(b.Context(), spec)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Destroy(context.WithoutCancel(b.Context())) })
	conn, err := s.Link(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	client, err := agent.Connect(b.Context(), conn, key, map[string]link.Handler{wire.ServiceEgress: answerItself})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	for b.Loop() {
		var out bytes.Buffer
		code, err := client.Exec(b.Context(), wire.Command{Argv: []string{"python3", "-c", connections}}, agent.Stdio{Out: &out, Err: &out})
		if err != nil || code != 0 {
			b.Fatalf("%d, %v: %s", code, err, out.String())
		}
		var own, host, refused, rate float64
		if _, err := fmt.Sscan(out.String(), &own, &host, &refused, &rate); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(own, "own-ms")
		b.ReportMetric(host, "host-ms")
		b.ReportMetric(refused, "refused-ms")
		b.ReportMetric(rate, "MB/s")
	}
}

// connections prints the medians of three kinds of connection, and a rate.
const connections = `
import socket, statistics, threading, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", 7000)); s.listen(64)
def run():
    while True:
        c, _ = s.accept(); c.sendall(b"x"); c.close()
threading.Thread(target=run, daemon=True).start()
def once(addr, port):
    began = time.perf_counter()
    try:
        with socket.create_connection((addr, port)) as c: c.recv(1)
    except ConnectionResetError: pass
    return (time.perf_counter() - began) * 1000
for addr, port in ("127.0.0.1", 7000), ("1.2.3.4", 443), ("1.2.3.4", 80):
    print("%.3f" % statistics.median(once(addr, port) for _ in range(1000)))
c = socket.create_connection(("1.2.3.4", 444))
b, n, began = bytearray(1 << 20), 0, time.perf_counter()
while True:
    k = c.recv_into(b)
    if k == 0: break
    n += k
print("%.0f" % (n / 1e6 / (time.perf_counter() - began)))
`

// answerItself refuses port 80, sends much on 444 and a byte on every other.
func answerItself(_ context.Context, conn net.Conn) error {
	line, err := bufio.NewReaderSize(conn, wire.MaxEgressLine).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.Contains(line, ":80\"") {
		_, err = io.WriteString(conn, `{"ok":false,"reason":"no"}`+"\n")
		return err
	}
	if _, err = io.WriteString(conn, `{"ok":true}`+"\n"); err != nil {
		return err
	}
	if !strings.Contains(line, ":444\"") {
		_, err = io.WriteString(conn, "x")
		return err
	}
	block := make([]byte, 256<<10)
	for range 8192 {
		if _, err := conn.Write(block); err != nil {
			return err
		}
	}
	return nil
}
