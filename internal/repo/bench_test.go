package repo

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/Insights/insightscli/internal/task"
)

// The repository of the benchmarks: 200 MB that do not compress, in 4,000 files.
const (
	benchFiles = 4000
	benchSize  = 50_000
)

func benchRepository(b *testing.B) string {
	b.Helper()
	top := filepath.Join(b.TempDir(), "big")
	gitAt(b, "", "init", "-q", top)
	random := rand.New(rand.NewSource(1))
	buf := make([]byte, benchSize)
	for i := range benchFiles {
		_, _ = random.Read(buf) // never fails
		writeAt(b, top, fmt.Sprintf("d%02d/f%04d.bin", i%50, i), string(buf))
	}
	gitAt(b, top, "add", "-A")
	gitAt(b, top, "commit", "-q", "-m", "big")
	gitAt(b, top, "repack", "-q", "-a", "-d")
	return top
}

// BenchmarkBigRepository measures how long a 200 MB repository takes into a
// sandbox, beside git clone --no-local of the same.
func BenchmarkBigRepository(b *testing.B) {
	top := benchRepository(b)
	ctx := b.Context()
	fresh := func(b *testing.B) (*Cache, string) {
		state := b.TempDir()
		return New(Options{Dir: state, Environ: testEnviron(b)}), state
	}
	prepare := func(b *testing.B, c *Cache, state string, overlay bool) {
		run := task.NewID()
		r, err := c.Resolve(ctx, task.Repo{Source: task.RepoLocal, Path: top}, ResolveOptions{})
		if err != nil {
			b.Fatal(err)
		}
		p, err := c.Prepare(ctx, r.Repo, PrepareOptions{
			Run: run, UID: os.Getuid(), GID: os.Getgid(),
			WorkDir: filepath.Join(state, "run", string(run)), Overlay: overlay,
		})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := RemoveAll(filepath.Join(state, "run")); err != nil {
			b.Fatal(err)
		}
		if err := c.Remove(ctx, p.Run); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.Run("clone-no-local", func(b *testing.B) {
		for range b.N {
			dst := filepath.Join(b.TempDir(), "clone")
			gitAt(b, "", "clone", "-q", "--no-local", top, dst)
			b.StopTimer()
			if err := os.RemoveAll(dst); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	for _, overlay := range []bool{false, true} {
		how := map[bool]string{false: "copy", true: "overlay"}[overlay]
		b.Run("first-"+how, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				c, state := fresh(b)
				b.StartTimer()
				prepare(b, c, state, overlay)
				b.StopTimer()
				if err := RemoveAll(state); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
		b.Run("second-"+how, func(b *testing.B) {
			c, state := fresh(b)
			prepare(b, c, state, overlay)
			b.ResetTimer()
			for range b.N {
				prepare(b, c, state, overlay)
			}
		})
	}
}
