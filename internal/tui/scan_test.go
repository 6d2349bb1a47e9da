package tui

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/tui/longlog"
)

// scanAll reads a whole log.
func scanAll(t testing.TB, log io.ReaderAt) (index, summary, int) {
	t.Helper()
	s := newScanner(log)
	var x index
	var sum summary
	damaged := 0
	for {
		b, err := s.step()
		if err != nil {
			t.Fatal(err)
		}
		x.add(b)
		damaged += b.damaged
		for _, ev := range b.told {
			sum.add(ev)
		}
		if !b.more {
			return x, sum, damaged
		}
	}
}

// aLog is a log with the parameters as events; the kind is before a space.
func aLog(events ...string) []byte {
	var b []byte
	for i, e := range events {
		kind, params, _ := strings.Cut(e, " ")
		b = task.Event{Seq: uint64(i + 1), At: noon(), Kind: task.Kind(kind), Params: []byte(params)}.AppendLine(b)
	}
	return b
}

func update(s string) string { return `agent {"update":{` + s + `}}` }

// heads lists the items of a log, with the events that each is made of.
func heads(x *index) string {
	var s []string
	f := &filter{}
	for seq := x.after(0, f); seq != 0; seq = x.after(seq, f) {
		item := fmt.Sprint(seq)
		for _, r := range x.refs(seq, f)[1:] {
			item += fmt.Sprintf("+%d", r.seq)
		}
		s = append(s, item)
	}
	return strings.Join(s, " ")
}

// What belongs together is one item, however much is between its parts.
func TestEventsBecomeItems(t *testing.T) {
	for name, tt := range map[string]struct {
		events []string
		want   string
	}{
		"pieces of a text": {[]string{
			update(`"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}`),
			update(`"content":{"text":"b","type":"text"},"sessionUpdate":"agent_message_chunk"`),
			update(`"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"c"}`),
		}, "1+2 3"},
		"whole texts": {[]string{
			update(`"sessionUpdate":"agent_message","content":{"type":"text","text":"a"}`),
			update(`"sessionUpdate":"agent_message","content":{"type":"text","text":"b"}`),
		}, "1 2"},
		"usage does not end a text": {[]string{
			update(`"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}`),
			`usage {"model":"m"}`,
			update(`"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"b"}`),
		}, "1+3"},
		"reports of tools": {[]string{
			update(`"sessionUpdate":"tool_call","toolCallId":"x"`),
			update(`"sessionUpdate":"tool_call","toolCallId":"y"`),
			update(`"sessionUpdate":"tool_call_update","toolCallId":"x","status":"completed"`),
			`notice {"level":"info","message":"m"}`,
			update(`"sessionUpdate":"tool_call_update","toolCallId":"x","status":"completed"`),
			update(`"sessionUpdate":"tool_call_update","toolCallId":"z"`),
			update(`"sessionUpdate":"tool_call_update","toolCallId":"z"`),
		}, "1+3+5 2 4 6+7"},
		"words of the protocol in words of the agent": {[]string{
			update(`"rawInput":{"sessionUpdate":"tool_call_update","toolCallId":"x"},"sessionUpdate":"tool_call","toolCallId":"x"`),
			update(`"content":{"type":"text","text":"\"sessionUpdate\":\"plan\""},"sessionUpdate":"agent_message_chunk"`),
		}, "1 2"},
		"output": {[]string{
			`output {"stdout":"a\n"}`, `output {"stderr":"b\n"}`, `output {"exitCode":0}`, `output {"stdout":"a\n"}`,
		}, "1+2 3 4"},
		"what is no news": {[]string{
			`step {"step":"a","status":"in_progress","label":"A"}`, `step {"step":"a","status":"completed","label":"A"}`,
			`step {"step":"a","status":"failed","label":"A"}`, `usage {}`, update(`"sessionUpdate":"current_mode_update"`),
		}, "1 3"},
		"an answer": {[]string{
			`permission {"requestId":"r","toolCall":{"title":"t"}}`, `notice {}`,
		}, "1 2"},
	} {
		x, _, damaged := scanAll(t, bytes.NewReader(aLog(tt.events...)))
		if got := heads(&x); got != tt.want || damaged != 0 {
			t.Errorf("%s: %s, want %s (%d damaged)", name, got, tt.want, damaged)
		}
	}
}

// Whatever the pieces in which a log grows are, what is known of it is the same.
func TestALogThatGrows(t *testing.T) {
	whole := story(t)
	want, _, _ := scanAll(t, bytes.NewReader(whole))
	for _, step := range []int{1, 7, 100, 4096} {
		grown := &growing{}
		s := newScanner(grown)
		var x index
		for at := 0; at < len(whole); at += step {
			grown.b = whole[:min(at+step, len(whole))]
			b, err := s.step()
			if err != nil {
				t.Fatal(err)
			}
			x.add(b)
		}
		if heads(&x) != heads(&want) || x.end != int64(len(whole)) {
			t.Errorf("by %d bytes: %s, want %s", step, heads(&x), heads(&want))
		}
	}
}

type growing struct{ b []byte }

func (g *growing) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(g.b).ReadAt(p, off)
}

// A torn line is not read; its owner cuts it off and writes another.
func TestATornLine(t *testing.T) {
	grown := &growing{b: append(aLog(`notice {"message":"a"}`), `{"type":"notif`...)}
	s := newScanner(grown)
	first, err := s.step()
	if err != nil || len(first.metas) != 1 {
		t.Fatalf("%d events, %v", len(first.metas), err)
	}
	grown.b = aLog(`notice {"message":"a"}`, `notice {"message":"b"}`)
	second, err := s.step()
	if err != nil || len(second.metas) != 1 || second.damaged != 0 {
		t.Errorf("%d events, %d damaged, %v", len(second.metas), second.damaged, err)
	}
}

// Lines that are none are counted and passed over, and so are numbers that are wrong.
func TestDamagedLines(t *testing.T) {
	line := func(seq uint64) string {
		return string(task.Event{Seq: seq, At: noon(), Kind: task.KindNotice, Params: []byte(`{"message":"m"}`)}.AppendLine(nil))
	}
	log := line(1) + "garbage\n" + "\x00\x00\n" + line(4) + line(2) + line(1<<40) + line(5)
	x, _, damaged := scanAll(t, strings.NewReader(log))
	if got := heads(&x); got != "1 4 5" || damaged != 4 || x.n != 5 {
		t.Errorf("items %s of %d, %d damaged", got, x.n, damaged)
	}
}

// A line of 50 MB is one item; it is known by its beginning and never held.
func TestAnEndlessLine(t *testing.T) {
	huge := task.Event{Seq: 2, At: noon(), Kind: task.KindOutput, Params: []byte(`{"stdout":"` + strings.Repeat("x", 50<<20) + `"}`)}.AppendLine(nil)
	log := append(aLog(`notice {"message":"before"}`), huge...)
	log = append(log, task.Event{Seq: 3, At: noon(), Kind: task.KindNotice, Params: []byte(`{"message":"after"}`)}.AppendLine(nil)...)
	x, _, damaged := scanAll(t, bytes.NewReader(log))
	if got := heads(&x); got != "1 2 3" || damaged != 0 || x.size(2) != int64(len(huge)) {
		t.Errorf("items %s, %d damaged, size %d", got, damaged, x.size(2))
	}
	r := newRig(t, &world{runs: []Run{aRun()}, log: inMemory(log)}, Options{Run: "latest"}, 80, 60)
	r.has("before", "xxxxx", "more than are shown", "after")
	r.press("g", "tab", "enter", "pgdown", "r", "G")
	hits, _, err := newSearcher("after", false).search(bytes.NewReader(log), 0)
	if err != nil {
		t.Fatal(err)
	}
	more, _, err := newSearcher("after", false).search(bytes.NewReader(log), int64(len(log)-200))
	if err != nil || len(hits)+len(more) == 0 {
		t.Errorf("found %v %v, %v", hits, more, err)
	}
}

// The end of a log is shown before the rest is read, and looks the same afterwards.
func TestTheEndIsReadFirst(t *testing.T) {
	var b bytes.Buffer
	if err := longlog.Write(&b, 30_000); err != nil {
		t.Fatal(err)
	}
	log := bytes.NewReader(b.Bytes())
	tail, err := readTail(log, log.Size(), firstTail)
	if err != nil || tail.last() != 30_000 || tail.tailFrom < 29_000 {
		t.Fatalf("from %d to %d, %v", tail.tailFrom, tail.last(), err)
	}
	whole, _, _ := scanAll(t, log)
	f := &filter{}
	for i, seq := 0, uint32(30_001); i < 100; i++ {
		a, b := tail.before(seq, f), whole.before(seq, f)
		if a != b {
			t.Fatalf("before %d: %d in the end, %d in the whole", seq, a, b)
		}
		seq = a
	}
}

// The summary is a fold: what it says does not depend on the steps in which it was read.
func TestSummary(t *testing.T) {
	_, s, _ := scanAll(t, bytes.NewReader(story(t)))
	if len(s.steps) != 4 || s.steps[1].end.Sub(s.steps[1].begin).Seconds() != 8.2 || len(s.plan) != 3 || s.usage == nil || s.usage.Requests != 9 ||
		s.used != 50000 || len(s.denied) != 1 || len(s.published) != 2 || len(s.asked) != 0 || s.turns != 1 || s.result == nil || s.result.Code != 7 {
		t.Errorf("%+v", s)
	}
}

func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":"\\\""},1,null],"c":{"d":{}}}`))
	f.Add([]byte(`{"a":"`))
	f.Add([]byte(`{"a":{"b":[[[[`))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		fields(b, func(_, v []byte) bool {
			n += len(v)
			skipValue(v)
			return true
		})
		if n > len(b) {
			t.Errorf("%d bytes of values in %d", n, len(b))
		}
		newSearcher("a", false).shown(b, 0)
		classify("session/update", b)
	})
}

func FuzzScan(f *testing.F) {
	f.Add(aLog(`notice {"message":"a"}`, update(`"sessionUpdate":"tool_call","toolCallId":"x"`)))
	f.Add([]byte("{\"type\":\"notification\",\"v\":1,\"seq\":1,\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, _, _ := scanAll(t, bytes.NewReader(b))
		for seq := uint32(1); seq <= x.last() && seq < 1000; seq++ {
			if refs := x.refs(seq, &filter{}); len(refs) > 0 {
				it, err := loadItem(bytes.NewReader(b), refs, false)
				if err != nil {
					t.Fatal(err)
				}
				it.rows(40, true)
			}
		}
	})
}
