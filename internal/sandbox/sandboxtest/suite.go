// Package sandboxtest is the contract of package sandbox as a suite of tests that
// every provider must pass, against a real agent server:
//
//	func TestConformance(t *testing.T) {
//		sandboxtest.Run(t, func(t *testing.T, root string) sandboxtest.Fixture { ... })
//	}
//
// The suite makes its own keys, and talks to PID 1 through package agent as the
// runner does. It asserts what a user would notice: what a command printed, what is
// left behind, how long nothing hangs. It knows no provider; where the contract
// leaves room the [Fixture] says what holds.
package sandboxtest

import (
	"testing"

	"github.com/Insights/insightscli/internal/sandbox"
)

// Factory returns the provider under test. It is called once a test; the provider's
// state, if it keeps any on disk, is below root, an empty directory of the test with
// a path of any length. What it starts it ends in t.Cleanup.
type Factory func(t *testing.T, root string) Fixture

// Fixture is a provider and what the suite must know about it.
type Fixture struct {
	Provider sandbox.Provider
	// Reopen returns another provider over the same sandboxes, as another process
	// would have it. nil: the same one.
	Reopen func(t *testing.T) sandbox.Provider
	// AgentServer is the path of the static agent-server binary; it may be empty
	// where the provider has the server in process.
	AgentServer string
	// Image is the reference of an image with a shell and coreutils; empty where
	// the provider has none.
	Image string
	// UID and GID are the agent's.
	UID, GID int
	// Isolated says that commands run in a place of their own. Where it is false
	// (the memory provider) what only isolation gives is not asked for.
	Isolated bool
	// SocketShared says that the host opens PID 1's socket in Spec.Dir itself.
	SocketShared bool
}

// Run runs the suite. Each test has its own provider.
func Run(t *testing.T, factory Factory) {
	for _, group := range [][]test{lifeTests, linkTests, execTests, sessionTests, isolationTests, networkTests} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) { c.run(newLab(t, factory, c.root(t))) })
		}
	}
}

// test is one of the suite.
type test struct {
	name string
	run  func(l *lab)
	deep bool // in a directory whose path does not fit into a socket address
}
