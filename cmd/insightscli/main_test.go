package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// cost is what the initialisation of packages allocates. Allocations are the same on
// every machine, and what takes long there allocates: expressions and schemas that are
// compiled, tables that are filled.
type cost struct{ bytes, allocs int }

func (c cost) over(bound cost) bool { return c.bytes > bound.bytes || c.allocs > bound.allocs }

// TestStartIsCheap: what a package initialises is paid by every command, also by
// version. Compile expressions and fill tables at their first use (sync.OnceValue); of a
// library that does not, find one that does, or keep it out of the program.
func TestStartIsCheap(t *testing.T) {
	const module = "github.com/Insights/insightscli/"
	var (
		ofOurs   = cost{50_000, 500}
		ofOthers = cost{500_000, 5_000} // distribution/reference, which docker's client needs, comes near
		ofAll    = cost{1_300_000, 12_000}
		all      cost
	)
	for name, c := range initialised(t) {
		bound := ofOthers
		if strings.HasPrefix(name, module) {
			bound = ofOurs
		}
		if c.over(bound) {
			t.Errorf("%s allocates %+v when the program starts, more than %+v", name, c, bound)
		}
		all.bytes, all.allocs = all.bytes+c.bytes, all.allocs+c.allocs
	}
	if all.over(ofAll) {
		t.Errorf("all packages together allocate %+v when the program starts, more than %+v", all, ofAll)
	}
}

// initialised starts this test's program once more, which holds all that the command
// holds, and reads what the initialisation of each package cost.
func initialised(t *testing.T) map[string]cost {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	costs := map[string]cost{}
	for line := range strings.Lines(string(out)) {
		var (
			name      string
			at, clock float64
			c         cost
		)
		n, _ := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &clock, &c.bytes, &c.allocs)
		if n == 5 {
			costs[name] = c
		}
	}
	if _, ok := costs["runtime"]; !ok {
		t.Fatalf("there is no trace in %s", out)
	}
	return costs
}
