//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/statedb"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/tui/longlog"
)

const (
	longEvents = 1_000_000
	liveRate   = 20_000 // events a second
	liveFor    = 5 * time.Second
)

// screen measures what is shown on a terminal.
func (s *suite) screen(ctx context.Context) ([]row, error) {
	rows, err := s.longScreen(ctx)
	if err != nil {
		return rows, err
	}
	live, err := s.liveScreen(ctx)
	rows = append(rows, live...)
	if err != nil {
		return rows, err
	}
	slowed, err := s.slowedRun(ctx)
	return append(rows, slowed...), err
}

// fakeRun records a run and returns the path of its log.
func fakeRun(ctx context.Context, state string, ended bool) (spec task.Spec, path string, err error) {
	db, err := statedb.Open(ctx, state)
	if err != nil {
		return spec, "", err
	}
	defer func() { _ = db.Close() }() // what was written is durable
	store := journal.New(db.DB, state)
	spec = task.Spec{
		V: task.SpecVersion, Task: task.NewID(), Run: task.NewID(), Team: 1, User: 1, Title: "a long run", Agent: task.Agent{Name: task.AgentClaude},
		Provider: "local", Mode: task.ModeBackground, OriginProduct: "user_created",
	}
	if err := store.Create(ctx, spec, nil); err != nil {
		return spec, "", err
	}
	if path = store.LogPath(spec); ended {
		now := time.Now()
		err = store.Finish(ctx, spec.Run, task.Result{Run: spec.Run, Task: spec.Task, State: task.StateCompleted, Started: now, Finished: now})
	}
	return spec, path, first(err, os.MkdirAll(filepath.Dir(path), 0o700))
}

// first is the first error of several.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// terminal is a program at a terminal of its own, and what it has shown.
type terminal struct {
	cmd    *exec.Cmd
	ptmx   *os.File
	mu     sync.Mutex
	seen   bytes.Buffer
	writes []time.Time // when something was shown
	more   chan struct{}
}

func (s *suite) terminal(ctx context.Context, state string, args ...string) (*terminal, error) {
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	number, err := unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN)
	if err := first(err, unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(int(ptmx.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120})); err != nil {
		return nil, err
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tty.Close() }() // the program has its own
	t := &terminal{cmd: exec.CommandContext(ctx, s.cli, args...), ptmx: ptmx, more: make(chan struct{}, 1)}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "CI=") {
			t.cmd.Env = append(t.cmd.Env, v)
		}
	}
	t.cmd.Env = append(t.cmd.Env, "TERM=xterm-256color", "INSIGHTSCLI_STATE_DIR="+state, "SANDBOX_PROVIDER=local", "INSIGHTSCLI_NETWORK=link")
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = tty, tty, tty
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	go t.read()
	return t, nil
}

// read takes what is shown until the terminal is closed.
func (t *terminal) read() {
	buf := make([]byte, 256<<10)
	for {
		n, err := t.ptmx.Read(buf)
		t.mu.Lock()
		t.seen.Write(buf[:n])
		t.writes = append(t.writes, time.Now())
		t.mu.Unlock()
		select {
		case t.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// until waits until words are shown that were not shown before it was called.
func (t *terminal) until(from int, words string) error {
	late := time.After(time.Minute)
	for {
		t.mu.Lock()
		ok := bytes.Contains(t.seen.Bytes()[min(from, t.seen.Len()):], []byte(words))
		t.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-t.more:
		case <-late:
			return fmt.Errorf("%q was not shown within a minute", words)
		}
	}
}

func (t *terminal) mark() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen.Len()
}

// key presses a key and returns how long it takes until the screen changes.
func (t *terminal) key(k string) (time.Duration, error) {
	select {
	case <-t.more:
	default:
	}
	begin := time.Now()
	if _, err := t.ptmx.WriteString(k); err != nil {
		return 0, err
	}
	select {
	case <-t.more:
		return time.Since(begin), nil
	case <-time.After(10 * time.Second):
		return 0, fmt.Errorf("nothing changes after %q", k)
	}
}

func (t *terminal) leave() error {
	if _, err := t.ptmx.WriteString("\x1bq"); err != nil {
		return err
	}
	_ = t.cmd.Process.Signal(syscall.SIGTERM)
	_ = t.cmd.Wait() // by the signal
	return t.ptmx.Close()
}

// peak is the most memory that the program had, in MB.
func (t *terminal) peak() int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", t.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kb, _ := strconv.Atoi(strings.Fields(rest + " 0")[0])
	return kb >> 10
}

// longScreen opens a run with a million events.
func (s *suite) longScreen(ctx context.Context) ([]row, error) {
	state := filepath.Join(s.tmp, "screen")
	spec, path, err := fakeRun(ctx, state, true)
	if err != nil {
		return nil, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := first(longlog.Write(f, longEvents), f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(path) }()
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var firsts []time.Duration
	var t *terminal
	for range s.n {
		begin := time.Now()
		if t, err = s.terminal(ctx, state, "tui", string(spec.Run)); err != nil {
			return nil, err
		}
		if err := t.until(0, "completed in 16m40s"); err != nil {
			return nil, err
		}
		firsts = append(firsts, time.Since(begin))
		if err := t.leave(); err != nil {
			return nil, err
		}
	}
	what := fmt.Sprintf("screen of 1,000,000 events (%d MB)", info.Size()>>20)
	rows := []row{{what: what + ": the first frame", measured: ms(median(firsts)), target: "≤ 300 ms"}}
	if t, err = s.terminal(ctx, state, "tui", string(spec.Run)); err != nil {
		return rows, err
	}
	if err := t.until(0, "completed in 16m40s"); err != nil {
		return rows, err
	}
	early, err := t.keys("k", 20) // while the rest is read
	if err != nil {
		return rows, err
	}
	if err := t.until(0, "50000 requests"); err != nil { // all was read
		return rows, err
	}
	scroll, err := t.keys("k\x1b[5~k", 60)
	if err != nil {
		return rows, err
	}
	typed, err := t.search(longlog.Needle + " 24")
	if err != nil {
		return rows, err
	}
	rows = append(rows,
		row{what: what + ": a key while it is still read", measured: keyTimes(early), target: "≤ 50 ms"},
		row{what: what + ": a key that scrolls", measured: keyTimes(scroll), target: "≤ 50 ms"},
		row{what: what + ": a key of a search", measured: keyTimes(typed), target: "≤ 50 ms"},
		row{what: what + ": RSS", measured: fmt.Sprintf("%d MB", t.peak()), target: "≤ 150 MB"})
	return rows, t.leave()
}

// keys presses keys in turn, n times.
func (t *terminal) keys(names string, n int) (all []time.Duration, err error) {
	each := strings.Split(strings.ReplaceAll(names, "\x1b[5~", ","), "")
	for i := range n {
		k := each[i%len(each)]
		if k == "," {
			k = "\x1b[5~"
		}
		d, err := t.key(k)
		if err != nil {
			return all, err
		}
		all = append(all, d)
	}
	return all, nil
}

func (t *terminal) search(query string) (all []time.Duration, err error) {
	for _, c := range "/" + query {
		d, err := t.key(string(c))
		if err != nil {
			return all, err
		}
		all = append(all, d)
	}
	return all, nil
}

// keyTimes are the median and the slowest of some keys.
func keyTimes(ds []time.Duration) string {
	return ms(median(ds)) + ", slowest of " + strconv.Itoa(len(ds)) + " " + ms(slices.Max(ds))
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}

// liveScreen follows a log that grows by 20,000 events a second.
func (s *suite) liveScreen(ctx context.Context) ([]row, error) {
	state := filepath.Join(s.tmp, "screen")
	spec, path, err := fakeRun(ctx, state, false)
	if err != nil {
		return nil, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nobody reads it afterwards
	t, err := s.terminal(ctx, state, "tui", string(spec.Run))
	if err != nil {
		return nil, err
	}
	if err := t.until(0, "following"); err != nil {
		return nil, err
	}
	begin := time.Now()
	n := 0
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var line []byte
	for time.Since(begin) < liveFor {
		<-tick.C
		line = line[:0]
		for due := int(time.Since(begin).Seconds() * liveRate); n < due; {
			n++
			line = longlog.Event(n).AppendLine(line)
		}
		if _, err := f.Write(line); err != nil {
			return nil, err
		}
	}
	end := time.Now()
	frames := t.frames(begin, end)
	finished := longlog.Finished(n + 1)
	from := t.mark()
	if _, err := f.Write(finished.AppendLine(nil)); err != nil {
		return nil, err
	}
	if err := t.until(from, "completed in"); err != nil {
		return nil, err
	}
	behind := time.Since(end)
	rows := []row{
		{what: "screen of a run with 20,000 events/s: frames", measured: fmt.Sprintf("%.0f a second", float64(frames)/end.Sub(begin).Seconds()), target: "≥ 10 a second"},
		{what: "screen of a run with 20,000 events/s: its end is shown", measured: ms(behind) + " later", target: "-"},
	}
	return rows, t.leave()
}

// frames counts what was shown within a time, writes of the same frame as one.
func (t *terminal) frames(begin, end time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	var last time.Time
	for _, at := range t.writes {
		if at.After(begin) && at.Before(end) && at.Sub(last) > 10*time.Millisecond {
			n++
			last = at
		}
	}
	return n
}

// slowedRun compares a run on the screen with one in plain lines.
func (s *suite) slowedRun(ctx context.Context) ([]row, error) {
	state := filepath.Join(s.tmp, "slowed")
	// 20,000 lines a second, each of which is an event of its own while it stands alone.
	const work = `i=0; while [ $i -lt 100 ]; do seq 1 1000; i=$((i+1)); sleep 0.02; done`
	run := func(args ...string) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) {
			t, err := s.terminal(ctx, state, append(append([]string{"run"}, args...), "--", "sh", "-c", work)...)
			if err != nil {
				return 0, err
			}
			if err := t.until(0, "completed in"); err != nil {
				return 0, err
			}
			err = t.cmd.Wait()
			_ = t.ptmx.Close() // nothing is shown any more
			return s.lastRun(ctx, state, err)
		}
	}
	took, err := inTurn(ctx, max(3, s.n/3), run(), run("--plain"))
	if err != nil {
		return nil, err
	}
	return []row{{
		what: "a run on the screen", measured: ms(took[0]), yardstick: "--plain " + ms(took[1]), ratio: ratio(took[0], took[1]), target: "≤ 1.05",
	}}, nil
}

// lastRun is how long the last run was at work, from its record: what the process does
// before and after it is not the run.
func (s *suite) lastRun(ctx context.Context, state string, failed error) (time.Duration, error) {
	if failed != nil {
		return 0, failed
	}
	cmd := exec.CommandContext(ctx, s.cli, "show", "latest", "--json")
	cmd.Env = append(os.Environ(), "INSIGHTSCLI_STATE_DIR="+state)
	out, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	var r struct{ Result task.Result }
	if err := json.Unmarshal(out, &r); err != nil {
		return 0, err
	}
	return r.Result.Finished.Sub(r.Result.Started), nil
}
