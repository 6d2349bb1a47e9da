package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

func begin() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func about() About {
	return About{
		Run: "3f9a1c2b-0000-4000-8000-000000000001", State: task.StateCompleted, Title: "Fix the test", Prompt: "Fix the *flaky* test.\nThank you!",
		Agent: "claude", Provider: "local", Network: "trusted", Repos: []string{"org/repo"}, Created: begin(),
	}
}

type story struct {
	events []task.Event
	at     time.Time
}

func (s *story) add(kind task.Kind, params string) {
	s.at = s.at.Add(500 * time.Millisecond)
	s.events = append(s.events, task.Event{Seq: uint64(len(s.events) + 1), At: s.at, Kind: kind, Params: []byte(params)})
}

func (s *story) update(u string) { s.add(task.KindAgent, `{"update":`+u+`}`) }

func (s *story) said(text string, continued bool) {
	s.add(task.KindOutput, string(task.AppendOutput(nil, task.Stdout, []byte(text), continued)))
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // a text can always be encoded
	return string(b)
}

// everything is a run in which everything happens.
func everything() *story {
	s := &story{at: begin()}
	s.add(task.KindStep, `{"step":"agent","status":"in_progress","label":"Starting agent","group":"setup"}`)
	s.add("sdk_session", `{"sessionId":"x"}`)
	s.update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"I look at it first."}}`)
	s.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I run the tests:\n"}}`)
	s.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + "\\n```sh\\ngo test <pkg>\\n```\\n" + `"}}`)
	s.update(`{"sessionUpdate":"plan","entries":[{"content":"run","status":"completed"},{"content":"mend","status":"pending"}]}`)
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Run: go test","kind":"execute","status":"pending","rawInput":{"command":"go test ./...","timeout":60}}`)
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"2","title":"Edit a.go","kind":"edit"}`)
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed","content":[{"type":"content","content":{"type":"text","text":"` + "```\\nFAIL\\n```" + `"}}]}`)
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"2","status":"completed","content":[{"type":"diff","path":"a.go","oldText":"a\nb\nc\n","newText":"a\nB\nc\n"}]}`)
	s.add(task.KindPermission, `{"requestId":"r1","toolCall":{"title":"Run: rm -r x","kind":"execute","rawInput":{"command":"rm -r x"}},"options":[]}`)
	s.add("permission_resolved", `{"requestId":"r1","optionId":"allow_once","by":"default"}`)
	s.add(task.KindDenied, `{"host":"example.com","port":443,"count":3,"reason":"not allowed"}`)
	s.add(task.KindNotice, `{"level":"warn","message":"slow"}`)
	s.add("user_message", `{"content":"And the docs?"}`)
	s.add(task.KindUsage, `{"model":"m","request":{"requests":1},"run":{"requests":2,"input_tokens":30,"output_tokens":15,"cost_usd":0.25}}`)
	s.add(task.KindTurn, `{"turn":1,"ok":true,"attempts":1,"value":{"items":["a"]}}`)
	s.said("line 1\nline 2\n", false)
	s.add(task.KindOutput, `{"exitCode":1}`)
	s.add(task.KindPublished, `{"org":"org","name":"repo","branch":"fix","url":"https://github.com/org/repo/pull/1","pull":1}`)
	s.add("new_kind", `{"a":1}`)
	s.add(task.KindFinished, `{"run":"3f9a1c2b-0000-4000-8000-000000000001","state":"failed","code":7,"kind":"task_failed","error":"exit code 1","started":"2026-01-02T03:04:05Z","finished":"2026-01-02T03:04:15Z"}`)
	return s
}

// write writes a story in a format.
func write(t *testing.T, format string, a About, o Options, events []task.Event) string {
	t.Helper()
	var b bytes.Buffer
	w, err := writer(format, &b, a, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		if err := w.Event(ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func writer(format string, w io.Writer, a About, o Options) (Writer, error) {
	switch format {
	case "html":
		return HTML(w, a, o)
	case "cast":
		return Cast(w, a), nil
	}
	return Markdown(w, a, o), nil
}

func TestGolden(t *testing.T) {
	for _, format := range []string{"md", "html", "cast"} {
		got := write(t, format, about(), Options{}, everything().events)
		path := filepath.Join("testdata", "everything."+format)
		if os.Getenv("UPDATE_GOLDEN") == "1" {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs; UPDATE_GOLDEN=1 writes it anew. Got:\n%s", path, got)
		}
	}
}

// attacks are texts that try to be more than text.
func attacks() []string {
	return []string{
		"<script>alert(1)</script>", "</pre></details></script><img src=x onerror=alert(1)>", "<!--", "]]>", "<style>*{display:none}",
		"![x](https://evil.test/beacon.png)", "[safe](javascript:alert(1))", "[x]: https://evil.test", "![x][x]", "<https://evil.test>",
		"```\nnever closed <b>", "````\n```\n<b>\n````", "- item\n  ```\n<b>\n", "~~~\n<b>", "text\r# Heading\r<b>", "# Heading", "---", "</summary>",
		"\x1b]52;c;aGFja2Vk\x07\x1b[2J\x1bc\u009b2J", "\u202ereversed", "\x00\x7f\v\f", "{{.Secret}}", "&lt;b&gt;", "| a | b |\n|---|---|", "@everyone",
		strings.Repeat("`", 100) + "\n<b>", "    <b>", "\xff\xfe<b>",
	}
}

// hostile is a run in which every text is an attack.
func hostile(attack string) (About, []task.Event) {
	s := &story{at: begin()}
	q := quoted(attack)
	for _, kind := range []string{"agent_message_chunk", "agent_thought_chunk", "user_message_chunk"} {
		s.update(`{"sessionUpdate":"` + kind + `","content":{"type":"text","text":` + q + `}}`)
	}
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":` + q + `,"kind":` + q + `,"rawInput":{` + q + `:` + q + `}}`)
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","content":[{"type":"content","content":{"type":"text","text":` + q +
		`}},{"type":"diff","path":` + q + `,"oldText":"a","newText":` + q + `},{"type":` + q + `}]}`)
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"2","status":"failed","title":"t","rawInput":` + q + `,"rawOutput":{"x":` + q + `}}`)
	s.update(`{"sessionUpdate":"plan","entries":[{"content":` + q + `,"status":"completed"}]}`)
	s.add(task.KindStep, `{"step":"x","status":"failed","label":`+q+`,"detail":`+q+`}`)
	s.add(task.KindPermission, `{"requestId":"r","toolCall":{"title":`+q+`}}`)
	s.add("permission_resolved", `{"optionId":`+q+`}`)
	s.add(task.KindDenied, `{"host":`+q+`,"reason":`+q+`}`)
	s.add(task.KindNotice, `{"level":"error","message":`+q+`}`)
	s.add("user_message", `{"content":`+q+`}`)
	s.add(task.KindTurn, `{"turn":1,"error":`+q+`,"value":`+q+`}`)
	s.add(task.KindPublished, `{"org":`+q+`,"url":`+q+`}`)
	s.add(task.Kind(attack), `{"a":`+q+`}`)
	s.said(attack, true)
	s.said("\n", false)
	s.add(task.KindFinished, `{"state":"failed","error":`+q+`,"cleanup":`+q+`}`)
	a := about()
	a.Title, a.Prompt, a.Agent, a.Model, a.Repos, a.Command = attack, attack, attack, attack, []string{attack}, []string{attack, attack}
	return a, s.events
}

func TestHTMLIsHarmless(t *testing.T) {
	known := regexp.MustCompile(`^(html|head|meta|title|style|body|h1|table|tr|th|td|pre|main|details|summary|div|span|p|ul|li)$`)
	tag := regexp.MustCompile(`<\s*/?\s*([^\s>/]*)([^>]*)>`)
	attribute := regexp.MustCompile(`^( (class|scope|lang|charset|http-equiv|content|name)="[^"<]*"| open)*$`)
	for _, attack := range attacks() {
		a, events := hostile(attack)
		page := write(t, "html", a, Options{}, events)
		_, body, _ := strings.Cut(page, "</style>")
		depth := 0
		for _, m := range tag.FindAllStringSubmatch(body, -1) {
			if !known.MatchString(m[1]) || !attribute.MatchString(m[2]) {
				t.Errorf("%q: tag %q", attack, m[0])
			}
			if strings.HasPrefix(m[0], "</pre") {
				depth--
			} else if m[1] == "pre" {
				depth++
			}
		}
		if depth != 0 {
			t.Errorf("%q: %d pre elements are not closed", attack, depth)
		}
		noControls(t, attack, page)
	}
}

func noControls(t *testing.T, attack, text string) {
	t.Helper()
	for _, r := range text {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r == 0x202e {
			t.Errorf("%q: control character %U", attack, r)
			return
		}
	}
}

// A page loads nothing and runs nothing, in any case.
func TestHTMLNeedsNothing(t *testing.T) {
	page := write(t, "html", about(), Options{}, everything().events)
	for _, word := range []string{"<script", "<link", "<img", "<iframe", " src=", "url(", "@import", " href=", " onload"} {
		if strings.Contains(page, word) {
			t.Errorf("the page has %q", word)
		}
	}
	for _, want := range []string{"default-src 'none'", "color-scheme: light dark", "prefers-color-scheme: dark"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// Outside of its own blocks of code a transcript in Markdown has no HTML but ours, no
// picture and no link with another word than its address; and every block is closed.
func TestMarkdownIsHarmless(t *testing.T) {
	ours := regexp.MustCompile(`^(<details>|<summary>[^<]*</summary>|</details>)$`)
	for _, attack := range attacks() {
		a, events := hostile(attack)
		doc := write(t, "md", a, Options{}, events)
		noControls(t, attack, doc)
		fence, open := "", 0
		for line := range strings.Lines(doc) {
			line = strings.TrimSuffix(line, "\n")
			inner := strings.TrimPrefix(strings.TrimPrefix(line, ">"), " ")
			marks, lang := fenceOf(inner)
			switch {
			case fence != "" && strings.HasPrefix(marks, fence) && lang == "":
				fence = ""
				continue
			case fence != "":
				continue
			case marks != "":
				fence = marks
				continue
			case ours.MatchString(line):
				open += strings.Count(line, "<details>") - strings.Count(line, "</details>")
				continue
			}
			if strings.Contains(line, "<") || strings.Contains(line, "![") || strings.Contains(strings.ReplaceAll(line, `\](`, ""), "](") || strings.Contains(line, "```") {
				t.Errorf("%q: line %q", attack, line)
			}
		}
		if fence != "" || open != 0 {
			t.Errorf("%q: fence %q, %d details are open", attack, fence, open)
		}
	}
}

// cast plays a recording.
func play(t *testing.T, text string) (header map[string]any, frames []string, times []float64) {
	t.Helper()
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if i == 0 {
			if err := json.Unmarshal([]byte(line), &header); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var f [3]any
		if err := json.Unmarshal([]byte(line), &f); err != nil || f[1] != "o" {
			t.Fatalf("%q: %v", line, err)
		}
		times, frames = append(times, f[0].(float64)), append(frames, f[2].(string))
	}
	return header, frames, times
}

func TestCast(t *testing.T) {
	s := &story{at: begin()}
	s.add(task.KindStep, `{}`)
	s.said("one\ntwo", true)
	s.said(" é\n", false)
	s.add(task.KindOutput, `{"stdout":"`+"w6k="+`","encoding":"base64"}`) // é
	s.add(task.KindOutput, `{"stdout":"`+"/w=="+`","encoding":"base64"}`) // no UTF-8
	s.add(task.KindOutput, `{"stdout":"`+"8J8="+`","encoding":"base64"}`) // half of a character
	s.add(task.KindOutput, `{"stdout":"`+"mYA="+`","encoding":"base64"}`) // the other half
	s.said("\x1b[31mred\x1b[0m \x1b]52;c;aGFja2Vk\x07\x1b[2J", false)
	s.at = s.at.Add(-time.Hour) // the clock is set back
	s.said("end\n", false)
	header, frames, times := play(t, write(t, "cast", about(), Options{}, s.events))
	if header["version"] != 2.0 || header["width"] != 120.0 || header["timestamp"] != float64(begin().Add(time.Second).Unix()) || header["title"] != "Fix the test" {
		t.Errorf("header %v", header)
	}
	if got, want := strings.Join(frames, ""), "one\r\ntwo é\r\né\ufffd🙀\x1b[31mred\x1b[0m end\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for i := 1; i < len(times); i++ {
		if times[i] < times[i-1] {
			t.Errorf("times %v", times)
		}
	}
	if times[0] != 0 || times[1] != 0.5 {
		t.Errorf("times %v", times)
	}
}

func TestCastWithoutOutput(t *testing.T) {
	var b bytes.Buffer
	if err := Cast(&b, about()).Close(); !errors.Is(err, ErrNoOutput) || b.Len() > 0 {
		t.Errorf("%v, %q", err, b.String())
	}
}

// Of a long output the beginning and the end are kept, and it is said how much is not;
// with Full nothing is left out.
func TestLongOutput(t *testing.T) {
	s := &story{at: begin()}
	total := 0
	for i := range 2000 {
		text := strings.Repeat(fmt.Sprintf("line %d ", i), 100) + "\n"
		total += len(text)
		s.said(text, false)
	}
	for _, format := range []string{"md", "html"} {
		short := write(t, format, about(), Options{}, s.events)
		if len(short) > 3*maxOutput || !strings.Contains(short, "line 0 ") || !strings.Contains(short, "line 1999 ") || !strings.Contains(short, "bytes of output (--full") {
			t.Errorf("%s: %d bytes", format, len(short))
		}
		full := write(t, format, about(), Options{Full: true}, s.events)
		if len(full) < total || strings.Contains(full, "bytes of output (--full") || strings.Count(full, "line 777 ") != 100 {
			t.Errorf("%s, full: %d bytes of %d", format, len(full), total)
		}
	}
}

// A redrawn line is its last state, also when it comes in pieces.
func TestRedrawnOutput(t *testing.T) {
	s := &story{at: begin()}
	for i := range 100 {
		s.said(fmt.Sprintf("\r%d %%", i), true)
	}
	s.said("\rdone\n", false)
	got := write(t, "md", about(), Options{}, s.events)
	if !strings.Contains(got, "```\ndone\n```") || strings.Contains(got, "50 %") {
		t.Error(got)
	}
}

// However long a run is, and however many tools never end, little is kept.
func TestBoundedMemory(t *testing.T) {
	piece := strings.Repeat("x", 32<<10)
	for _, format := range []string{"md", "html", "cast"} {
		w, err := writer(format, io.Discard, about(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var m runtime.MemStats
		s := &story{at: begin()}
		for i := range 400 {
			s.events = s.events[:0]
			s.update(fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"%d","title":"t","rawInput":{"a":%q}}`, i, piece))
			s.said(piece, true)
			s.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + quoted(piece) + `}}`)
			for _, ev := range s.events {
				if err := w.Event(ev); err != nil {
					t.Fatal(err)
				}
			}
		}
		runtime.GC()
		if runtime.ReadMemStats(&m); m.HeapAlloc > 24<<20 {
			t.Errorf("%s: %d MiB in use", format, m.HeapAlloc>>20)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A reader that goes away ends the writing.
func TestBrokenWriter(t *testing.T) {
	gone := errors.New("gone")
	for _, format := range []string{"md", "html", "cast"} {
		w, err := writer(format, failing{gone}, about(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := &story{at: begin()}
		s.said(strings.Repeat("text\n", 100_000), false)
		err = w.Event(s.events[0])
		if err = errors.Join(err, w.Close()); !errors.Is(err, gone) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
