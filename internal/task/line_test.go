package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func at() time.Time {
	return time.Date(2026, 11, 29, 13, 14, 15, 16017000, time.FixedZone("", 3600))
}

// TestLineIsTheContract: these lines are what --json prints and what logs of earlier
// versions hold. They do not change without a new LineVersion.
func TestLineIsTheContract(t *testing.T) {
	tests := map[string]struct {
		ev   Event
		want string
	}{
		"step": {
			Event{Seq: 1, At: at(), Kind: KindStep, Params: []byte(`{"step":"clone","status":"completed"}`)},
			`{"type":"notification","v":1,"seq":1,"timestamp":"2026-11-29T12:14:15.016017Z","notification":{"jsonrpc":"2.0","method":"_insights/progress","params":{"step":"clone","status":"completed"}}}`,
		},
		"agent": {
			Event{Seq: 18446744073709551615, At: at(), Kind: KindAgent, EventID: 12, FirstEventID: 10, Params: []byte(`{"update":{}}`)},
			`{"type":"notification","v":1,"seq":18446744073709551615,"timestamp":"2026-11-29T12:14:15.016017Z","event_id":"12","first_event_id":"10","notification":{"jsonrpc":"2.0","method":"session/update","params":{"update":{}}}}`,
		},
		"without parameters": {
			Event{Seq: 2, At: at(), Kind: KindDenied},
			`{"type":"notification","v":1,"seq":2,"timestamp":"2026-11-29T12:14:15.016017Z","notification":{"jsonrpc":"2.0","method":"_insights/network_denied","params":{}}}`,
		},
		"a method of its own": {
			Event{Seq: 3, At: at(), Kind: KindAgent, Method: `session/"new"`},
			`{"type":"notification","v":1,"seq":3,"timestamp":"2026-11-29T12:14:15.016017Z","notification":{"jsonrpc":"2.0","method":"session/\"new\"","params":{}}}`,
		},
	}
	for name, tt := range tests {
		if got := string(tt.ev.AppendLine([]byte("before"))); got != "before"+tt.want+"\n" {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
	}
}

func TestLinesAreReadBack(t *testing.T) {
	for _, kind := range Kinds() {
		method := kind.method()
		want := Event{Seq: 7, At: at().UTC(), Kind: kind, Method: method, Params: json.RawMessage(`{"a":[1,"}}"]}`), EventID: 9, FirstEventID: 8}
		got, err := ParseLine(want.AppendLine(nil))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
}

// TestParametersCannotForgeALine: line ends are allowed in JSON, and what follows one
// could be an event of its own.
func TestParametersCannotForgeALine(t *testing.T) {
	forged := Event{Seq: 2, Kind: KindFinished}.AppendLine(nil)
	ev := Event{Seq: 1, Kind: KindAgent, Params: []byte("{\"a\":\n" + string(forged) + "}")}
	line := ev.AppendLine(nil)
	if bytes.Count(line, []byte("\n")) != 1 || bytes.IndexByte(ev.Params, '\n') < 0 {
		t.Errorf("line %q of parameters %q", line, ev.Params)
	}
	if got, err := ParseLine(line); err != nil || got.Kind != KindAgent || !json.Valid(got.Params) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLinesOfOthersAreRead(t *testing.T) {
	tests := map[string]struct {
		line string
		want Event
	}{
		"double prefix": {
			`{"type":"notification","seq":4,"notification":{"method":"__insights/console","params":{"level":"info"}}}`,
			Event{Seq: 4, Kind: KindNotice, Method: "__insights/console", Params: []byte(`{"level":"info"}`)},
		},
		"unknown method": {
			`{"type":"notification","seq":5,"notification":{"method":"_insights/branch_created","params":{}}}`,
			Event{Seq: 5, Kind: "branch_created", Method: "_insights/branch_created", Params: []byte(`{}`)},
		},
		"method without a slash": {
			`{"type":"notification","notification":{"method":"hello"}}`,
			Event{Kind: "hello", Method: "hello"},
		},
		"result": {
			`{"type":"notification","notification":{"id":1,"result":{"stopReason":"end_turn"}}}`,
			Event{Params: []byte(`{"stopReason":"end_turn"}`)},
		},
		"newer version": {
			`{"v":2,"type":"notification","new":{"x":1},"seq":6,"event_id":"x1","notification":{"method":"session/update","params":{}}}`,
			Event{Seq: 6, Kind: KindAgent, Method: "session/update", Params: []byte(`{}`)},
		},
	}
	for name, tt := range tests {
		got, err := ParseLine([]byte(tt.line))
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", name, got, err, tt.want)
		}
	}
}

func TestWhatIsNoLineIsRefused(t *testing.T) {
	for _, line := range []string{
		"", "\n", "x", "[]", "null", `{}`, `{"type":"request"}`, `{"type":"notification","seq":-1}`, `{"type":"notification","seq":1`,
		"\x00\x00", `{"type":"notification","timestamp":"yesterday"}`,
	} {
		if ev, err := ParseLine([]byte(line)); !errors.Is(err, ErrLine) {
			t.Errorf("ParseLine(%q) = %+v, %v", line, ev, err)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add(Event{Seq: 1, At: at(), Kind: KindOutput, Params: AppendOutput(nil, Stdout, []byte("a\nb\xff"), true), EventID: 3}.AppendLine(nil))
	f.Add([]byte(`{"type":"notification","seq":4,"notification":{"method":"__insights/console","params":{"level":"info"}}}`))
	f.Add([]byte(`{"type":"notification","seq":1,"timestamp":"0001-01-01T00:00:00Z","notification":{"result":null}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		ev, err := ParseLine(line)
		if err != nil {
			if !errors.Is(err, ErrLine) {
				t.Errorf("error %v", err)
			}
			return
		}
		written := ev.AppendLine(nil)
		if bytes.Count(written, []byte("\n")) != 1 {
			t.Errorf("line %q", written)
		}
		if y := ev.At.UTC().Year(); y < 0 || y > 9999 || strings.HasPrefix(string(ev.Params), "null") {
			return // such a time has no text form, such parameters are no object
		}
		again, err := ParseLine(written)
		ev.At, again.At = ev.At.Truncate(time.Microsecond).UTC(), again.At.UTC()
		if err != nil || again.Seq != ev.Seq || again.EventID != ev.EventID || !again.At.Equal(ev.At) {
			t.Errorf("%q\nread  %+v\nagain %+v, %v", line, ev, again, err)
		}
	})
}

func TestIDs(t *testing.T) {
	seen := map[ID]bool{}
	for range 1000 {
		id := NewID()
		if !id.Valid() || seen[id] || len(id.Short()) != 8 {
			t.Fatalf("id %q", id)
		}
		seen[id] = true
	}
	for _, bad := range []ID{"", "x", "../../../../../../etc/passwd-0000000000", "AAAAAAAA-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-00000000000g"} {
		if bad.Valid() {
			t.Errorf("%q is valid", bad)
		}
	}
}

func TestDurationsAreText(t *testing.T) {
	b, err := json.Marshal(Duration(90 * time.Minute))
	if err != nil || string(b) != `"1h30m0s"` {
		t.Errorf("%s, %v", b, err)
	}
	var d Duration
	if err := json.Unmarshal(b, &d); err != nil || d.Std() != 90*time.Minute {
		t.Errorf("%s, %v", d, err)
	}
	for _, bad := range []string{`5`, `"5"`, `"soon"`} {
		if json.Unmarshal([]byte(bad), &d) == nil {
			t.Errorf("%s was read as %s", bad, d)
		}
	}
}

// An agent that calls a method of its own by the name of a kind of ours does not make
// events of that kind.
func TestAnUnknownMethodIsNoKnownKind(t *testing.T) {
	for method, want := range map[string]Kind{
		"session/output": "rpc:session/output", "_insights/finished": "rpc:_insights/finished",
		"finished": "rpc:finished", "_insights/branch_created": "branch_created", "": "",
	} {
		if got := KindOf(method); got != want {
			t.Errorf("%q is of kind %q, want %q", method, got, want)
		}
	}
}
