package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/egress"
	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
)

const many = 1000

// A thousand connections at once are all served, and hold little in the host's process,
// whether their peers are fast or stand still. The sandbox and the servers are another
// process, so that their memory does not count.
func TestThousandConnections(t *testing.T) {
	for mode, limitMiB := range map[string]int{"fast": 100, "reader": 320, "server": 320} {
		t.Run(mode, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			ln, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			peer := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPeer$", "-test.v")
			peer.Env = append(os.Environ(), "EGRESS_PEER="+path, "EGRESS_PEER_MODE="+mode)
			peer.Stderr = os.Stderr
			stop, _ := peer.StdinPipe()
			out, _ := peer.StdoutPipe()
			if err := peer.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = stop.Close(); _ = peer.Wait() }()
			conn, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			session, err := link.NewSession(conn, true)
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(out)
			address := lineWith(t, lines, "address ")
			gate := gateTo(t, address)
			before := rssMiB(t)
			var served sync.WaitGroup
			served.Go(func() {
				_ = session.Serve(t.Context(), map[string]link.Handler{wire.ServiceEgress: gate.ServeConn})
			})
			said := lineWith(t, lines, "held ")
			grown := rssMiB(t) - before
			t.Logf("%s: %s; %d MiB more", mode, said, grown)
			if !strings.HasPrefix(said, strconv.Itoa(many)+" ") || grown > limitMiB && !raceDetector {
				t.Errorf("%s connections, %d MiB more than before; the bound is %d", said, grown, limitMiB)
			}
			_ = stop.Close()
			_ = session.Close()
			served.Wait()
		})
	}
}

func gateTo(t *testing.T, address string) *egress.Gate {
	set, err := rule.Compile([]string{"good.test"})
	if err != nil {
		t.Fatal(err)
	}
	g := egress.New(egress.Config{
		Set: set,
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.1")}, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, address)
		},
	})
	t.Cleanup(g.Close)
	return g
}

func lineWith(t *testing.T, r *bufio.Reader, prefix string) string {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return strings.TrimSpace(rest)
		}
		if err != nil {
			t.Fatalf("%q: %v", prefix, err)
		}
	}
}

func rssMiB(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		if f := strings.Fields(string(line)); len(f) > 1 && f[0] == "VmRSS:" {
			n, _ := strconv.Atoi(f[1])
			return n >> 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// TestPeer is the other process of TestThousandConnections; alone it does nothing.
func TestPeer(t *testing.T) {
	path := os.Getenv("EGRESS_PEER")
	if path == "" {
		return
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	session, err := link.NewSession(conn, false)
	if err != nil {
		t.Fatal(err)
	}
	mode := os.Getenv("EGRESS_PEER_MODE")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var stalled sync.WaitGroup
	if mode == "reader" {
		stalled.Add(many)
	}
	go peerServers(ln, mode, &stalled)
	fmt.Printf("address %s\n", ln.Addr())
	var held, bytes atomic.Int64
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			c := opened(t, session, wire.ServiceEgress, 22)
			n, err := peerClient(c, mode, &stalled)
			bytes.Add(n)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			held.Add(1)
		})
	}
	all.Wait()
	fmt.Printf("held %d connections, %d MiB\n", held.Load(), bytes.Load()>>20)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// stallTime is how long a write must be stuck for its connection to stand still.
const stallTime = 2 * time.Second

// stall writes until nothing is taken any more.
func stall(c net.Conn) (n int64, err error) {
	chunk := make([]byte, 64<<10)
	for {
		_ = c.SetWriteDeadline(time.Now().Add(stallTime))
		w, err := c.Write(chunk)
		n += int64(w)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// peerClient uses a connection, and leaves it open.
func peerClient(c net.Conn, mode string, servers *sync.WaitGroup) (n int64, err error) {
	switch mode {
	case "fast": // half a MiB each way
		const size = 512 << 10
		go func() { _, _ = c.Write(make([]byte, size)) }()
		return io.CopyN(io.Discard, c, size)
	case "server": // as much as is taken, by a server that does not read
		return stall(c)
	default: // "reader": it asks, and does not read
		_, err = c.Write([]byte{0})
		servers.Wait()
		return 0, err
	}
}

// peerServers serve connections; done is told of each that stands still.
func peerServers(ln net.Listener, mode string, done *sync.WaitGroup) {
	var kept []net.Conn // one that nobody holds would be closed
	defer func() { runtime.KeepAlive(kept) }()
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		kept = append(kept, c)
		switch mode {
		case "fast":
			go func() { _, _ = io.Copy(c, c) }()
		case "reader":
			go func() {
				defer done.Done()
				_, _ = stall(c)
			}()
		}
	}
}
