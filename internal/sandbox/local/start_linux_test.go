package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/sandbox"
)

// A container that has mapped no id for the agent cannot make sandboxes: a matter of
// the machine, with what lifts it.
func TestMissingIDIsExplained(t *testing.T) {
	file := filepath.Join(t.TempDir(), "uid_map")
	if err := os.WriteFile(file, []byte("         0       1001          1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := fullMap(file, 1000)
	refusal := refuseIdentity("op", err)
	if errs.KindOf(refusal) != errs.Unavailable || !strings.HasPrefix(refusal.Error(), cannot+": the agent's id 1000 ") {
		t.Errorf("%s: %v", errs.KindOf(refusal), refusal)
	}
	if !strings.Contains(errs.HintOf(refusal), "SUDO_UID") {
		t.Errorf("hint %q", errs.HintOf(refusal))
	}
	if maps, err := fullMap(file, 0); err != nil || len(maps) != 1 {
		t.Errorf("%v, %v", maps, err)
	}
}

// A level that is none must not become one that allows everything.
func TestUnknownNetworkLevel(t *testing.T) {
	spec, _ := newSpec(t, t.TempDir(), "r1")
	for _, level := range []sandbox.Network{"", "open", "Full"} {
		spec.Network = level
		if _, err := New(Options{}).Create(t.Context(), spec); errs.KindOf(err) != errs.Usage {
			t.Errorf("%q: %v", level, err)
		}
	}
}
