package local

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link/wire"
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
