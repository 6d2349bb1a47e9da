package reply

import (
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

const itemsSchema = `{"type":"object","required":["items","note"],"properties":{
	"kind":{"const":"finding"},"items":{"type":"array","items":{"type":"string"}},"note":{"type":["string","null"]}}}`

func end(text string) Attempt { return Attempt{StopReason: "end_turn", Text: text} }

// judgeAll judges attempts one after the other, until one decides.
func judgeAll(t *testing.T, s *Schema, attempts ...Attempt) Decision {
	t.Helper()
	var d Decision
	for i, a := range attempts {
		if d = Judge(d.Past, a, s); (d.Turn == nil) == (d.Retry == "") {
			t.Fatalf("attempt %d: %+v", i, d)
		}
		if d.Turn != nil && i < len(attempts)-1 {
			t.Fatalf("attempt %d of %d decided: %+v", i+1, len(attempts), d.Turn)
		}
	}
	return d
}

func TestJudgeWithoutSchema(t *testing.T) {
	for name, tt := range map[string]struct {
		attempts []Attempt
		want     task.Turn
	}{
		"words":              {[]Attempt{end("done")}, task.Turn{OK: true, Text: "done", Attempts: 1}},
		"cut off":            {[]Attempt{{StopReason: "max_tokens", Text: "so"}}, task.Turn{OK: true, Text: "so", Attempts: 1}},
		"empty, then words":  {[]Attempt{end(" \n"), end("done")}, task.Turn{OK: true, Text: "done", Attempts: 2}},
		"empty twice":        {[]Attempt{end(""), end("")}, task.Turn{Category: task.TurnEmpty, Attempts: 2}},
		"refused":            {[]Attempt{{StopReason: "refusal", Text: "half of it"}}, task.Turn{Category: task.TurnRefused, Attempts: 1}},
		"refused when asked": {[]Attempt{end(""), {StopReason: "refusal"}}, task.Turn{Category: task.TurnRefused, Attempts: 2}},
		"cancelled":          {[]Attempt{{StopReason: "cancelled", Text: "half"}}, task.Turn{Category: task.TurnCancelled, Attempts: 1}},
		"failed":             {[]Attempt{{StopReason: "error", Err: "500", Text: "half"}}, task.Turn{Category: task.TurnError, Attempts: 1}},
		"failed silently":    {[]Attempt{{StopReason: "error"}}, task.Turn{Category: task.TurnError, Attempts: 1}},
		"of another kind":    {[]Attempt{{StopReason: "max_turn_requests", Text: "x"}}, task.Turn{Category: task.TurnError, Attempts: 1}},
		"no room":            {[]Attempt{{StopReason: "max_tokens"}}, task.Turn{Category: task.TurnEmpty, Attempts: 1}},
	} {
		got := *judgeAll(t, nil, tt.attempts...).Turn
		if !got.OK && got.Error == "" {
			t.Errorf("%s: it failed without a word", name)
		}
		got.Error = ""
		if got.OK != tt.want.OK || got.Text != tt.want.Text || got.Attempts != tt.want.Attempts || got.Category != tt.want.Category {
			t.Errorf("%s: %+v; want %+v", name, got, tt.want)
		}
	}
}

func TestJudgeWithSchema(t *testing.T) {
	s := compile(t, itemsSchema)
	const good = `{"items":["a"],"note":"b"}`
	structured := func(raw string, rejected int) Attempt {
		return Attempt{StopReason: "end_turn", Text: "see above", Structured: []byte(raw), Rejected: rejected}
	}
	for name, tt := range map[string]struct {
		attempts []Attempt
		value    string
		degraded bool
		count    int
		category string
	}{
		"at once":                      {[]Attempt{end(good)}, good, false, 1, ""},
		"apart from the words":         {[]Attempt{structured(good, 0)}, good, false, 1, ""},
		"null apart from the words":    {[]Attempt{{StopReason: "end_turn", Text: good, Structured: []byte("null")}}, good, false, 1, ""},
		"after the agent's own":        {[]Attempt{structured(good, 2)}, good, false, 3, ""},
		"the agent's own, then good":   {[]Attempt{{StopReason: "end_turn", Rejected: 5}, structured(good, 0)}, good, false, 6, ""},
		"the agent gives up twice":     {[]Attempt{{StopReason: "end_turn", Rejected: 5}, {StopReason: "end_turn", Rejected: 4}}, "", false, 9, task.TurnInvalid},
		"invalid, then good":           {[]Attempt{end(`{"items":[]}`), end(good)}, good, false, 2, ""},
		"prose, then good":             {[]Attempt{end(`I am done`), end("```json\n" + good + "\n```")}, good, false, 2, ""},
		"empty, invalid, good":         {[]Attempt{end(""), end("x"), end(good)}, good, false, 3, ""},
		"invalid, empty, good":         {[]Attempt{end("x"), end(""), end(good)}, good, false, 3, ""},
		"invalid twice":                {[]Attempt{end("x"), end("y")}, "", false, 2, task.TurnInvalid},
		"structured beats good words":  {[]Attempt{{StopReason: "end_turn", Text: good, Structured: []byte(`{}`)}, end("x")}, "", false, 2, task.TurnInvalid},
		"empty twice":                  {[]Attempt{end(""), end("")}, "", false, 2, task.TurnEmpty},
		"invalid, then an error":       {[]Attempt{end("x"), {StopReason: "error", Err: "gone"}}, "", false, 2, task.TurnError},
		"invalid, then refused":        {[]Attempt{end("x"), {StopReason: "refusal", Text: good}}, "", false, 2, task.TurnRefused},
		"nothing said, at once":        {[]Attempt{end(`{"items":[],"note":"n/a"}`)}, `{"items":[],"note":"n/a"}`, false, 1, ""},
		"a placeholder in the end":     {[]Attempt{end("x"), end(`{"kind":"finding","items":["TODO"],"note":null}`)}, `{"kind":"finding","items":["TODO"],"note":null}`, true, 2, ""},
		"a placeholder of the agent's": {[]Attempt{structured(`{"items":[],"note":"<placeholder>"}`, 5)}, `{"items":[],"note":"<placeholder>"}`, true, 6, ""},
		"one true word":                {[]Attempt{end("x"), end(`{"items":[],"note":"no cursed names"}`)}, `{"items":[],"note":"no cursed names"}`, false, 2, ""},
	} {
		turn := judgeAll(t, s, tt.attempts...).Turn
		if string(turn.Value) != tt.value || turn.OK != (tt.value != "") || turn.Degraded != tt.degraded ||
			turn.Attempts != tt.count || turn.Category != tt.category {
			t.Errorf("%s: %+v", name, turn)
		}
	}
}

func TestRetrySaysWhatWasWrong(t *testing.T) {
	s := compile(t, itemsSchema)
	d := Judge(Past{}, end(`{"items":[1],"note":"x"}`), s)
	for _, want := range []string{"at /items/0: got number, want string", "JSON only", `"required":["items","note"]`} {
		if !strings.Contains(d.Retry, want) {
			t.Errorf("%q is not in %s", want, d.Retry)
		}
	}
	if d := Judge(Past{}, end(""), s); !strings.Contains(d.Retry, "JSON") {
		t.Error(d.Retry)
	}
	if d := Judge(Past{}, end(""), nil); d.Retry == "" || strings.Contains(d.Retry, "JSON") {
		t.Error(d.Retry)
	}
}

func TestTimeouts(t *testing.T) {
	began := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	signs := func(seconds ...int) Activity {
		a := Activity{Began: began}
		for _, s := range seconds {
			a.sign(at(s), false)
		}
		return a
	}
	for name, tt := range map[string]struct {
		activity Activity
		want     string
	}{
		"no sign":                           {signs(), task.TurnSilent},
		"a cancelled tool, after no sign":   {signs(1801, 1802), task.TurnSilent},
		"begun, then silent":                {signs(1, 2, 3), task.TurnStalled},
		"silent, but for its cancellation":  {signs(1, 2, 1801, 1803), task.TurnStalled},
		"silent for 300 s":                  {signs(1, 1505), task.TurnStalled},
		"a sign 299 s ago":                  {signs(1, 1506), task.TurnBusy},
		"at work":                           {signs(1, 1700, 1790), task.TurnBusy},
		"at work, also when it was stopped": {signs(1, 1700, 1790, 1802), task.TurnBusy},
	} {
		if got := Timeout(tt.activity, at(1805)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		turn := Judge(Past{}, Attempt{StopReason: "error", Text: "half", TimedOut: true, Ended: at(1805), Activity: tt.activity}, nil).Turn
		if turn == nil || turn.OK || turn.Category != tt.want || turn.Error == "" {
			t.Errorf("%s: %+v", name, turn)
		}
	}
}

// TestSalvage: an agent that has counted its tokens is done, whatever became of the news.
func TestSalvage(t *testing.T) {
	began := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	for name, tt := range map[string]struct {
		text  string
		count int   // second of the count without a cost; 0: none
		later []int // further signs
		ended int
		ok    bool
	}{
		"its end was lost":        {"the answer", 10, nil, 1800, true},
		"one more sign":           {"the answer", 10, []int{1795}, 1800, true},
		"two more":                {"the answer", 10, []int{1795, 1796}, 1800, false},
		"it went on":              {"the answer", 10, []int{20}, 1800, false},
		"too early to tell":       {"the answer", 1600, nil, 1800, false},
		"no count":                {"the answer", 0, nil, 1800, false},
		"nothing was said":        {"", 10, nil, 1800, false},
		"it woke and worked long": {"the answer", 10, []int{1000}, 1800, false},
	} {
		act := Activity{Began: began}
		act.sign(at(5), false)
		if tt.count > 0 {
			act.sign(at(tt.count), true)
		}
		for _, s := range tt.later {
			act.sign(at(s), false)
		}
		turn := Judge(Past{}, Attempt{StopReason: "error", Text: tt.text, TimedOut: true, Err: "late", Ended: at(tt.ended), Activity: act}, nil).Turn
		if turn.OK != tt.ok {
			t.Errorf("%s: %+v", name, turn)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, " - ": true, "N/A": true, "n/a.": true, "[TBD]": true, "<string>": true, "TODO:": true, "Unknown": true, "...": true,
		"Placeholder summary": true, "null": true, "naming": false, "unknown host": false, "none of them": false, "0": false, "x": false,
	} {
		if isPlaceholder(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
