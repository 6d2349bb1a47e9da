package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// at is a moment of a log.
func at(second int) time.Time {
	return time.Date(2026, 1, 2, 3, 4, 5, 123_000, time.UTC).Add(time.Duration(second) * time.Second)
}

// copied is what CopyLog and ReadLog make of the same log.
func copied(t *testing.T, log []byte, after uint64) (copied, read string, copyErr, readErr error) {
	t.Helper()
	s := &Store{dir: t.TempDir()}
	rec := Record{Spec: task.Spec{Team: 1, Task: "t", Run: "r"}}
	path := s.LogPath(rec.Spec)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, log, 0o600); err != nil {
		t.Fatal(err)
	}
	var a, b bytes.Buffer
	copyErr = s.CopyLog(t.Context(), rec, after, &a)
	readErr = s.ReadLog(t.Context(), rec, after, func(line []byte, _ task.Event) error {
		b.Write(line)
		return nil
	})
	return a.String(), b.String(), copyErr, readErr
}

// CopyLog writes what ReadLog visits: of a log with damaged, repeated, foreign, torn and
// very long lines too.
func TestCopyIsReading(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		var log []byte
		seq := uint64(0)
		for range r.IntN(400) {
			seq++
			ev := task.Event{Seq: seq, At: at(int(seq)), Kind: task.KindOutput, Params: fmt.Appendf(nil, `{"stdout":%q}`, strings.Repeat("x", r.IntN(3000)))}
			switch r.IntN(20) {
			case 0:
				log = append(log, "damaged\n"...)
			case 1:
				ev.Seq -= min(ev.Seq-1, uint64(r.IntN(3))) // again
			case 2:
				log = fmt.Appendf(log, `{"type":"notification","seq":%d,"timestamp":"2026-01-02T03:04:05Z","notification":{"method":"x","params":{}}}`+"\n", seq)
				continue
			case 3:
				ev.Params = bytes.Repeat([]byte("y"), 400<<10)
				log = append(ev.AppendLine(log), '\n') // not JSON, and an empty line
				continue
			}
			log = ev.AppendLine(log)
		}
		if r.IntN(2) == 0 && len(log) > 10 {
			log = log[:len(log)-r.IntN(10)]
		}
		got, want, copyErr, readErr := copied(t, log, uint64(r.IntN(50)))
		if got != want || errs.KindOf(copyErr) != errs.KindOf(readErr) {
			t.Fatalf("round %d: %d bytes, want %d (%v, %v)", round, len(got), len(want), copyErr, readErr)
		}
	}
}

func TestCopyEndsWithItsReader(t *testing.T) {
	s := &Store{dir: t.TempDir()}
	rec := Record{Spec: task.Spec{Team: 1, Task: "t", Run: "r"}}
	path := s.LogPath(rec.Spec)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	line := task.Event{Seq: 1, At: at(1), Kind: task.KindStep}.AppendLine(nil)
	if err := os.WriteFile(path, line, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	if err := s.CopyLog(t.Context(), rec, 0, failing{gone}); !errors.Is(err, gone) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.CopyLog(ctx, rec, 0, &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
