//go:build linux

package bypass

import (
	"context"
	"maps"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/testenv"
)

// Series of attempts.
const (
	seriesDocker = 1 + iota
	seriesDockerRoot
	seriesLocal
	seriesUser
	seriesAllowed
	seriesNeighbour
	seriesUnenforced
	seriesOutside
)

// TestNothingLeaves makes every attempt in a restricted sandbox of every kind.
func TestNothingLeaves(t *testing.T) {
	s := needWorld(t)
	w := newWorld(t, s)
	trials := []*trial{
		{name: "docker", series: seriesDocker, place: func(t *testing.T) place { return dockerPlace(t, s, 1000) }},
		// On a rootless engine the agent has to be root, without any capability.
		{name: "docker as root", series: seriesDockerRoot, place: func(t *testing.T) place { return dockerPlace(t, s, 0) }},
		{name: "local", series: seriesLocal, place: func(t *testing.T) place { return localPlace(t, s) }},
	}
	if s.User {
		trials = []*trial{{name: "local, unprivileged", series: seriesUser, place: func(t *testing.T) place { return localPlace(t, s) }}}
	}
	t.Run("attempts", func(t *testing.T) {
		for _, tr := range trials {
			t.Run(tr.name, func(t *testing.T) {
				t.Parallel()
				tr.run(t, s)
			})
		}
	})
	w.settle(t)
	for _, tr := range trials {
		t.Run("judged: "+tr.name, func(t *testing.T) { tr.judge(t, w) })
	}
	known := map[netip.Addr]bool{}
	for _, a := range allowedAddrs() {
		known[a] = true
	}
	for addr, n := range w.dialled() {
		if !known[addr] {
			t.Errorf("%d connections of restricted sandboxes have arrived at %s", n, addr)
		}
	}
}

func TestUnprivileged(t *testing.T) {
	s := needWorld(t)
	if s.User {
		t.Skip("runs as an ordinary user already")
	}
	asUser(t, s, "^TestNothingLeaves$|^TestOwnServers$")
}

// trial is all attempts in the sandboxes of one place.
type trial struct {
	name   string
	series int
	place  func(t *testing.T) place

	said   map[string]string
	canary string
}

// run makes every attempt in a restricted sandbox, beside another one.
func (tr *trial) run(t *testing.T, s stage) {
	p := tr.place(t)
	want := s.prepare(t)
	tr.canary = want.canary
	next := p.open(t, s, nil, policy()...)
	next.furnish(want.canary)
	b := p.open(t, s, nil, policy()...)
	rows := table()
	tr.said = b.try(s.jobs(want, rows, all(rows), tr.series, inside()...))
	if out, _ := b.sh("echo alive"); strings.TrimSpace(out) != "alive" {
		t.Errorf("after the attempts the sandbox says %q", out)
	}
	// It does reach what it is allowed: were nothing let through, nothing would be shown.
	if out, _ := b.sh(`curl -sS -m 10 http://good.example/; curl -sS -m 10 --noproxy '*' http://good.example/`); out != "world\nworld\n" {
		t.Errorf("after the attempts, of what is allowed: %q", out)
	}
	b.close()
	next.close()
	t.Logf("%d attempts", len(rows))
}

// judge looks where the tokens are.
func (tr *trial) judge(t *testing.T, w *world) {
	testenv.Need(t, "the attempts, which were not made", tr.said != nil)
	missing := regexp.MustCompile(`(attempt|curl|getent|python3|dd|cat|ls|cp|su|find|timeout|printf): (command )?not found`)
	had := regexp.MustCompile(`(?m)^ok$`)
	for n, r := range table() {
		said := tr.said[r.name]
		if missing.MatchString(said) {
			t.Errorf("%s could not be tried: %s", r.name, said)
		}
		for _, at := range w.reached(number(tr.series, n), r.prefix()) {
			t.Errorf("%s (%s): it has reached %s; it said: %s", r.name, r.what, at, said)
		}
		if r.refused && had.MatchString(said) {
			t.Errorf("%s (%s): it has got what it asked for: %s", r.name, r.what, said)
		}
		if r.reads && strings.Contains(said, tr.canary) {
			t.Errorf("%s (%s): it has read %s", r.name, r.what, said)
		}
	}
}

// inside are the variables of attempts in a sandbox.
func inside() []string { return []string{"TOOLS=" + toolsDir, "PID1=1", "CAPTURE=15001"} }

func all(rows []attempt) []int {
	out := make([]int, len(rows))
	for i := range out {
		out[i] = i
	}
	return out
}

// furnish gives the sandbox what the other one wants: files, and servers that go on.
func (b *box) furnish(canary string) {
	b.t.Helper()
	if out, code := b.sh("for f in /dev/shm /tmp /tmp/workspace; do echo " + canary + " > $f/neighbour || exit 1; done"); code != 0 {
		b.t.Fatalf("the neighbour: %s", out)
	}
	for _, args := range [][]string{{"tcp", "0.0.0.0:7777"}, {"unix", "@insights-neighbour"}} {
		ready := make(listening, 1)
		b.serving.Go(func() {
			ctx := context.WithoutCancel(b.t.Context())
			_, _ = b.client.Exec(ctx, wire.Command{Argv: []string{toolsDir + "/attempt", "serve", args[0], args[1], canary}}, agent.Stdio{Out: ready})
		})
		<-ready
	}
}

// listening hears the first word of a server.
type listening chan struct{}

// Write implements io.Writer.
func (l listening) Write(p []byte) (int, error) {
	select {
	case l <- struct{}{}:
	default:
	}
	return len(p), nil
}

// TestEveryAttemptCanSucceed makes every attempt where it has to reach its target: what
// cannot fail proves nothing.
func TestEveryAttemptCanSucceed(t *testing.T) {
	s := needWorld(t)
	if s.User {
		t.Skip("needs root: without a sandbox nothing may be in the way")
	}
	p := localPlace(t, s)
	w := newWorld(t, s)
	want := s.prepare(t)
	rows := table()
	by := map[control][]int{}
	for n, r := range rows {
		by[r.ctl] = append(by[r.ctl], n)
	}
	free := []string{"TOOLS=" + s.tools(), "PID1=", "CAPTURE=15009"}
	series := map[control]int{allowed: seriesAllowed, neighbour: seriesNeighbour, unenforced: seriesUnenforced, outside: seriesOutside}
	said := make([]map[string]string, 4)
	t.Run("attempts", func(t *testing.T) {
		for i, c := range []control{allowed, neighbour, unenforced, outside} {
			jobs := func(more []string) []job { return s.jobs(want, rows, by[c], series[c], more...) }
			t.Run("where it is "+string(c), func(t *testing.T) {
				t.Parallel()
				switch c {
				case allowed:
					b := p.open(t, s, nil, "*")
					said[i] = b.try(jobs(inside()))
				case neighbour:
					b := p.open(t, s, nil, policy()...)
					b.furnish(want.canary)
					said[i] = b.try(jobs(inside()))
				case unenforced:
					said[i] = s.tryFree(t, w, 0, jobs(free))
				case outside:
					said[i] = s.tryFree(t, w, s.Parent, jobs(free))
				}
			})
		}
	})
	w.settle(t)
	what := map[string]string{}
	for _, m := range said {
		maps.Copy(what, m)
	}
	for n, r := range rows {
		reached := len(w.reached(number(series[r.ctl], n), r.prefix())) > 0
		if r.reads {
			reached = strings.Contains(what[r.name], want.canary)
		}
		if !reached && !(r.lacks && strings.Contains(what[r.name], "lacks")) {
			t.Errorf("%s (%s): it has not succeeded where it is %s: %s", r.name, r.what, r.ctl, what[r.name])
		}
	}
}

// TestTheTable holds the table itself to what it promises.
func TestTheTable(t *testing.T) {
	rows := table()
	if len(rows) < 120 {
		t.Errorf("there are %d attempts", len(rows))
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.name] || r.name == "" || r.what == "" || r.group == "" {
			t.Errorf("the row %+v is not one of its own", r)
		}
		seen[r.name] = true
		if !r.reads && !strings.Contains(r.sh, "$T") && !strings.Contains(r.sh, "$N") && !strings.Contains(r.sh, "send") {
			t.Errorf("%s sends no token", r.name)
		}
	}
}
