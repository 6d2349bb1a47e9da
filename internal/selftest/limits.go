package selftest

import (
	"context"
	"fmt"
	"slices"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
)

// ownEnd is what there is to do about a limit that ends more than it should.
const ownEnd = "set --memory high enough; nobody else is harmed"

// limit judges one limit, of which the provider may say that nothing holds it.
func (t *test) limit(r row, l sandbox.Limit, held bool, what string) row {
	unheld := false
	if u, able := t.tight.sandbox.(sandbox.Limiter); able {
		unheld = slices.Contains(u.Unheld(), l)
	}
	switch {
	case held:
	case unheld:
		r.warn("nothing holds it here", "use another engine or --provider, or a session with delegated cgroups (version 2)")
	default:
		r.wrong(what)
	}
	return r
}

func (t *test) processes(ctx context.Context) (row, error) {
	r := row{code: "sandbox-pids", title: "The limit of processes holds", fix: elsewhere}
	var tried wire.Tried
	err := t.tight.probe.ask(ctx, wire.ProbeProcesses, 2*limitPIDs, &tried)
	if t.gone(ctx, err) {
		r.warn("too many processes end their whole sandbox", ownEnd)
		return r, nil
	}
	if err != nil {
		return r, err
	}
	r.text = fmt.Sprintf("no more after %d of %d: %s", tried.Done, limitPIDs, tried.Error)
	return t.limit(r, sandbox.LimitPIDs, tried.Done <= limitPIDs && tried.Error != "", fmt.Sprintf("%d processes where %d are allowed", tried.Done, limitPIDs)), nil
}

func (t *test) cpus(ctx context.Context) (row, error) {
	const threads, most = 3, 1.5 * limitCPUs
	r := row{code: "sandbox-cpus", title: "The limit of processors holds", fix: elsewhere}
	var c wire.CPUTime
	if err := t.tight.probe.ask(ctx, wire.ProbeCPU, threads, &c); err != nil {
		return r, err
	}
	got := c.Used / max(c.Wall, 1e-3)
	r.text = fmt.Sprintf("%d busy threads got %.2f of a core, %.1f are allowed", threads, got, limitCPUs)
	if t.Foreign && got > most {
		// Its own kernel counts the time in which it does not get to run, too.
		r.skipped = "cannot be told by the clock of a kernel of its own"
		return r, nil
	}
	return t.limit(r, sandbox.LimitCPUs, got <= most, r.text), nil
}

// gone reports, and remembers, that the sandbox itself has ended: a limit held at the price
// of the whole.
func (t *test) gone(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	select {
	case <-t.tight.client.Lost():
		t.lost = true
	default:
	}
	return t.lost
}

// memory comes last: it is what may end the sandbox.
func (t *test) memory(ctx context.Context) (row, error) {
	const more = 2 * limitMemory
	r := row{code: "sandbox-memory", title: "The limit of memory holds", fix: elsewhere}
	if t.lost {
		r.skipped = "the sandbox is gone already"
		return r, nil
	}
	var tried wire.Tried
	err := t.tight.probe.ask(ctx, wire.ProbeMemory, more, &tried)
	if err == nil {
		_, err = t.tight.client.Health(ctx)
	}
	if t.gone(ctx, err) {
		r.warn("a process that uses too much ends its whole sandbox", ownEnd)
		return r, nil
	}
	r.text = fmt.Sprintf("a process that wanted %d MiB of %d was ended: %s", more, limitMemory, tried.Error)
	return t.limit(r, sandbox.LimitMemory, tried.Error != "", fmt.Sprintf("a process used %d MiB where %d are allowed", tried.Done, limitMemory)), err
}
