package stats

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/statedb"
	"github.com/Insights/insightscli/internal/task"
)

// recorded is a state.db whose runs the test makes.
type recorded struct {
	t     *testing.T
	db    *sql.DB
	store *journal.Store
}

func open(t *testing.T) *recorded {
	t.Helper()
	dir := t.TempDir()
	db, err := statedb.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &recorded{t, db.DB, journal.New(db.DB, dir)}
}

// add records a run that was made, begun and over at those times.
func (r *recorded) add(agent string, repos []string, state task.State, created time.Time, took time.Duration, used task.Tokens) {
	r.t.Helper()
	spec := task.Spec{V: 1, Task: task.NewID(), Run: task.NewID(), Team: 1, Agent: task.Agent{Name: agent}, Provider: "local"}
	for _, name := range repos {
		spec.Repos = append(spec.Repos, task.Repo{Org: "org", Name: name})
	}
	if err := r.store.Create(r.t.Context(), spec, nil); err != nil {
		r.t.Fatal(err)
	}
	if used.Requests > 0 {
		if _, err := r.store.AddUsage(r.t.Context(), spec.Run, "model", used); err != nil {
			r.t.Fatal(err)
		}
	}
	begun := created.Add(time.Second)
	_, err := r.db.ExecContext(r.t.Context(), `UPDATE runs SET state = ?, created = ?, started = ?, finished = ? WHERE id = ?`,
		state, created.UnixNano(), begun.UnixNano(), begun.Add(took).UnixNano(), spec.Run)
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *recorded) read(q Query) Report {
	r.t.Helper()
	rep, err := Read(r.t.Context(), r.db, q)
	if err != nil {
		r.t.Fatal(err)
	}
	return rep
}

func day(n int) time.Time { return time.Date(2026, 11, n, 23, 30, 0, 0, time.UTC) }

func TestSumsByDay(t *testing.T) {
	r := open(t)
	used := task.Tokens{Input: 10, Output: 5, CacheRead: 1, Requests: 2, CostUSD: 0.125}
	for i := 1; i <= 10; i++ {
		r.add("claude", nil, task.StateCompleted, day(1), time.Duration(i)*time.Second, used)
	}
	r.add("claude", nil, task.StateFailed, day(2), time.Minute, task.Tokens{Requests: 1, Unpriced: 1})
	r.add("claude", nil, task.StateCancelled, day(2), time.Hour, task.Tokens{})
	r.add("claude", nil, task.StateInProgress, day(2), 0, task.Tokens{})

	rep := r.read(Query{By: ByDay})
	if len(rep.Groups) != 2 {
		t.Fatalf("%+v", rep)
	}
	first, second := rep.Groups[0], rep.Groups[1]
	if first.Name != "2026-11-01" || first.Runs != 10 || *first.Success != 1 || first.Median != 5 || first.P90 != 9 ||
		first.Used.CostUSD != 1.25 || first.Used.Total != 160 {
		t.Errorf("first day: %+v", first)
	}
	if second.Runs != 3 || second.Failed != 1 || second.Cancelled != 1 || second.Live != 1 || *second.Success != 0 ||
		second.Median != 60 || second.Used.Unpriced != 1 {
		t.Errorf("second day: %+v", second)
	}
	if got := *rep.Total.Success; rep.Total.Runs != 13 || math.Abs(got-10.0/11) > 1e-9 {
		t.Errorf("total: %+v", rep.Total)
	}
	// In another zone the evening of the first is the morning of the second.
	if got := r.read(Query{By: ByDay, Zone: time.FixedZone("east", 3600)}).Groups[0].Name; got != "2026-11-02" {
		t.Errorf("in the east: %s", got)
	}
	if got := r.read(Query{By: ByDay, Since: day(2)}); got.Total.Runs != 3 {
		t.Errorf("since the second: %+v", got)
	}
}

func TestSumsByRepository(t *testing.T) {
	r := open(t)
	r.add("claude", []string{"a", "b", "a"}, task.StateCompleted, day(1), time.Second, task.Tokens{})
	r.add("codex", []string{"b"}, task.StateCompleted, day(1), time.Second, task.Tokens{})
	r.add("exec", nil, task.StateCompleted, day(1), time.Second, task.Tokens{})
	runs := map[string]int{}
	for _, g := range r.read(Query{By: ByRepo}).Groups {
		runs[g.Name] = g.Runs
	}
	if want := map[string]int{"org/a": 1, "org/b": 2, None: 1}; !reflect.DeepEqual(runs, want) {
		t.Errorf("%v, want %v", runs, want)
	}
	if rep := r.read(Query{By: ByAgent}); len(rep.Groups) != 3 || rep.Total.Runs != 3 {
		t.Errorf("by agent: %+v", rep)
	}
	if rep := r.read(Query{By: ByProvider}); len(rep.Groups) != 1 || rep.Groups[0].Name != "local" {
		t.Errorf("by provider: %+v", rep)
	}
}

func TestNothingToSumUp(t *testing.T) {
	rep := open(t).read(Query{By: ByDay})
	if len(rep.Groups) != 0 || rep.Total.Success != nil || rep.Total.Median != 0 {
		t.Errorf("%+v", rep)
	}
}

// many records n runs the fast way.
func (r *recorded) many(ctx context.Context, n int) error {
	const spec = `{"v":1,"agent":{"name":"claude"},"provider":"local","repos":[{"org":"org","name":"repo"}],"description":"%01500d"}`
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for i := range n {
		id := task.NewID()
		_, err := tx.ExecContext(ctx, `INSERT INTO runs (id, task, state, version, spec, created, started, finished) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			id, id, task.StateCompleted, "", fmt.Appendf(nil, spec, i), day(1).UnixNano(), 1, int64(i+1)*1e9)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO usage VALUES (?, 'm', 1, 1, 0, 0, 0, 1, 0, 1000)`, id)
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Ten thousand runs are summed up while somebody waits; the bound, which is far
// beyond what the race detector makes of it, tells that from reading every log.
func TestManyRuns(t *testing.T) {
	r := open(t)
	if err := r.many(t.Context(), 10_000); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	rep := r.read(Query{By: ByRepo})
	took := time.Since(begin)
	t.Logf("took %v", took)
	if rep.Total.Runs != 10_000 || rep.Groups[0].Used.Requests != 10_000 || math.Abs(rep.Total.Median-5000) > 1 {
		t.Errorf("%+v", rep.Total)
	}
	if took > time.Minute {
		t.Errorf("took %v", took)
	}
}
