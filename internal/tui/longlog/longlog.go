// Package longlog makes logs of runs that never were, of any length and always the same:
// what tests and measurements of the screens read. It is part of no program.
package longlog

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

// Every is how many events one round of the story has; Needle is said once in each.
const (
	Every  = 20
	Needle = "the needle of round"
)

// Begin is when the story begins.
func Begin() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }

// Write writes a log of so many events, the last of which tells that the run has finished.
func Write(w io.Writer, events int) error {
	b := bufio.NewWriterSize(w, 1<<20)
	var line []byte
	for n := 1; n <= events; n++ {
		ev := Event(n)
		if n == events {
			ev = Finished(n)
		}
		line = ev.AppendLine(line[:0])
		if _, err := b.Write(line); err != nil {
			return err
		}
	}
	return b.Flush()
}

// Finished is the last event of a log of so many.
func Finished(events int) task.Event {
	begin := Begin()
	end := begin.Add(time.Duration(events) * time.Millisecond)
	params := fmt.Sprintf(`{"run":"00000000-0000-4000-8000-000000000001","task":"00000000-0000-4000-8000-000000000002","state":"completed","code":0,"provider":"local","started":%q,"finished":%q}`,
		begin.Format(time.RFC3339), end.Format(time.RFC3339))
	return task.Event{Seq: uint64(events), At: end, Kind: task.KindFinished, Params: []byte(params)}
}

// Event is event n of the story, from 1.
func Event(n int) task.Event {
	round, at := (n-1)/Every, (n-1)%Every
	kind, params := said(round, at)
	return task.Event{
		Seq: uint64(n), EventID: uint64(n), At: Begin().Add(time.Duration(n) * time.Millisecond), Kind: kind, Params: []byte(params),
	}
}

// words are the long texts of the story, as JSON: they are quoted once.
type words struct{ thought, result, output string }

var theWords = sync.OnceValue(func() words {
	quote := func(s string) string {
		b, _ := json.Marshal(s) // a text can always be encoded
		return string(b)
	}
	return words{
		thought: quote(strings.Repeat("I should look at the parser first, and then at what calls it. ", 8)),
		result:  quote(strings.Repeat("ok  \tgithub.com/example/parser\t0.012s\n", 24)),
		output:  strings.Repeat("some output ", 60) + "\x1b[31mred\x1b[0m \x1b]0;title\a",
	}
})

// said is what is said at a place of a round.
func said(round, at int) (task.Kind, string) {
	tool := func(n int) string { return fmt.Sprintf(`"toolu_%d_%d"`, round, n) }
	long := theWords()
	update := func(form string, args ...any) (task.Kind, string) {
		return task.KindAgent, `{"update":` + fmt.Sprintf(form, args...) + `}`
	}
	chunk := func(kind, text string) (task.Kind, string) {
		return update(`{"content":{"text":%s,"type":"text"},"sessionUpdate":%q}`, text, kind)
	}
	switch at {
	case 0:
		return task.KindStep, fmt.Sprintf(`{"step":"round","status":"in_progress","label":"Round %d","group":"run"}`, round)
	case 1:
		return chunk("agent_thought_chunk", long.thought)
	case 2, 3:
		return chunk("agent_message_chunk", fmt.Sprintf("\"## Round %d\\n\\nThe **parser** reads `config.yaml` and `%s %d`; 日本語のテキスト and 👩‍👩‍👧 too.\\n\\n- one\\n- two\\n\"", round, Needle, round))
	case 4, 7, 10:
		return update(`{"kind":"execute","rawInput":{"command":"go test ./internal/parser -run Test%d -count=1","description":"run the tests"},"sessionUpdate":"tool_call","status":"pending","title":"go test ./internal/parser","toolCallId":%s}`, round, tool(at/3))
	case 5, 8, 11:
		return update(`{"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":%s}`, tool((at-1)/3))
	case 6, 9, 12:
		status := "completed"
		if at == 12 && round%10 == 9 {
			status = "failed"
		}
		return update(`{"content":[{"content":{"text":%s,"type":"text"},"type":"content"}],"sessionUpdate":"tool_call_update","status":%q,"toolCallId":%s}`,
			long.result, status, tool((at-2)/3))
	case 13:
		return update(`{"entries":[{"content":"read","priority":"high","status":"completed"},{"content":"write","priority":"low","status":"pending"}],"sessionUpdate":"plan"}`)
	case 14:
		return task.KindUsage, fmt.Sprintf(`{"model":"claude","request":{"input_tokens":10,"output_tokens":5,"total_tokens":15,"requests":1},"run":{"input_tokens":%d,"output_tokens":%d,"total_tokens":%d,"requests":%d,"cost_usd":%d.5}}`,
			10*(round+1), 5*(round+1), 15*(round+1), round+1, round)
	case 15:
		return task.KindNotice, `{"level":"warn","message":"the model answers slowly"}`
	}
	return task.KindOutput, string(task.AppendOutput(nil, task.Stdout, fmt.Appendf(nil, "%s line %d of round %d\n", long.output, at, round), false))
}
