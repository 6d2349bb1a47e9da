//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/test/fakemodel"
)

// killed is how often the process that carries out a run is killed within one turn.
const killed = 20

// kills kills the background runner within a turn, again and again, and counts what is
// missing or doubled in the log.
func (s *suite) kills(ctx context.Context) ([]row, error) {
	st, err := s.stage("kills")
	if err != nil {
		return nil, err
	}
	defer st.close()
	var rows []row
	for _, c := range s.clients() {
		for _, provider := range []string{"local", "docker"} {
			r := row{what: fmt.Sprintf("%d times kill -9 within a turn, %s, %s", killed, c.name, provider), target: "0 lost, 0 doubled"}
			if why := s.lacks(ctx, c, provider); why != "" {
				r.measured = "not measured: " + why
			} else if r.measured, err = st.killed(ctx, c, provider); err != nil {
				return rows, fmt.Errorf("%s: %w", r.what, err)
			}
			r.yardstick, r.ratio = "-", "-"
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// killed does one run whose turn survives all those ends, and says how.
func (st *stage) killed(ctx context.Context, c client, provider string) (string, error) {
	repo := filepath.Join(st.dir, c.name+"-"+provider)
	if err := gitRepo(ctx, repo, map[string][]byte{"first": []byte("line\n")}); err != nil {
		return "", err
	}
	id, err := st.detach(ctx, "--provider", provider, "--agent", c.name, "--repo", repo, "--host-grace", "2m", script(repo))
	if err != nil {
		return "", err
	}
	defer func() { _, _ = st.say(context.WithoutCancel(ctx), "stop", "--cancel") }() // it is in the way of nothing
	for i := range killed {
		if err := st.killWithin(ctx, id, repo, i); err != nil {
			return "", fmt.Errorf("kill %d: %w", i+1, err)
		}
	}
	if _, err := st.say(ctx, "wait", id, "--timeout", "2m"); err != nil {
		return "", err
	}
	lost, doubled, err := st.gaps(ctx, id)
	if err != nil {
		return "", err
	}
	diff, err := st.say(ctx, "diff", id)
	if err != nil {
		return "", err
	}
	work := "the turn went on to its end"
	if !strings.Contains(diff, worked()) {
		work = "WORK WRONG"
	}
	return fmt.Sprintf("%s; %d events lost, %d doubled", work, lost, doubled), nil
}

// script is a prompt whose every step meets one kill: by turns while the model is in the
// middle of a reply, while it is about to come with many words, and while a tool works.
func script(id string) string {
	steps := []fakemodel.Step{{ID: id}}
	for i := range killed {
		s := fakemodel.Step{Bash: fmt.Sprintf("echo %d >> steps", i)}
		switch i % 3 {
		case 0:
			s.Say, s.Hold = "words before it", gate(id, i)
		case 1:
			s.Say, s.Slow = strings.Repeat("words that take their time ", 20), "10ms"
		case 2:
			s.Bash += fmt.Sprintf("; until [ -e /tmp/go-on-%d ]; do sleep 0.05; done", i)
		}
		steps = append(steps, s)
	}
	return fakemodel.Script(append(steps, fakemodel.Say("it is done"))...)
}

func gate(id string, i int) string { return fmt.Sprintf("%s %d", filepath.Base(id), i) }

// worked is what the diff of a run shows if each step was done once, in order.
func worked() string {
	var b strings.Builder
	for i := range killed {
		fmt.Fprintf(&b, "+%d\n", i)
	}
	return strings.TrimSpace(b.String())
}

// killWithin kills the runner within step i of a script, and has another take its place.
func (st *stage) killWithin(ctx context.Context, run, id string, i int) error {
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var err error
	switch i % 3 {
	case 0:
		err = st.model.Held(bounded, gate(id, i))
	case 1:
		mark := []byte(id) // the model has other conversations behind it
		err = st.model.Await(bounded, func(all []fakemodel.Request) bool {
			last := all[len(all)-1]
			return last.Step == i+1 && bytes.Contains(last.Body, mark)
		})
	case 2:
		mark := []byte(fmt.Sprintf("go-on-%d ", i))
		err = waitFor(ctx, func() bool { return st.told(run, mark) })
	}
	if err == nil {
		err = st.killRunner(ctx)
	}
	if err != nil {
		return err
	}
	st.model.Release(gate(id, i))
	if i%3 == 2 {
		_, err = st.say(ctx, "exec", run, "--", "touch", fmt.Sprintf("/tmp/go-on-%d", i))
	}
	return err
}

// told reports whether a run's agent has begun a tool call with the mark.
func (st *stage) told(run string, mark []byte) bool {
	for p := range logs(filepath.Join(st.dir, "state")) {
		if !strings.Contains(p, run) {
			continue
		}
		b, err := os.ReadFile(p)
		lines := bytes.Split(b, []byte("\n"))
		return err == nil && slices.ContainsFunc(lines, func(line []byte) bool {
			return bytes.Contains(line, []byte(`"tool_call"`)) && bytes.Contains(line, mark)
		})
	}
	return false
}

// killRunner kills the process that carries out the runs, which has no say, and asks for
// the list of runs until another has taken its place.
func (st *stage) killRunner(ctx context.Context) error {
	pid := 0
	err := waitFor(ctx, func() bool { // it may have begun only now
		pid = st.runner()
		return pid > 1
	})
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	return waitFor(ctx, func() bool {
		_, err = st.say(ctx, "ps")
		now := st.runner()
		return err != nil || now > 1 && now != pid
	})
}

// runner is the id of the process that carries out the runs, or 0.
func (st *stage) runner() int {
	all, _ := owner.List(filepath.Join(st.dir, "state")) // none is as good as an error: it is asked again
	for _, o := range all {
		if o.State == owner.StateAlive {
			return o.PID
		}
	}
	return 0
}

// gaps counts what is missing and what is there twice in the log of a run: its own events
// and those of the agent server, of which one line may be several.
func (st *stage) gaps(ctx context.Context, run string) (lost, doubled int, err error) {
	out, err := st.say(ctx, "logs", run, "--json")
	if err != nil {
		return 0, 0, err
	}
	var seq, agents uint64
	ends := 0
	count := func(last *uint64, from, to uint64) {
		lost += int(max(from, *last+1) - *last - 1)
		doubled += int(*last + 1 - min(from, *last+1))
		*last = to
	}
	for line := range strings.Lines(out) {
		ev, err := task.ParseLine([]byte(line))
		if err != nil {
			return lost, doubled, err
		}
		count(&seq, ev.Seq, ev.Seq)
		if ev.EventID > 0 {
			count(&agents, cmp.Or(ev.FirstEventID, ev.EventID), ev.EventID)
		}
		if ev.Kind == task.KindFinished {
			ends++
		}
	}
	if ends != 1 {
		err = errors.New("the log does not have one end")
	}
	return lost, doubled, err
}
