package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret/seal"
	"github.com/Insights/insightscli/internal/task"
)

func TestRunGoesFromQueuedToItsEnd(t *testing.T) {
	s, ctx := openStore(t, t.TempDir()), t.Context()
	spec := newSpec()
	must(t, s.Create(ctx, spec, map[string][]byte{"TOKEN": []byte("sealed")}))
	rec, err := s.Run(ctx, spec.Run)
	must(t, err)
	if rec.State != task.StateQueued || rec.Owner != "" || !rec.Started.IsZero() || rec.Created.IsZero() || rec.Result != nil ||
		rec.Version != build.Get().Version || !reflect.DeepEqual(rec.Spec, spec) {
		t.Errorf("new run: %+v", rec)
	}
	must(t, s.Begin(ctx, spec.Run))
	must(t, s.SetSandbox(ctx, spec.Run, "box"))
	rec, err = s.Run(ctx, spec.Run)
	must(t, err)
	started := rec.Started
	if rec.State != task.StateInProgress || started.IsZero() || rec.Sandbox != "box" {
		t.Errorf("begun run: %+v", rec)
	}
	must(t, s.Begin(ctx, spec.Run)) // by the process that took it over
	res := result(rec, task.StateCompleted)
	must(t, s.Finish(ctx, spec.Run, res))
	rec, err = s.Run(ctx, spec.Run)
	must(t, err)
	if rec.State != task.StateCompleted || !rec.Started.Equal(started) || !rec.Finished.Equal(res.Finished) || !reflect.DeepEqual(*rec.Result, res) {
		t.Errorf("finished run: %+v", rec)
	}
	sealed, err := s.Secrets(ctx, spec.Run)
	must(t, err)
	if len(sealed) != 0 {
		t.Errorf("%d secrets outlive the run", len(sealed))
	}
}

func TestFirstResultStays(t *testing.T) {
	s, ctx := openStore(t, t.TempDir()), t.Context()
	rec := newRun(t, s)
	must(t, s.Finish(ctx, rec.Spec.Run, result(rec, task.StateFailed)))
	must(t, s.Finish(ctx, rec.Spec.Run, result(rec, task.StateCompleted)))
	rec, err := s.Run(ctx, rec.Spec.Run)
	must(t, err)
	if rec.State != task.StateFailed || rec.Result.State != task.StateFailed {
		t.Errorf("state %s, result %s", rec.State, rec.Result.State)
	}
}

func TestFinishedRunTakesNothingMore(t *testing.T) {
	s, ctx := openStore(t, t.TempDir()), t.Context()
	rec := newRun(t, s)
	run := rec.Spec.Run
	must(t, s.Finish(ctx, run, result(rec, task.StateCancelled)))
	_, errInput := s.AddInput(ctx, run, task.Input{ID: "1", Kind: task.InputMessage})
	for name, err := range map[string]error{
		"Begin": s.Begin(ctx, run), "AddInput": errInput, "PutSecret": s.PutSecret(ctx, run, "n", []byte("v")),
	} {
		if errs.KindOf(err) != errs.Conflict {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnknownRunIsNotFound(t *testing.T) {
	s, ctx := openStore(t, t.TempDir()), t.Context()
	run := task.NewID()
	_, errRun := s.Run(ctx, run)
	_, errInput := s.AddInput(ctx, run, task.Input{Kind: task.InputCancel})
	_, errLatest := s.Find(ctx, Latest)
	_, errPrefix := s.Find(ctx, "abc")
	_, errOdd := s.Find(ctx, "no/../id")
	_, errEmpty := s.Find(ctx, "")
	for name, err := range map[string]error{
		"Run": errRun, "AddInput": errInput, "Begin": s.Begin(ctx, run), "SetSandbox": s.SetSandbox(ctx, run, "x"),
		"Finish":      s.Finish(ctx, run, task.Result{State: task.StateFailed}),
		"Find latest": errLatest, "Find prefix": errPrefix, "Find odd": errOdd, "Find empty": errEmpty,
	} {
		if errs.KindOf(err) != errs.NotFound || !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCreateRefusesARepeatedRun(t *testing.T) {
	s, ctx := openStore(t, t.TempDir()), t.Context()
	rec := newRun(t, s)
	if err := s.Create(ctx, rec.Spec, nil); errs.KindOf(err) != errs.Conflict {
		t.Error(err)
	}
	again := rec.Spec
	again.Run = task.NewID()
	must(t, s.Create(ctx, again, nil)) // a second run of the same task
}

func TestTasksAreNumberedPerTeam(t *testing.T) {
	s, ctx := openStore(t, t.TempDir()), t.Context()
	for _, team := range []int64{1, 1, 2, 1} {
		spec := newSpec()
		spec.Team = team
		must(t, s.Create(ctx, spec, nil))
	}
	rows, err := s.db.QueryContext(ctx, `SELECT team, number FROM tasks ORDER BY team, number`)
	must(t, err)
	defer func() { must(t, rows.Close()) }()
	var got []string
	for rows.Next() {
		var team, number int
		must(t, rows.Scan(&team, &number))
		got = append(got, fmt.Sprintf("%d-%d", team, number))
	}
	if want := "[1-0 1-1 1-2 2-0]"; fmt.Sprint(got) != want {
		t.Errorf("numbers %v, want %s", got, want)
	}
}

func TestFindTakesPrefixesAndLatest(t *testing.T) {
	s, ctx := openStore(t, t.TempDir()), t.Context()
	ids := []task.ID{
		"aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaab-0000-4000-8000-000000000002", "bbbbbbbb-0000-4000-8000-000000000003",
	}
	for _, id := range ids {
		spec := newSpec()
		spec.Run = id
		must(t, s.Create(ctx, spec, nil))
	}
	for name, want := range map[string]task.ID{
		"b": ids[2], "aaaaaaaa": ids[0], "AAAAAAAB": ids[1], string(ids[1]): ids[1], Latest: ids[2],
	} {
		rec, err := s.Find(ctx, name)
		if err != nil || rec.Spec.Run != want {
			t.Errorf("Find(%q) = %s, %v; want %s", name, rec.Spec.Run, err, want)
		}
	}
	_, err := s.Find(ctx, "aaaa")
	if errs.KindOf(err) != errs.Usage || !strings.Contains(err.Error(), string(ids[0])) || !strings.Contains(err.Error(), string(ids[1])) {
		t.Errorf("ambiguous prefix: %v", err)
	}
}

func TestRunsAreFiltered(t *testing.T) {
	s, ctx := openStore(t, t.TempDir()), t.Context()
	queued, begun, done := newRun(t, s), newRun(t, s), newRun(t, s)
	must(t, s.Begin(ctx, begun.Spec.Run))
	must(t, s.Finish(ctx, done.Spec.Run, result(done, task.StateFailed)))
	ok, err := s.Claim(ctx, begun.Spec.Run, "", "me")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	tests := map[string]struct {
		f    Filter
		want []Record
	}{
		"all":     {Filter{}, []Record{done, begun, queued}},
		"live":    {Filter{Live: true}, []Record{begun, queued}},
		"ended":   {Filter{Ended: true}, []Record{done}},
		"state":   {Filter{State: []task.State{task.StateQueued, task.StateFailed}}, []Record{done, queued}},
		"owner":   {Filter{Owner: "me"}, []Record{begun}},
		"task":    {Filter{Task: queued.Spec.Task}, []Record{queued}},
		"limited": {Filter{Limit: 2}, []Record{done, begun}},
		"none":    {Filter{Owner: "nobody", Live: true}, nil},
	}
	for name, tt := range tests {
		got, err := s.Runs(ctx, tt.f)
		must(t, err)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %d runs, want %d", name, len(got), len(tt.want))
			continue
		}
		for i := range got {
			if got[i].Spec.Run != tt.want[i].Spec.Run {
				t.Errorf("%s: run %d is another one", name, i)
			}
		}
	}
}

func TestStepIsDoneForItsInputOnly(t *testing.T) {
	s, ctx := openStore(t, t.TempDir()), t.Context()
	run := newRun(t, s).Spec.Run
	must(t, s.StepDone(ctx, run, "provision", "h1", []byte(`{"a":1}`)))
	must(t, s.StepDone(ctx, run, "provision", "h1", []byte(`{"a":2}`)))
	out, done, err := s.Step(ctx, run, "provision", "h1")
	if err != nil || !done || string(out) != `{"a":2}` {
		t.Errorf("%s, %t, %v", out, done, err)
	}
	for _, key := range [][2]string{{"provision", "h2"}, {"cleanup", "h1"}} {
		if _, done, err := s.Step(ctx, run, key[0], key[1]); done || err != nil {
			t.Errorf("%v: %t, %v", key, done, err)
		}
	}
	if _, done, err := s.Step(ctx, newRun(t, s).Spec.Run, "provision", "h1"); done || err != nil {
		t.Errorf("another run: %t, %v", done, err)
	}
}

func TestInputsAreQueuedOnce(t *testing.T) {
	s, ctx := openStore(t, t.TempDir()), t.Context()
	run := newRun(t, s).Spec.Run
	for _, in := range []task.Input{{ID: "a", Text: "1"}, {ID: "b", Text: "2"}, {Text: "3"}, {Text: "4"}} {
		if dup, err := s.AddInput(ctx, run, in); dup || err != nil {
			t.Fatal(dup, err)
		}
	}
	queue, err := s.Inputs(ctx, run)
	must(t, err)
	must(t, s.TakeInput(ctx, run, queue[0].N))
	for _, id := range []string{"a", "b"} {
		if dup, err := s.AddInput(ctx, run, task.Input{ID: id}); !dup || err != nil {
			t.Errorf("input %s again: dup %t, %v", id, dup, err)
		}
	}
	queue, err = s.Inputs(ctx, run)
	must(t, err)
	var got []string
	for _, q := range queue {
		got = append(got, q.Text)
	}
	if fmt.Sprint(got) != "[2 3 4]" {
		t.Errorf("queue %v", got)
	}
}

func TestOldInputsAreForgotten(t *testing.T) {
	s, ctx := openStore(t, t.TempDir()), t.Context()
	run := newRun(t, s).Spec.Run
	for i := range keptInputs + 10 {
		_, err := s.AddInput(ctx, run, task.Input{ID: fmt.Sprint(i)})
		must(t, err)
		queue, err := s.Inputs(ctx, run)
		must(t, err)
		if i != 0 { // the first is never taken, so it is never forgotten
			must(t, s.TakeInput(ctx, run, queue[len(queue)-1].N))
		}
	}
	var n int
	must(t, s.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM inputs`).Scan(&n))
	if n > keptInputs+1 {
		t.Errorf("%d inputs are kept", n)
	}
	for id, want := range map[string]bool{"5": false, "100": true, fmt.Sprint(keptInputs + 9): true} {
		if dup, err := s.AddInput(ctx, run, task.Input{ID: id}); dup != want || err != nil {
			t.Errorf("input %s: dup %t, %v", id, dup, err)
		}
	}
}

// TestSecretsNeverReachTheDiskInClear greps every file of a state directory for a
// value that went through all of it.
func TestSecretsNeverReachTheDiskInClear(t *testing.T) {
	dir := t.TempDir()
	s, ctx := openStore(t, dir), t.Context()
	key, err := seal.Open(filepath.Join(dir, "key"))
	must(t, err)
	const canary = "canary-0123456789-value"
	spec := newSpec()
	spec.Secrets = []string{"CANARY"}
	box, err := key.Seal(string(spec.Run), "CANARY", []byte(canary))
	must(t, err)
	must(t, s.Create(ctx, spec, map[string][]byte{"CANARY": box}))
	must(t, s.PutSecret(ctx, spec.Run, "OTHER", box))
	sealed, err := s.Secrets(ctx, spec.Run)
	must(t, err)
	if got, err := key.Open(string(spec.Run), "CANARY", sealed["CANARY"]); err != nil || string(got) != canary {
		t.Fatalf("%s, %v", got, err)
	}
	grep(t, dir, []byte(canary), false)
	grep(t, dir, box[13:], true) // the search itself works
	rec, err := s.Run(ctx, spec.Run)
	must(t, err)
	must(t, s.Finish(ctx, spec.Run, result(rec, task.StateCompleted)))
	_, err = s.db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	must(t, err)
	grep(t, dir, box[13:], false) // erased, not only unlinked
}

// grep looks for needle in every file below dir.
func grep(t *testing.T, dir string, needle []byte, want bool) {
	t.Helper()
	found := ""
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if bytes.Contains(body, needle) {
			found += " " + path
		}
		return err
	}))
	if (found != "") != want {
		t.Errorf("found in%s, want found: %t", found, want)
	}
}

// BenchmarkRun is what the journal costs a run of seven steps.
func BenchmarkRun(b *testing.B) {
	s, ctx := openStore(b, b.TempDir()), b.Context()
	for b.Loop() {
		rec := newRun(b, s)
		run := rec.Spec.Run
		_, err := s.Claim(ctx, run, "", "me")
		must(b, errors.Join(err, s.Begin(ctx, run), s.SetSandbox(ctx, run, "box")))
		for _, step := range []string{"context", "token", "sandbox", "clone", "agent", "follow", "cleanup"} {
			_, _, err := s.Step(ctx, run, step, "hash")
			must(b, errors.Join(err, s.StepDone(ctx, run, step, "hash", []byte("{}"))))
		}
		must(b, s.Finish(ctx, run, result(rec, task.StateCompleted)))
	}
}

// A run that one version recorded and another began is the other's: a journal is
// replayed by the version that wrote it.
func TestTheVersionIsOfWhoBeganTheRun(t *testing.T) {
	s := openStore(t, t.TempDir())
	rec := newRun(t, s)
	version := func(want string) {
		t.Helper()
		if rec, err := s.Run(t.Context(), rec.Spec.Run); err != nil || rec.Version != want {
			t.Errorf("version %q, %v, want %q", rec.Version, err, want)
		}
	}
	older := func() {
		t.Helper()
		_, err := s.db.ExecContext(t.Context(), `UPDATE runs SET version = '0' WHERE id = ?`, rec.Spec.Run)
		must(t, err)
	}
	older()
	must(t, s.Begin(t.Context(), rec.Spec.Run))
	version(build.Get().Version)
	older()
	must(t, s.Begin(t.Context(), rec.Spec.Run)) // taken over
	version("0")
}
