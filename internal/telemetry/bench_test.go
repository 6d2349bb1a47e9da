package telemetry

import (
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/task"
)

// What a run pays for one event: of output, of an agent's words, and of a tool with a
// result of a megabyte.
func BenchmarkEmit(b *testing.B) {
	r := &told{}
	r.add(task.KindOutput, "", task.Output{Stdout: strings.Repeat("x", 200), Lines: 1})
	r.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]string{"type": "text", "text": strings.Repeat("word ", 50)}})
	r.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "in_progress", "rawOutput": strings.Repeat("x", 1<<20)})
	for i, name := range []string{"output", "words", "tool"} {
		b.Run(name, func(b *testing.B) {
			st := newStory(spec("http://h"), true)
			for b.Loop() {
				st.event(r.all[i])
			}
		})
	}
}
