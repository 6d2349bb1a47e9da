package execdriver

import (
	"testing"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/link/wire"
)

// How commands run, end and are cancelled is tested with a whole server, in package
// agentserver.

func TestStartNeedsACommand(t *testing.T) {
	for _, command := range [][]string{nil, {}, {""}} {
		d := New(&agentserver.Host{})
		if err := d.Start(t.Context(), wire.Start{Agent: Name, Command: command}); err == nil {
			t.Errorf("%q was accepted", command)
		}
	}
}

func TestCloseBeforePromptReturns(t *testing.T) {
	d := New(&agentserver.Host{})
	if err := d.Start(t.Context(), wire.Start{Agent: Name, Command: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	d.Cancel(t.Context())
	d.Close(t.Context())
}

func TestOutcome(t *testing.T) {
	tests := []struct {
		name      string
		err       error
		cancelled bool
		want      wire.Outcome
	}{
		{"not found", proc.ErrNotFound, false, wire.Outcome{StopReason: "error", Error: "command not found"}},
		{"cancelled before the start", proc.ErrNotFound, true, wire.Outcome{StopReason: "cancelled"}},
	}
	for _, tt := range tests {
		d := New(&agentserver.Host{}).(*driver)
		if tt.cancelled {
			d.Cancel(t.Context())
		}
		got := d.outcome(nil, tt.err)
		if got.StopReason != tt.want.StopReason || got.Error != tt.want.Error {
			t.Errorf("%s: %+v", tt.name, got)
		}
		if !tt.cancelled && (got.ExitCode == nil || *got.ExitCode != 127) || tt.cancelled && got.ExitCode != nil {
			t.Errorf("%s: code %v", tt.name, got.ExitCode)
		}
	}
}
