package agentserver

import (
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
)

// TestOutputMaskLeavesOutWhatHasNoBeginning: where the first part of a line is not here
// any more its rest may be the rest of a secret.
func TestOutputMaskLeavesOutWhatHasNoBeginning(t *testing.T) {
	boot := wire.Boot{Env: map[string]string{"PW": "s3cr3t-canary-value"}, Secrets: []string{"PW", "ABSENT"}}
	for first, want := range map[uint64]string{
		1: "canary-value\nnext [hidden]\nlast\n",
		7: "next [hidden]\nlast\n",
	} {
		o := newOutputMask(newMask(boot)(), first)
		var told strings.Builder
		for _, text := range []string{"canary-", "value\nnext s3cr3t-", "canary-value\nlast\n"} {
			told.Write(o.output(&wire.Frame{Type: wire.FrameStdout, Data: []byte(text)}))
		}
		told.Write(o.rest(wire.FrameStdout))
		if told.String() != want {
			t.Errorf("from frame %d: got %q, want %q", first, told.String(), want)
		}
	}
}
