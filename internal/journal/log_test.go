package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

func lastOf(t *testing.T, l *Log, seq, eventID uint64) {
	t.Helper()
	if s, e := l.Last(); s != seq || e != eventID {
		t.Errorf("Last() = %d, %d; want %d, %d", s, e, seq, eventID)
	}
}

func TestLogGoesOnWhereItEnded(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	l := openLog(t, s, rec)
	lastOf(t, l, 0, 0)
	appendAll(t, l, event(1), event(2), event(3))
	must(t, l.Close())
	must(t, l.Close())
	if err := l.Append(event(4)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Append after Close: %v", err)
	}
	l = openLog(t, s, rec)
	lastOf(t, l, 3, 20) // event 3 is the host's own
	appendAll(t, l, event(4), event(5))
	if got := fmt.Sprint(numbers(t, s, rec, 0)); got != "[1 2 3 4 5]" {
		t.Errorf("log holds %s", got)
	}
}

func TestLogRefusesGaps(t *testing.T) {
	s := openStore(t, t.TempDir())
	l := openLog(t, s, newRun(t, s))
	appendAll(t, l, event(1))
	for _, n := range []uint64{0, 1, 3} {
		if err := l.Append(event(n)); err == nil {
			t.Errorf("event %d was taken after 1", n)
		}
	}
	must(t, l.Append(event(2)))
}

// TestTornLogIsCut cuts a log at every byte of its last line: all lines before stay,
// nothing else.
func TestTornLogIsCut(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	l := openLog(t, s, rec)
	appendAll(t, l, event(1), event(2), event(3))
	must(t, l.Close())
	path := s.LogPath(rec.Spec)
	whole, err := os.ReadFile(path)
	must(t, err)
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := last; cut < len(whole); cut++ {
		must(t, os.WriteFile(path, whole[:cut], 0o600))
		if got := fmt.Sprint(numbers(t, s, rec, 0)); got != "[1 2]" {
			t.Fatalf("cut at %d: a reader sees %s", cut, got)
		}
		l, err := s.OpenLog(t.Context(), rec)
		must(t, err)
		lastOf(t, l, 2, 20)
		appendAll(t, l, event(3))
		must(t, l.Close())
		if body, err := os.ReadFile(path); err != nil || !bytes.Equal(body, whole) {
			t.Fatalf("cut at %d: the log is not whole again (%v)", cut, err)
		}
	}
}

// TestHolesAreCut: a power cut may lose a page and keep a later one; the file then
// holds NUL bytes.
func TestHolesAreCut(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	path := s.LogPath(rec.Spec)
	l := openLog(t, s, rec)
	appendAll(t, l, event(1), event(2))
	must(t, l.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	more := event(4).AppendLine(event(3).AppendLine(nil))
	for name, tail := range map[string][]byte{
		"only NULs":          make([]byte, 5000),
		"a hole and a line":  append(make([]byte, 4096), more...),
		"a hole in a line":   append(append(bytes.Clone(more[:40]), make([]byte, 100)...), more[140:]...),
		"a line that is not": []byte("{\"type\":\"other\"}\n"),
		"no line feed":       bytes.Repeat([]byte("x"), 300<<10),
	} {
		must(t, os.WriteFile(path, append(bytes.Clone(whole), tail...), 0o600))
		l, err := s.OpenLog(t.Context(), rec)
		must(t, err)
		lastOf(t, l, 2, 20)
		must(t, l.Close())
		if body, err := os.ReadFile(path); err != nil || !bytes.Equal(body, whole) {
			t.Errorf("%s: %d bytes are left of %d (%v)", name, len(body), len(whole), err)
		}
	}
}

func TestLogWithHugeLines(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	l := openLog(t, s, rec)
	huge := event(2)
	huge.Params = []byte(`{"stdout":"` + strings.Repeat("x", 3<<20) + `"}`)
	after := event(3)
	after.Params = huge.Params
	appendAll(t, l, event(1), huge, after)
	must(t, l.Close())
	l = openLog(t, s, rec)
	lastOf(t, l, 3, 20)
	appendAll(t, l, event(4))
	if got := fmt.Sprint(numbers(t, s, rec, 0)); got != "[1 2 3 4]" {
		t.Errorf("log holds %s", got)
	}
}

func TestLinesOfOthersAreRead(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	must(t, openLog(t, s, rec).Close())
	line := `{"timestamp":"2026-11-29T00:00:00Z","seq":7,"event_id":"9","type":"notification","notification":{"method":"__insights/console","params":{}}}` + "\n"
	must(t, os.WriteFile(s.LogPath(rec.Spec), []byte(line), 0o600))
	lastOf(t, openLog(t, s, rec), 7, 9)
}

func TestAppendAndSyncTogether(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	l := openLog(t, s, rec)
	const n = 5000
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if err := l.Sync(); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for i := range uint64(n) {
		must(t, l.Append(event(i+1)))
	}
	close(done)
	wg.Wait()
	must(t, l.Sync())
	if got := len(numbers(t, s, rec, 0)); got != n {
		t.Errorf("%d events, want %d", got, n)
	}
}

func TestFinishedInLog(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	check := func(want bool) {
		t.Helper()
		res, ok, err := s.FinishedInLog(t.Context(), rec)
		if err != nil || ok != want || ok && (res.State != task.StateFailed || res.Code != 7) {
			t.Errorf("FinishedInLog = %+v, %t, %v", res, ok, err)
		}
	}
	check(false)
	l := openLog(t, s, rec)
	check(false)
	appendAll(t, l, event(1))
	check(false)
	appendAll(t, l, task.Event{Seq: 2, Kind: task.KindFinished, Params: []byte(`{"state":"failed","code":7}`)})
	check(true)
}

func BenchmarkAppend64KiB(b *testing.B) {
	s := openStore(b, b.TempDir())
	l := openLog(b, s, newRun(b, s))
	ev := event(1)
	ev.Params = []byte(`{"stdout":"` + strings.Repeat(strings.Repeat("x", 98)+`\n`, 655) + `"}`)
	b.SetBytes(int64(len(ev.Params)))
	for b.Loop() {
		must(b, l.Append(ev))
		ev.Seq++
		if ev.Seq%4096 == 0 { // 256 MiB are enough of a file
			l.mu.Lock()
			must(b, l.f.Truncate(0))
			l.size = 0
			l.mu.Unlock()
		}
	}
}

func BenchmarkReadLog(b *testing.B) {
	s := openStore(b, b.TempDir())
	rec := newRun(b, s)
	l := openLog(b, s, rec)
	ev := event(1)
	ev.Params = []byte(`{"stdout":"` + strings.Repeat("x", 64<<10) + `"}`)
	for range 512 {
		must(b, l.Append(ev))
		ev.Seq++
	}
	must(b, l.Flush())
	b.SetBytes(512 * 64 << 10)
	for b.Loop() {
		must(b, s.ReadLog(b.Context(), rec, 0, func([]byte, task.Event) error { return nil }))
	}
}

// A sandbox that never stops talking must not fill the disk: what it says is refused at
// some point, and how its run ended is still told.
func TestALogIsBounded(t *testing.T) {
	s := New(nil, t.TempDir())
	rec := Record{Spec: task.Spec{Run: task.NewID(), Task: task.NewID(), Team: 1}}
	l, err := s.OpenLog(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	l.limit = 4 << 10
	seq := uint64(0)
	for err == nil && seq < 100 {
		seq++
		err = l.Append(task.Event{Seq: seq, EventID: seq, Kind: task.KindOutput, Params: task.AppendOutput(nil, task.Stdout, make([]byte, 300), false)})
	}
	if errs.KindOf(err) != errs.TaskFailed || seq >= 100 {
		t.Fatalf("event %d: %v", seq, err)
	}
	if err := l.Append(task.Event{Seq: seq, Kind: task.KindFinished, Params: []byte(`{}`)}); err != nil {
		t.Errorf("the end: %v", err)
	}
}
