package journal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/statedb"
	"github.com/Insights/insightscli/internal/task"
)

// work is the process that the crash tests kill: it records runs with steps and
// events as fast as it can, and prints each thing after it became durable.
func work(dir string) {
	ctx := context.Background()
	db, err := statedb.Open(ctx, dir)
	check(err)
	s := New(db.DB, db.Dir)
	for {
		spec := newSpec()
		check(s.Create(ctx, spec, map[string][]byte{"s": []byte("sealed")}))
		fmt.Println("run", spec.Run)
		rec, err := s.Run(ctx, spec.Run)
		check(err)
		l, err := s.OpenLog(ctx, rec)
		check(err)
		for i := range uint64(5) {
			name := fmt.Sprint("step", i)
			check(s.StepDone(ctx, spec.Run, name, "h", []byte(name)))
			fmt.Println("step", spec.Run, name)
			check(l.Append(event(2*i + 1)))
			check(l.Append(event(2*i + 2)))
			check(l.Sync())
			fmt.Println("events", spec.Run, 2*i+2)
		}
		check(l.Close())
		check(s.Finish(ctx, spec.Run, result(rec, task.StateCompleted)))
		fmt.Println("finish", spec.Run)
	}
}

func check(err error) {
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// TestKilledProcessLosesNothing kills the worker after it has printed so many lines,
// at whatever it is doing then, and looks for everything that it had printed.
func TestKilledProcessLosesNothing(t *testing.T) {
	dir := t.TempDir()
	for round := range 25 {
		said := killAfter(t, dir, 1+round*7%31)
		s := openStore(t, dir)
		for _, line := range said {
			verify(t, s, strings.Fields(line))
		}
	}
	s := openStore(t, dir)
	recs, err := s.Runs(t.Context(), Filter{})
	must(t, err)
	for _, rec := range recs { // a run that was cut off goes on
		l, err := s.OpenLog(t.Context(), rec)
		must(t, err)
		last, _ := l.Last()
		for n := last + 1; n <= 11; n++ {
			must(t, l.Append(event(n)))
		}
		must(t, l.Close())
		for i, n := range numbers(t, s, rec, 0) {
			if n != uint64(i+1) {
				t.Fatalf("run %s: event %d at place %d", rec.Spec.Run.Short(), n, i+1)
			}
		}
		sealed, err := s.Secrets(t.Context(), rec.Spec.Run)
		must(t, err)
		if over := rec.State.Terminal(); over != (rec.Result != nil) || over == (len(sealed) == 1) {
			t.Errorf("run %s is %s with result %v and %d secrets", rec.Spec.Run.Short(), rec.State, rec.Result, len(sealed))
		}
	}
}

// killAfter starts the worker, kills it after n lines and returns all that it said.
func killAfter(t *testing.T, dir string, n int) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "JOURNAL_TEST_WORK="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var said []string
	sc := bufio.NewScanner(out)
	for sc.Scan() {
		said = append(said, sc.Text())
		if len(said) == n {
			must(t, cmd.Process.Kill())
		}
	}
	if cmd.Wait() == nil {
		t.Error("the worker ended by itself")
	}
	return said
}

// verify checks that what the worker printed is there.
func verify(t *testing.T, s *Store, said []string) {
	t.Helper()
	if len(said) < 2 || said[0] == "error" {
		t.Fatalf("the worker said %q", said)
	}
	run := task.ID(said[1])
	rec, err := s.Run(t.Context(), run)
	must(t, err)
	switch said[0] {
	case "step":
		if out, done, err := s.Step(t.Context(), run, said[2], "h"); err != nil || !done || string(out) != said[2] {
			t.Errorf("step %s: %s, %t, %v", said[2], out, done, err)
		}
	case "events":
		n, err := strconv.Atoi(said[2])
		must(t, err)
		if got := len(numbers(t, s, rec, 0)); got < n {
			t.Errorf("%d events of run %s, want %d", got, run.Short(), n)
		}
	case "finish":
		if rec.State != task.StateCompleted || rec.Result == nil {
			t.Errorf("run %s is %s", run.Short(), rec.State)
		}
	}
}

// claim is a process that claims every run there is, as soon as its standard input
// ends, and prints those that it got.
func claim(dir string) {
	ctx := context.Background()
	db, err := statedb.Open(ctx, dir)
	check(err)
	s := New(db.DB, db.Dir)
	recs, err := s.Runs(ctx, Filter{})
	check(err)
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	for _, rec := range recs {
		ok, err := s.Claim(ctx, rec.Spec.Run, rec.Owner, fmt.Sprint(os.Getpid()))
		check(err)
		if ok {
			fmt.Println(rec.Spec.Run)
		}
	}
	check(db.Close())
}

// TestOneOfManyProcessesClaims lets several processes claim the same runs at once:
// each run gets exactly one owner, and that one knows.
func TestOneOfManyProcessesClaims(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	for range 30 {
		newRun(t, s)
	}
	procs := make([]*claimer, 4)
	for i := range procs {
		procs[i] = startClaimer(t, dir)
	}
	for _, p := range procs {
		must(t, p.gate.Close())
	}
	owners := map[task.ID]string{}
	for _, p := range procs {
		said, err := io.ReadAll(p.out)
		must(t, err)
		must(t, p.cmd.Wait())
		for run := range strings.FieldsSeq(string(said)) {
			if owners[task.ID(run)] != "" {
				t.Errorf("run %s was given twice", run)
			}
			owners[task.ID(run)] = fmt.Sprint(p.cmd.Process.Pid)
		}
	}
	recs, err := s.Runs(t.Context(), Filter{})
	must(t, err)
	for _, rec := range recs {
		if rec.Owner == "" || rec.Owner != owners[rec.Spec.Run] {
			t.Errorf("run %s belongs to %q, %q thinks", rec.Spec.Run.Short(), rec.Owner, owners[rec.Spec.Run])
		}
	}
	if ok, err := s.Claim(t.Context(), recs[0].Spec.Run, "somebody else", "me"); ok || err != nil {
		t.Errorf("claim from the wrong owner: %t, %v", ok, err)
	}
}

// claimer is a process that waits at its gate.
type claimer struct {
	cmd  *exec.Cmd
	gate io.Closer
	out  *bufio.Reader
}

func startClaimer(t *testing.T, dir string) *claimer {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "JOURNAL_TEST_CLAIM="+dir)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	c := &claimer{cmd, in, bufio.NewReader(out)}
	if line, err := c.out.ReadString('\n'); line != "ready\n" {
		t.Fatal(line, err)
	}
	return c
}
