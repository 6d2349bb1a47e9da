//go:build linux

package bypass

import (
	"context"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link/wire"
)

func TestNothingLeavesDocker(t *testing.T) {
	s := needWorld(t)
	nothingLeaves(t, s, dockerPlace(t, s, 1000), "d")
}

// In a rootless engine the agent has to be root, without any capability.
func TestNothingLeavesDockerAsRoot(t *testing.T) {
	s := needWorld(t)
	nothingLeaves(t, s, dockerPlace(t, s, 0), "r")
}

func TestNothingLeavesLocal(t *testing.T) {
	s := needWorld(t)
	nothingLeaves(t, s, localPlace(t, s), "l")
}

func TestUnprivileged(t *testing.T) {
	s := needWorld(t)
	if s.User {
		t.Skip("runs as an ordinary user already")
	}
	asUser(t, s, "^TestNothingLeavesLocal$")
}

// nothingLeaves makes every attempt in a restricted sandbox, beside another one.
func nothingLeaves(t *testing.T, s stage, p place, salt string) {
	w := newWorld(t, s)
	want := s.prepare(t)
	next := p.open(t, s, nil, policy()...)
	next.furnish(want.canary)
	b := p.open(t, s, nil, policy()...)
	rows := table()
	said := b.try(s.jobs(want, rows, all(rows), salt, "TOOLS="+toolsDir, "PID1=1", "CAPTURE=15001"))
	if out, _ := b.sh("echo alive"); strings.TrimSpace(out) != "alive" {
		t.Errorf("after the attempts the sandbox says %q", out)
	}
	// The sandbox does reach what it is allowed: were nothing let through, nothing would be shown.
	if out, _ := b.sh(`curl -sS -m 10 http://good.example/; curl -sS -m 10 --noproxy '*' http://good.example/`); out != "world\nworld\n" {
		t.Errorf("after the attempts, of what is allowed: %q", out)
	}
	b.close()
	next.close()
	w.settle(t)
	for n, r := range rows {
		for _, at := range w.reached(token(n, salt), forbidden(n), within(r)) {
			t.Errorf("%s (%s): it has reached %s; it said: %s", r.name, r.what, at, said[r.name])
		}
		if r.reads && strings.Contains(said[r.name], want.canary) {
			t.Errorf("%s (%s): it has read %s", r.name, r.what, said[r.name])
		}
		if said[r.name] == "" && testing.Verbose() {
			t.Logf("%s said nothing", r.name)
		}
	}
	known := map[netip.Addr]bool{}
	for _, a := range allowedAddrs() {
		known[a] = true
	}
	for addr, n := range w.dialled() {
		if !known[addr] {
			t.Errorf("%d connections of a restricted sandbox have arrived at %s", n, addr)
		}
	}
	t.Logf("%d attempts", len(rows))
}

func all(rows []attempt) []int {
	out := make([]int, len(rows))
	for i := range out {
		out[i] = i
	}
	return out
}

// forbidden are the addresses that only the N-th attempt knows.
func forbidden(n int) []netip.Addr {
	ip := evilAddr(n).As4()
	mapped := [16]byte{0, 0x64, 0xff, 0x9b}
	copy(mapped[12:], ip[:])
	six := [16]byte{0x20, 2, ip[0], ip[1], ip[2], ip[3], 15: 1}
	return []netip.Addr{evilAddr(n), evilAddr6(n), netip.AddrFrom16(mapped), netip.AddrFrom16(six)}
}

func within(r attempt) netip.Prefix {
	if r.within == "" {
		return netip.Prefix{}
	}
	return netip.MustParsePrefix(r.within)
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
		if os.Getenv("BYPASS_ALL_CONTROLS") != "" {
			by[allowed], by[unenforced] = all(rows), all(rows)
		}
	}
	said := map[string]string{}
	b := p.open(t, s, nil, "*")
	for name, text := range b.try(s.jobs(want, rows, by[allowed], "a", "TOOLS="+toolsDir, "PID1=1", "CAPTURE=15001")) {
		said[name] += text
	}
	b.close()
	next := p.open(t, s, nil, policy()...)
	next.furnish(want.canary)
	for name, text := range next.try(s.jobs(want, rows, by[neighbour], "n", "TOOLS="+toolsDir, "PID1=1", "CAPTURE=15001")) {
		said[name] += text
	}
	next.close()
	free := []string{"TOOLS=" + s.tools(), "PID1=", "CAPTURE=15009"}
	for name, text := range s.tryFree(t, w, 0, s.jobs(want, rows, by[unenforced], "u", free...)) {
		said[name] += text
	}
	for name, text := range s.tryFree(t, w, s.Parent, s.jobs(want, rows, by[outside], "o", free...)) {
		said[name] += text
	}
	w.settle(t)
	salts := map[control]string{allowed: "a", neighbour: "n", unenforced: "u", outside: "o"}
	for n, r := range rows {
		if os.Getenv("BYPASS_ALL_CONTROLS") != "" {
			t.Logf("%-28s allowed %-5v off %-5v (is %q)", r.name, len(w.reached(token(n, "a"), nil, within(r))) > 0, len(w.reached(token(n, "u"), nil, within(r))) > 0, r.ctl)
		}
		reached := len(w.reached(token(n, salts[r.ctl]), forbidden(n), within(r))) > 0
		if r.reads {
			reached = strings.Contains(said[r.name], want.canary)
		}
		if !reached && !(r.lacks && strings.Contains(said[r.name], "lacks")) {
			t.Errorf("%s (%s): it has not succeeded where it may (%s): %s", r.name, r.what, r.ctl, said[r.name])
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
