package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

func TestReadLogReadsFromANumber(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	if got := numbers(t, s, rec, 0); got != nil {
		t.Errorf("a run without a log has events %v", got)
	}
	l := openLog(t, s, rec)
	const n = 9000 // more than a megabyte, so that reading begins in the middle
	for i := range uint64(n) {
		must(t, l.Append(event(i+1)))
	}
	must(t, l.Flush())
	for _, after := range []uint64{0, 1, 2, n / 2, n - 1, n, n + 5} {
		got := numbers(t, s, rec, after)
		if len(got) != max(0, n-int(after)) || len(got) > 0 && (got[0] != after+1 || got[len(got)-1] != n) {
			t.Errorf("after %d: %d events", after, len(got))
		}
	}
}

func TestSeekSkipsMostOfALog(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	l := openLog(t, s, rec)
	for i := range uint64(60) {
		ev := event(i + 1)
		ev.Params = []byte(`{"stdout":"` + strings.Repeat("x", int(i%3)*300<<10) + `"}`)
		must(t, l.Append(ev))
	}
	must(t, l.Flush())
	f, err := os.Open(s.LogPath(rec.Spec))
	must(t, err)
	defer func() { must(t, f.Close()) }()
	info, err := f.Stat()
	must(t, err)
	for after := range uint64(61) {
		r := newReader(f, after)
		if behind := info.Size() * int64(after) / 60; behind-r.pos > 2<<20 {
			t.Errorf("after %d: reading begins %d bytes too early", after, behind-r.pos)
		}
		if got := numbers(t, s, rec, after); len(got) != int(60-after) {
			t.Errorf("after %d: %d events", after, len(got))
		}
	}
}

func TestReadLogGivesLinesAndEvents(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	l := openLog(t, s, rec)
	want := []task.Event{event(1), {Seq: 2, At: event(1).At, Kind: "new", Method: "_insights/new", Params: []byte(`{"a":{"b":"}}"}}`), EventID: 5, FirstEventID: 4}, {Seq: 3, At: event(1).At, Kind: task.KindStep}}
	appendAll(t, l, want...)
	var i int
	must(t, s.ReadLog(t.Context(), rec, 0, func(line []byte, ev task.Event) error {
		if !bytes.Equal(line, want[i].AppendLine(nil)) {
			t.Errorf("line %s", line)
		}
		parsed, err := task.ParseLine(line)
		must(t, err)
		if !reflect.DeepEqual(ev, parsed) {
			t.Errorf("event %+v\nParseLine %+v", ev, parsed)
		}
		i++
		return nil
	}))
	if i != len(want) {
		t.Errorf("%d events, want %d", i, len(want))
	}
	stop := errors.New("stop")
	if err := s.ReadLog(t.Context(), rec, 0, func([]byte, task.Event) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error of the visit: %v", err)
	}
}

func TestDamagedLinesArePassedOver(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	must(t, openLog(t, s, rec).Close())
	body := event(1).AppendLine(nil)
	body = append(body, "garbage\n"...)
	body = append(body, strings.Repeat("y", maxLine+3*readSize)...)
	body = append(body, "\n\x00\x00\n"...)
	body = event(2).AppendLine(body)
	body = append(body, `{"type":"notification","v":1,"seq":3,"torn`...)
	must(t, os.WriteFile(s.LogPath(rec.Spec), body, 0o600))
	var got []uint64
	err := s.ReadLog(t.Context(), rec, 0, func(_ []byte, ev task.Event) error {
		got = append(got, ev.Seq)
		return nil
	})
	if fmt.Sprint(got) != "[1 2]" || errs.KindOf(err) != errs.Incomplete || !strings.Contains(err.Error(), "3 damaged lines") {
		t.Errorf("events %v, %v", got, err)
	}
}

// follow starts Tail and returns what it delivers and how it ends.
func follow(ctx context.Context, s *Store, rec Record, after uint64) (<-chan uint64, <-chan error) {
	evs, end := make(chan uint64, 10000), make(chan error, 1)
	go func() {
		end <- s.Tail(ctx, rec, after, func(_ []byte, ev task.Event) error {
			evs <- ev.Seq
			return nil
		})
	}()
	return evs, end
}

// within fails the test when c gives nothing in a time that is long enough for
// every machine.
func within[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func TestTailFollowsUntilFinished(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	rec := newRun(t, s)
	evs, end := follow(t.Context(), openStore(t, dir), rec, 0) // before there is a log
	l := openLog(t, s, rec)
	for i := range uint64(3) {
		appendAll(t, l, event(i+1))
		if got := within(t, evs); got != i+1 {
			t.Fatalf("event %d, want %d", got, i+1)
		}
	}
	appendAll(t, l, task.Event{Seq: 4, Kind: task.KindFinished, Params: []byte(`{"state":"completed"}`)})
	must(t, within(t, end))
	if got := within(t, evs); got != 4 {
		t.Errorf("last event %d", got)
	}
}

func TestTailSeesNoTornLine(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	rec := newRun(t, s)
	must(t, openLog(t, s, rec).Close())
	f, err := os.OpenFile(s.LogPath(rec.Spec), os.O_RDWR, 0)
	must(t, err)
	defer func() { must(t, f.Close()) }()
	evs, end := follow(t.Context(), openStore(t, dir), rec, 0)
	pos := int64(0)
	write := func(b []byte) {
		t.Helper()
		n, err := f.WriteAt(b, pos)
		must(t, err)
		pos += int64(n)
	}
	write(event(1).AppendLine(nil))
	within(t, evs)
	// Half a line, which the owner dies over; the next owner cuts it off and writes
	// another one that is longer.
	half := event(2).AppendLine(nil)
	_, err = f.WriteAt(half[:len(half)/2], pos)
	must(t, err)
	must(t, f.Truncate(pos))
	ev := event(2)
	ev.Params = []byte(`{"stdout":"` + strings.Repeat("z", 1<<20) + `"}`)
	for line := ev.AppendLine(nil); len(line) > 0; line = line[min(len(line), 100_000):] {
		write(line[:min(len(line), 100_000)])
	}
	if got := within(t, evs); got != 2 {
		t.Errorf("event %d", got)
	}
	write(task.Event{Seq: 3, Kind: task.KindFinished}.AppendLine(nil))
	must(t, within(t, end))
}

func TestTailEndsWithARunThatLostItsFinishedEvent(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	l := openLog(t, s, rec)
	appendAll(t, l, event(1))
	evs, end := follow(t.Context(), s, rec, 0)
	within(t, evs)
	must(t, s.Finish(t.Context(), rec.Spec.Run, result(rec, task.StateFailed)))
	must(t, within(t, end))
}

func TestTailEndsWithARunThatHasNoLog(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	must(t, s.Finish(t.Context(), rec.Spec.Run, result(rec, task.StateCancelled)))
	_, end := follow(t.Context(), s, rec, 0)
	must(t, within(t, end))
	_, end = follow(t.Context(), s, Record{Spec: newSpec()}, 0) // never recorded
	must(t, within(t, end))
}

func TestTailEndsWithItsContext(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	for _, withLog := range []bool{false, true} {
		if withLog {
			openLog(t, s, rec)
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, end := follow(ctx, s, rec, 0)
		cancel()
		if err := within(t, end); !errors.Is(err, context.Canceled) || errs.KindOf(err) != errs.Canceled {
			t.Errorf("with a log %t: %v", withLog, err)
		}
	}
}
