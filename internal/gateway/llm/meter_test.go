package llm

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func sample(t testing.TB, name string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// answers are whole answers of every dialect, with what they used.
func answers(t testing.TB) map[string]struct {
	dialect dialect
	events  bool
	body    string
	model   string
	want    counts
} {
	claude := counts{Input: 30, Output: 150, CacheRead: 2000, CacheWrite: 1000, WriteHour: 400, Thought: 20}
	gpt := counts{Input: 500, Output: 150, CacheRead: 2000, CacheWrite: 500, Thought: 100}
	chat := counts{Input: 20, Output: 30, CacheRead: 100, Thought: 10}
	return map[string]struct {
		dialect dialect
		events  bool
		body    string
		model   string
		want    counts
	}{
		"messages stream":       {anthropic, true, sample(t, "messages.sse"), "claude-opus-5-5", claude},
		"messages stream, CRLF": {anthropic, true, strings.ReplaceAll(sample(t, "messages.sse"), "\n", "\r\n"), "claude-opus-5-5", claude},
		"responses stream":      {openai, true, sample(t, "responses.sse"), "gpt-5.5-2026-04-23", gpt},
		"chat stream":           {openai, true, sample(t, "chat.sse"), "gpt-4.1-2025-04-14", chat},
		"messages": {
			anthropic, false, `{"id":"m","content":[{"type":"text","text":"\\\"usage\":{"}],"model":"claude-opus-5-5",
			"usage":{"input_tokens":30,"output_tokens":150,"cache_read_input_tokens":2000,"cache_creation_input_tokens":1000,
			"cache_creation":{"ephemeral_1h_input_tokens":400},"output_tokens_details":{"thinking_tokens":20}}}`, "claude-opus-5-5", claude,
		},
		"responses": {
			openai, false, `{"model":"gpt-5.5-2026-04-23","usage":{"input_tokens":3000,"input_tokens_details":{"cached_tokens":2000,"cache_write_tokens":500},
			"output_tokens":150,"output_tokens_details":{"reasoning_tokens":100}},"output":[{"usage":{"input_tokens":9},"model":"x"}]}`,
			"gpt-5.5-2026-04-23", gpt,
		},
		"chat": {
			openai, false, `{"model":"gpt-4.1-2025-04-14","choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":120,"completion_tokens":30,
			"prompt_tokens_details":{"cached_tokens":100},"completion_tokens_details":{"reasoning_tokens":10}}}`, "gpt-4.1-2025-04-14", chat,
		},
		"spelt with escapes": {
			anthropic, false, `{"mod\u0065l":"claude-opus-5-5","u\u0073age":{"input_tokens":1,"output_tokens":2}}`, "claude-opus-5-5", counts{Input: 1, Output: 2},
		},
	}
}

// However the answer is cut into pieces, and it comes in any, the counts are the same.
func TestCountsOfEveryDialect(t *testing.T) {
	for name, tt := range answers(t) {
		for size := 1; size <= len(tt.body); size = size*2 + 1 {
			m := newMeter(tt.dialect, tt.events)
			for rest := tt.body; rest != ""; {
				n := min(size, len(rest))
				m.write([]byte(rest[:n]))
				rest = rest[n:]
			}
			over := m.over
			m.end()
			got, estimated := m.total(4000)
			if got != tt.want || estimated || m.model != tt.model || !over {
				t.Fatalf("%s in pieces of %d: %+v (model %s, estimated %t, over %t), want %+v", name, size, got, m.model, estimated, over, tt.want)
			}
		}
	}
}

func TestStreamThatIsCutCountsWhatWasSeen(t *testing.T) {
	for name, want := range map[string]counts{
		"messages.sse":  {Input: 30, Output: 33, CacheRead: 2000, CacheWrite: 1000, WriteHour: 400},
		"responses.sse": {Input: 1000, Output: 10}, // what it used comes last
		"chat.sse":      {Input: 1000, Output: 11},
	} {
		d := openai
		if name == "messages.sse" {
			d = anthropic
		}
		body := sample(t, name)
		cut := strings.LastIndex(body, `"usage":{`)
		m := newMeter(d, true)
		m.write([]byte(body[:cut]))
		if got, estimated := m.total(4000); got != want || !estimated || m.over {
			t.Errorf("%s: %+v (estimated %t), want %+v", name, got, estimated, want)
		}
	}
}

func TestLaterEventThatLeavesInputOut(t *testing.T) {
	m := newMeter(anthropic, true)
	m.write([]byte(`data: {"type":"message_start","message":{"usage":{"input_tokens":30,"cache_read_input_tokens":5,"output_tokens":1}}}

data: {"type":"message_delta","usage":{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":9}}

data: {"type":"message_stop"}

`))
	if got, estimated := m.total(0); got != (counts{Input: 30, CacheRead: 5, Output: 9}) || estimated {
		t.Errorf("%+v, estimated %t", got, estimated)
	}
}

func TestAnswerThatSaysNothing(t *testing.T) {
	for _, body := range []string{`{}`, `{"usage":null}`, `{"usage":{"input_tokens":"many"}}`, `not JSON`, `{"usage":{"input_tokens":3`, "", `[`, `}}}}`} {
		m := newMeter(anthropic, false)
		m.write([]byte(body))
		m.end()
		if got, estimated := m.total(400); got != (counts{Input: 100}) || !estimated {
			t.Errorf("%q: %+v, estimated %t", body, got, estimated)
		}
	}
}

func TestCountsBelowZero(t *testing.T) {
	m := newMeter(openai, false)
	m.write([]byte(`{"usage":{"input_tokens":-5,"output_tokens":-6,"input_tokens_details":{"cached_tokens":50}}}`))
	if got, _ := m.total(0); got != (counts{}) {
		t.Errorf("%+v", got)
	}
}

// An event can be as long as it likes: a completed response repeats the whole output.
func TestLongLinesDoNotFillMemory(t *testing.T) {
	m := newMeter(openai, true)
	piece := bytes.Repeat([]byte("x\\n y"), 1<<15)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 4 {
		m.write([]byte(`data: {"type":"response.output_text.delta","delta":"`))
		for range 16 {
			m.write(piece)
		}
		m.write([]byte("\"}\n\n"))
	}
	m.write([]byte(`data: {"type":"response.completed","response":{"output":"`))
	for range 16 {
		m.write(piece)
	}
	m.write([]byte(`","usage":{"input_tokens":1,"output_tokens":2}}}` + "\n\n"))
	runtime.ReadMemStats(&after)
	if got, estimated := m.total(0); got != (counts{Input: 1, Output: 2}) || estimated {
		t.Errorf("%+v, estimated %t", got, estimated)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 || cap(m.text.buf) > 2*keptValue {
		t.Errorf("%d bytes were allocated for 13 MB, %d are kept", grown, cap(m.text.buf))
	}
}

func FuzzMeter(f *testing.F) {
	for _, tt := range answers(f) {
		f.Add([]byte(tt.body), tt.events, 3)
	}
	f.Fuzz(func(t *testing.T, body []byte, events bool, size int) {
		whole, pieces := newMeter(openai, events), newMeter(openai, events)
		whole.write(body)
		for rest := body; len(rest) > 0; {
			n := min(max(size, 1), len(rest))
			pieces.write(rest[:n])
			rest = rest[n:]
		}
		a, _ := whole.total(0)
		b, _ := pieces.total(0)
		if a != b || whole.model != pieces.model || whole.over != pieces.over {
			t.Errorf("whole %+v, in pieces %+v", a, b)
		}
	})
}
