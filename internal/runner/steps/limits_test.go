package steps

import (
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/sandbox"
)

// plainBox is a sandbox without the optional interface.
type plainBox struct{ sandbox.Sandbox }

type limitedBox struct {
	sandbox.Sandbox
	unheld []sandbox.Limit
}

func (b limitedBox) Unheld() []sandbox.Limit { return b.unheld }

func TestUnheldLimitsAreTold(t *testing.T) {
	for name, tt := range map[string]struct {
		box  sandbox.Sandbox
		want string
	}{
		"a provider whose limits always hold": {plainBox{}, ""},
		"all hold":                            {limitedBox{}, ""},
		"memory does not":                     {limitedBox{unheld: []sandbox.Limit{sandbox.LimitMemory}}, "--memory cannot"},
		"neither does": {
			limitedBox{unheld: []sandbox.Limit{sandbox.LimitMemory, sandbox.LimitCPUs}},
			"--memory and --cpus cannot",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := unheld(tt.box)
			if tt.want == "" {
				if got != nil {
					t.Errorf("got %q", got)
				}
				return
			}
			if len(got) != 1 || !strings.HasPrefix(got[0], tt.want) || strings.Contains(got[0], "\n") {
				t.Errorf("got %q, want one line that begins with %q", got, tt.want)
			}
		})
	}
}
