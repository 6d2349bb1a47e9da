package journal

import (
	"os"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/statedb"
	"github.com/Insights/insightscli/internal/task"
)

// TestMain lets a test run itself again as another process: see crash_test.go.
func TestMain(m *testing.M) {
	if dir := os.Getenv("JOURNAL_TEST_WORK"); dir != "" {
		work(dir)
		os.Exit(0)
	}
	if dir := os.Getenv("JOURNAL_TEST_CLAIM"); dir != "" {
		claim(dir)
		os.Exit(0)
	}
	if dir := os.Getenv("JOURNAL_TEST_FILL"); dir != "" {
		fill(dir)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func openStore(t testing.TB, dir string) *Store {
	t.Helper()
	db, err := statedb.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return New(db.DB, db.Dir)
}

func newSpec() task.Spec {
	return task.Spec{
		V: task.SpecVersion, Task: task.NewID(), Run: task.NewID(), Team: 1, User: 1,
		Title: "a title", OriginProduct: "user_created", Agent: task.Agent{Name: "exec", Command: []string{"true"}},
		Mode: task.ModeBackground, Provider: "memory", Network: task.NetworkFull, Timeout: task.Duration(time.Hour),
	}
}

// newRun records a run and returns it.
func newRun(t testing.TB, s *Store) Record {
	t.Helper()
	spec := newSpec()
	must(t, s.Create(t.Context(), spec, nil))
	rec, err := s.Run(t.Context(), spec.Run)
	must(t, err)
	return rec
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func result(rec Record, state task.State) task.Result {
	return task.Result{Run: rec.Spec.Run, Task: rec.Spec.Task, State: state, Provider: rec.Spec.Provider, Finished: time.Now().UTC()}
}

// event is event n of a run: even ones come from the agent server.
func event(n uint64) task.Event {
	ev := task.Event{
		Seq: n, At: time.Date(2026, 11, 29, 1, 2, 3, 4000, time.UTC), Kind: task.KindOutput,
		Params: []byte(`{"stdout":"line\n","lines":1}`),
	}
	if n%2 == 0 {
		ev.EventID = n * 10
	}
	return ev
}

func openLog(t testing.TB, s *Store, rec Record) *Log {
	t.Helper()
	l, err := s.OpenLog(t.Context(), rec)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l
}

func appendAll(t testing.TB, l *Log, evs ...task.Event) {
	t.Helper()
	for _, ev := range evs {
		must(t, l.Append(ev))
	}
	must(t, l.Sync())
}

// numbers reads the sequence numbers of a log.
func numbers(t testing.TB, s *Store, rec Record, after uint64) []uint64 {
	t.Helper()
	var all []uint64
	must(t, s.ReadLog(t.Context(), rec, after, func(_ []byte, ev task.Event) error {
		all = append(all, ev.Seq)
		return nil
	}))
	return all
}
