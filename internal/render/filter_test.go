package render

import (
	"fmt"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

func TestSeverityOf(t *testing.T) {
	for _, tt := range []struct {
		kind   task.Kind
		params string
		want   Severity
	}{
		{task.KindStep, `{"status":"failed"}`, Error},
		{task.KindStep, `{"status":"completed"}`, Info},
		{task.KindAgent, `{"update":{"sessionUpdate":"tool_call_update","status":"failed"}}`, Error},
		{task.KindAgent, `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\"failed\""}}}`, Info},
		{task.KindOutput, `{"exitCode":0}`, Info},
		{task.KindOutput, `{"exitCode":3}`, Error},
		{task.KindOutput, `{"stderr":"error"}`, Info},
		{task.KindDenied, `{}`, Warn},
		{task.KindTurn, `{"ok":true,"attempts":1}`, Info},
		{task.KindTurn, `{"ok":true,"attempts":2}`, Warn},
		{task.KindTurn, `{"ok":false}`, Error},
		{task.KindNotice, `{"level":"warn"}`, Warn},
		{task.KindNotice, `{"level":"error"}`, Error},
		{task.KindNotice, `{"level":"strange"}`, Info},
		{task.KindFinished, `{"state":"completed"}`, Info},
		{task.KindFinished, `{"state":"cancelled"}`, Warn},
		{task.KindFinished, `{"state":"failed"}`, Error},
		{"initialization_failed", `{}`, Error},
		{"anything", `no JSON`, Info},
	} {
		if got := SeverityOf(task.Event{Kind: tt.kind, Params: []byte(tt.params)}); got != tt.want {
			t.Errorf("%s %s: %d, want %d", tt.kind, tt.params, got, tt.want)
		}
	}
}

func TestFilterOfTime(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := Filter{From: at, To: at.Add(time.Second)}
	for d, want := range map[time.Duration]bool{-1: false, 0: true, time.Second - 1: true, time.Second: false} {
		if got := f.Keep(task.Event{At: at.Add(d)}); got != want {
			t.Errorf("%v: %v", d, got)
		}
	}
}

// However many tools there are, few are remembered; those at work are among them.
func TestFilterForgetsTools(t *testing.T) {
	f := Filter{Tools: []string{"execute"}}
	for i := range 10 * maxTitles {
		id := fmt.Sprintf(`"toolCallId":"%d"`, i)
		call := task.Event{Kind: task.KindAgent, Params: []byte(`{"update":{"sessionUpdate":"tool_call","kind":"execute",` + id + `}}`)}
		end := task.Event{Kind: task.KindAgent, Params: []byte(`{"update":{"sessionUpdate":"tool_call_update","status":"completed",` + id + `}}`)}
		if !f.Keep(call) || !f.Keep(end) {
			t.Fatal(i)
		}
	}
	if len(f.begun) > maxTitles {
		t.Errorf("%d remembered", len(f.begun))
	}
}

func TestCleanerInPieces(t *testing.T) {
	text := "a\x1b[31mred\x1b[0m é\r10 %\r20 %\nb\x1b]0;title\x07c\n日本\xff\nlast"
	want := CleanText(text)
	for size := 1; size < len(text); size++ {
		var c Cleaner
		var got []byte
		for rest := []byte(text); len(rest) > 0; {
			n := min(size, len(rest))
			got = c.Append(got, rest[:n])
			rest = rest[n:]
		}
		if got = c.End(got); string(got) != want {
			t.Errorf("pieces of %d: %q, want %q", size, got, want)
		}
	}
}
