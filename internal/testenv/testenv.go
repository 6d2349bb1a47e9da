// Package testenv decides what a test does on a machine that lacks what it needs:
// skip with the reason, or fail where skipping is forbidden (CI sets
// INSIGHTSCLI_TEST_NOSKIP=1: green by skipping is not green).
package testenv

import (
	"os"
	"testing"
)

// Need ends the test unless ok: it skips, naming what is missing, or fails where
// INSIGHTSCLI_TEST_NOSKIP is set.
func Need(t testing.TB, what string, ok bool) {
	t.Helper()
	switch {
	case ok:
	case os.Getenv("INSIGHTSCLI_TEST_NOSKIP") == "1":
		t.Fatalf("this machine lacks %s, and skipping is forbidden here", what)
	default:
		t.Skipf("needs %s", what)
	}
}
