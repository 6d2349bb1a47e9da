package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestNothingPrintsASecret: %d has no method of its own to ask, and fmt's complaint
// about it shows what the value holds.
func TestNothingPrintsASecret(t *testing.T) {
	const canary = "canary-7f3a"
	type holder struct{ S String }
	for _, v := range []any{New(canary), holder{New(canary)}, &holder{New(canary)}, []String{New(canary)}, map[string]String{"k": New(canary)}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%08.3f"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, canary) || strings.Contains(got, fmt.Sprintf("%x", canary)) {
				t.Errorf("%s of %T: %s", verb, v, got)
			}
		}
		b, err := json.Marshal(v)
		if err != nil || strings.Contains(string(b), canary) || !strings.Contains(string(b), Hidden) {
			t.Errorf("JSON of %T: %s, %v", v, b, err)
		}
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", v)
		if strings.Contains(log.String(), canary) {
			t.Errorf("log of %T: %s", v, &log)
		}
	}
	if s := New(canary); s.Reveal() != canary || s.Empty() || !New("").Empty() || fmt.Sprint(s) != Hidden {
		t.Errorf("%v", s)
	}
}
