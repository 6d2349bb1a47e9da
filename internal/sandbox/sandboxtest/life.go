package sandboxtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/sandbox"
)

var lifeTests = []test{
	{name: "create and destroy", run: createAndDestroy},
	{name: "destroy twice", run: destroyTwice},
	{name: "destroy after cancel", run: destroyAfterCancel},
	{name: "destroy in the middle of a command", run: destroyBusy},
	{name: "create cancelled", run: createCancelled},
	{name: "list by label", run: listByLabel},
	{name: "reopen", run: reopen},
	{name: "unknown id", run: unknownID},
	{name: "lost create reply", run: lostReply},
	{name: "second create replaces the first", run: createAgain},
	{name: "wait", run: wait},
	{name: "shutdown ends it", run: shutdown},
	{name: "20 at once", run: twenty},
}

func createAndDestroy(l *lab) {
	box, c, _ := l.start()
	h, err := c.Health(l.context())
	if err != nil || h.Status != "ok" || h.HasSession {
		l.Fatalf("health: %+v, %v", h, err)
	}
	l.destroy(box)
	<-c.Lost()
	l.gone(box.ID())
}

// gone fails the test unless no trace of the sandbox is left.
func (l *lab) gone(id sandbox.ID) {
	l.Helper()
	if slices.Contains(l.listed(l.Provider), id) {
		l.Errorf("%s is still listed", id)
	}
	if _, err := l.Provider.Open(l.context(), id); !errors.Is(err, sandbox.ErrNotFound) {
		l.Errorf("open %s: %v, want ErrNotFound", id, err)
	}
}

func destroyTwice(l *lab) {
	box, _, r := l.start()
	again, err := l.another().Open(l.context(), box.ID())
	if err != nil {
		l.Fatal(err)
	}
	l.destroy(box)
	l.destroy(box)
	l.destroy(again) // another handle of what is gone
	l.gone(box.ID())
	if _, err := box.Link(l.context()); err == nil {
		l.Errorf("a link to the destroyed sandbox of run %s", r.key.Run)
	}
}

// destroyAfterCancel: the context of the work has ended, as after Ctrl-C. Clean-up
// has one of its own, but a caller who forgets that must not be told that all is
// well while the sandbox lives.
func destroyAfterCancel(l *lab) {
	box, c, _ := l.start()
	work, cancel := context.WithCancel(l.context())
	_, _ = c.Exec(work, sh("true"), agent.Stdio{})
	cancel()
	err := box.Destroy(work)
	if err == nil {
		l.gone(box.ID())
	}
	l.destroy(box)
	l.gone(box.ID())
}

// destroyBusy: nothing that runs in it, and no way in which it ignores signals, keeps
// a sandbox alive.
func destroyBusy(l *lab) {
	box, c, _ := l.start()
	started := newSignal("ready")
	ctx := l.context()
	go func() {
		_, err := c.Exec(ctx, sh(`trap "" INT TERM HUP; echo ready; while :; do sleep 1; done`), agent.Stdio{Out: started})
		started.ended <- err
	}()
	started.wait(l)
	l.destroy(box)
	<-started.ended
	l.gone(box.ID())
}

func createCancelled(l *lab) {
	for _, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 50 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(l.context(), after)
		box, err := l.Provider.Create(ctx, l.newRun().encoded(l))
		cancel()
		if err == nil { // it was quicker
			l.destroy(box)
		}
		if ids := l.listed(l.Provider); len(ids) > 0 {
			l.Errorf("cancelled after %v (%v): %v left", after, err, ids)
		}
	}
}

func listByLabel(l *lab) {
	a, b := l.newRun(), l.newRun()
	boxA, boxB := l.create(a), l.create(b)
	infos, err := l.Provider.List(l.context(), map[string]string{sandbox.LabelRun: a.key.Run})
	if err != nil || len(infos) != 1 || infos[0].ID != boxA.ID() || !infos[0].Running {
		l.Fatalf("by run: %+v, %v", infos, err)
	}
	for k, v := range a.spec.Labels {
		if infos[0].Labels[k] != v {
			l.Errorf("label %s is %q, want %q", k, infos[0].Labels[k], v)
		}
	}
	if age := time.Since(infos[0].Created); age < -time.Minute || age > hang {
		l.Errorf("created %v ago", age)
	}
	want := []sandbox.ID{boxA.ID(), boxB.ID()}
	slices.Sort(want)
	if ids := l.listed(l.another()); !slices.Equal(slices.Sorted(slices.Values(ids)), want) {
		l.Errorf("by state: %v, want %v", ids, want)
	}
	both := maps.Clone(a.spec.Labels)
	both[sandbox.LabelTask] = b.boot.Task
	if infos, err := l.Provider.List(l.context(), both); err != nil || len(infos) > 0 {
		l.Errorf("labels of two sandboxes at once: %+v, %v", infos, err)
	}
}

func reopen(l *lab) {
	box, c, r := l.start()
	l.want(c, "echo here > /tmp/left; cat /tmp/left", "here")
	_ = c.Close()
	again, err := l.another().Open(l.context(), box.ID())
	if err != nil {
		l.Fatal(err)
	}
	if again.ID() != box.ID() {
		l.Errorf("reopened %s as %s", box.ID(), again.ID())
	}
	l.want(l.connect(again, r.key), "cat /tmp/left; rm /tmp/left", "here")
	l.destroy(again)
	l.gone(box.ID())
}

func unknownID(l *lab) {
	for _, id := range []sandbox.ID{"", "no-such-sandbox", "../../etc", "/", "00000000-0000-4000-8000-000000000000", "a\nb"} {
		if _, err := l.Provider.Open(l.context(), id); !errors.Is(err, sandbox.ErrNotFound) {
			l.Errorf("open %q: %v, want ErrNotFound", id, err)
		}
	}
}

// lostReply: the sandbox was made, but whoever asked for it died before the answer.
// Its labels lead to it.
func lostReply(l *lab) {
	r := l.newRun()
	if _, err := l.Provider.Create(l.context(), r.encoded(l)); err != nil {
		l.Fatal(err)
	}
	p := l.another()
	ids := l.listed(p)
	if len(ids) != 1 {
		l.Fatalf("listed %v, want one", ids)
	}
	box, err := p.Open(l.context(), ids[0])
	if err != nil {
		l.Fatal(err)
	}
	l.want(l.connect(box, r.key), "echo alive", "alive")
	l.destroy(box)
	l.gone(ids[0])
}

// createAgain: a recovering runner repeats the step whose answer it does not know.
func createAgain(l *lab) {
	r := l.newRun()
	first := l.create(r)
	lost := l.connect(first, r.key)
	second := l.create(r)
	<-lost.Lost()
	if ids := l.listed(l.Provider); !slices.Equal(ids, []sandbox.ID{second.ID()}) {
		l.Errorf("listed %v, want %s only", ids, second.ID())
	}
	l.want(l.connect(second, r.key), "echo second", "second")
}

func wait(l *lab) {
	box, _, _ := l.start()
	short, cancel := context.WithTimeout(l.context(), 10*time.Millisecond)
	defer cancel()
	if _, err := box.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		l.Errorf("wait for a live one: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := box.Wait(l.context())
		ended <- err
	}()
	l.destroy(box)
	if err := <-ended; err != nil && !errors.Is(err, sandbox.ErrNotFound) {
		l.Errorf("wait: %v", err)
	}
}

func shutdown(l *lab) {
	box, c, _ := l.start()
	if err := c.Shutdown(l.context()); err != nil {
		l.Fatal(err)
	}
	if exit, err := box.Wait(l.context()); err != nil || exit.Code > 0 {
		l.Errorf("wait: %+v, %v", exit, err)
	}
	if _, err := box.Link(l.context()); err == nil {
		l.Error("a link to a sandbox that has ended")
	}
	for _, info := range mustList(l) {
		if info.Running {
			l.Errorf("%s is listed as running", info.ID)
		}
	}
	l.destroy(box)
	l.gone(box.ID())
}

func mustList(l *lab) []sandbox.Info {
	l.Helper()
	infos, err := l.Provider.List(l.context(), map[string]string{sandbox.LabelState: l.state})
	if err != nil {
		l.Fatal(err)
	}
	return infos
}

func twenty(l *lab) {
	var all sync.WaitGroup
	for range 20 {
		r := l.newRun()
		all.Go(func() {
			if err := oneOfMany(l, r); err != nil {
				l.Errorf("run %s: %v", r.key.Run, err)
			}
		})
	}
	all.Wait()
	if ids := l.listed(l.Provider); len(ids) > 0 {
		l.Errorf("%v left", ids)
	}
}

// oneOfMany is a whole life; it may not use what ends the test from another
// goroutine.
func oneOfMany(l *lab, r run) (err error) {
	ctx := l.context()
	box, err := l.Provider.Create(ctx, r.encoded(l))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Destroy(ctx)) }()
	conn, err := box.Link(ctx)
	if err != nil {
		return err
	}
	c, err := agent.Connect(ctx, conn, r.key, nil)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if code, err := c.Exec(ctx, sh("exit 7"), agent.Stdio{}); code != 7 {
		return errors.Join(errors.New("exit code is not 7"), err)
	}
	return nil
}
