package steps

import (
	"strings"

	"github.com/Insights/insightscli/internal/sandbox"
)

// unheld says, in one line, which limits of the Spec nothing enforces in box; none
// where all hold.
func unheld(box sandbox.Sandbox) []string {
	limiter, able := box.(sandbox.Limiter)
	if !able {
		return nil
	}
	var flags []string
	for _, l := range limiter.Unheld() {
		flags = append(flags, "--"+string(l))
	}
	if len(flags) == 0 {
		return nil
	}
	return []string{strings.Join(flags, " and ") + " cannot be enforced here: no cgroup of this user has that controller; " +
		"use another provider or engine, or a user session that delegates it"}
}
