package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	module  = "github.com/Insights/insightscli/"
	schemas = "github.com/santhosh-tekuri/jsonschema/v6"
)

// cost is what the initialisation of packages allocates. Allocations are the same on
// every machine, and what takes long there allocates: expressions and schemas that are
// compiled, tables that are filled.
type cost struct{ bytes, allocs int }

func (c cost) over(bound cost) bool { return c.bytes > bound.bytes || c.allocs > bound.allocs }

// TestStartIsCheap: what a package initialises is paid by every command, also by
// version. Compile expressions and fill tables at their first use (sync.OnceValue); of a
// library that does not, find one that does, or keep it out of the program. internal/reply
// says why there is one that costs more.
func TestStartIsCheap(t *testing.T) {
	var (
		ofOurs   = cost{50_000, 500}
		ofOthers = cost{500_000, 5_000} // distribution/reference, which docker's client needs, comes near
		ofSchema = cost{1_900_000, 24_000}
		ofAll    = cost{3_200_000, 36_000}
		all      cost
	)
	_, costs := initialised(t)
	for name, c := range costs {
		bound := ofOthers
		switch {
		case strings.HasPrefix(name, module):
			bound = ofOurs
		case name == schemas:
			bound = ofSchema
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

// TestFirstCollectionWaits: the order of packages follows from their paths and from what
// they import, so that a move, or an import more, could put an end to what internal/firstgc does.
func TestFirstCollectionWaits(t *testing.T) {
	order, _ := initialised(t)
	wait, begin := slices.Index(order, module+"internal/firstgc"), slices.Index(order, schemas)
	if wait < 0 || begin < wait {
		t.Errorf("internal/firstgc is initialised as number %d, the schemas as number %d", wait, begin)
	}
}

// initialised starts this test's program once more, which holds all that the command
// holds, and reads in which order packages are initialised and what each of them cost.
func initialised(t *testing.T) ([]string, map[string]cost) {
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
	var order []string
	costs := map[string]cost{}
	for line := range strings.Lines(string(out)) {
		var (
			name      string
			at, clock float64
			c         cost
		)
		n, _ := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &clock, &c.bytes, &c.allocs)
		if n == 5 {
			order = append(order, name)
			costs[name] = c
		}
	}
	if _, ok := costs["runtime"]; !ok {
		t.Fatalf("there is no trace in %s", out)
	}
	return order, costs
}
