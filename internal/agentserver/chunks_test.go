package agentserver

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/secret"
)

const (
	saying   = "agent_message_chunk"
	thinking = "agent_thought_chunk"
)

// newHost is a host with a journal that nobody reads.
func newHost() *Host {
	return &Host{Log: slog.New(slog.DiscardHandler), journal: newJournal(64<<20, 0)}
}

// told is every event that is in the journal of h, as "kind:text" where it is text.
func told(t *testing.T, h *Host) []string {
	t.Helper()
	var all []string
	frames, _ := h.journal.after(nil, 0, 1<<20)
	for i := range frames {
		if size := wire.FrameSize(&frames[i]); size > wire.MaxFrame {
			t.Errorf("a frame of %d bytes", size)
		}
		var e struct{ Update update }
		if frames[i].Method != wire.EventUpdate {
			all = append(all, frames[i].Method)
			continue
		}
		if err := json.Unmarshal(frames[i].Data, &e); err != nil {
			t.Fatal(err)
		}
		var content struct{ Text string }
		_ = json.Unmarshal(e.Update.Content, &content) // a tool's is a list
		all = append(all, e.Update.Kind+":"+content.Text+e.Update.Status)
	}
	return all
}

func wantTold(t *testing.T, h *Host, want ...string) {
	t.Helper()
	if got := told(t, h); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTokensAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		for range 100 {
			must(t, h.Text(t.Context(), saying, "word "))
			pass(time.Millisecond)
		}
		wantTold(t, h) // the first piece is 100 ms old
		pass(101 * time.Millisecond)
		wantTold(t, h, saying+":"+strings.Repeat("word ", 100))
	})
}

// TestTextIsLive: a stream that never pauses is told several times a second.
func TestTextIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		for range 1000 {
			must(t, h.Text(t.Context(), saying, "x"))
			pass(time.Millisecond)
		}
		if n := len(told(t, h)); n < 4 || n > 5 {
			t.Errorf("%d events in a second", n)
		}
		h.flush()
		if got := strings.Join(told(t, h), ""); strings.Count(got, "x") != 1000 {
			t.Error("text is missing")
		}
	})
}

func TestTextEndsWhereSomethingElseBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ctx := newHost(), t.Context()
		must(t, h.Text(ctx, thinking, "hm"))
		must(t, h.Text(ctx, thinking, ""))
		must(t, h.Text(ctx, saying, ""))
		must(t, h.Text(ctx, thinking, "m"))
		must(t, h.Text(ctx, saying, "I "))
		must(t, h.Update(ctx, json.RawMessage(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"say"}}`)))
		must(t, h.Update(ctx, map[string]any{"sessionUpdate": "plan", "entries": []string{}}))
		must(t, h.Text(ctx, saying, "so"))
		must(t, h.Notice(ctx, "info", "a line"))
		must(t, h.Text(ctx, saying, "!"))
		h.flush()
		wantTold(t, h, thinking+":hmm", saying+":I say", "plan:", saying+":so", "_insights/console", saying+":!")
	})
}

// TestChunksThatDifferAreNotJoined: what stands beside the text is not lost.
func TestChunksThatDifferAreNotJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		for _, u := range []string{
			`{"sessionUpdate":"agent_message_chunk","messageId":"1","content":{"type":"text","text":"a"}}`,
			`{"sessionUpdate":"agent_message_chunk","content":{"text":"b","type":"text"},"messageId":"1"}`,
			`{"sessionUpdate":"agent_message_chunk","messageId":"2","content":{"type":"text","text":"c"}}`,
			`{"sessionUpdate":"agent_message_chunk","messageId":"2","content":{"type":"image","data":"AA=="}}`,
			`{"sessionUpdate":"agent_message_chunk","messageId":"2","content":{"type":"text","text":"d","annotations":{}}}`,
			`{"sessionUpdate":"brand_new","content":7}`,
		} {
			must(t, h.Update(t.Context(), json.RawMessage(u)))
		}
		h.flush()
		wantTold(t, h, saying+":ab", saying+":c", saying+":", saying+":d", "brand_new:")
		frames, _ := h.journal.after(nil, 0, 1)
		if want := `{"update":{"content":{"text":"ab","type":"text"},"messageId":"1","sessionUpdate":"agent_message_chunk"}}`; string(frames[0].Data) != want {
			t.Errorf("%s", frames[0].Data)
		}
	})
}

func TestLongTextIsSeveralEvents(t *testing.T) {
	for _, piece := range []string{"x", "é", "\x01"} {
		h := newHost()
		text := strings.Repeat(piece, 3<<20/len(piece))
		must(t, h.Text(t.Context(), saying, text))
		var all strings.Builder
		for _, s := range told(t, h) {
			all.WriteString(strings.TrimPrefix(s, saying+":"))
		}
		if all.String() != text {
			t.Errorf("%q: %d bytes of %d", piece, all.Len(), len(text))
		}
	}
}

func TestTextIsWrittenAtItsSize(t *testing.T) {
	h := newHost()
	for range 2 * textSize / 100 {
		must(t, h.Text(t.Context(), saying, strings.Repeat("x", 100)))
	}
	if n := len(told(t, h)); n != 1 {
		t.Errorf("%d events", n)
	}
	h.flush()
}

// TestFullJournalHoldsTheWords: who talks waits, and what was taken before is kept.
func TestFullJournalHoldsTheWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.journal = newJournal(4000, 0)
		must(t, h.Text(t.Context(), saying, "first"))
		for h.journal.held < 3000 {
			h.journal.append(output(500))
		}
		done := make(chan error)
		go func() { done <- h.Text(t.Context(), saying, "second") }()
		go func() { done <- h.Update(t.Context(), snapshot("t", "in_progress", "")) }()
		pass(time.Hour)
		select {
		case <-done:
			t.Error("it did not wait")
		default:
		}
		last, _ := h.journal.state()
		h.journal.ack(last)
		must(t, <-done)
		must(t, <-done)
		h.flush()
		if got := told(t, h); len(got) != 2 {
			t.Errorf("%q", got)
		}
	})
}

func snapshot(id, status, title string) ToolCall {
	return ToolCall{SessionUpdate: "tool_call_update", ID: id, Status: status, Title: title}
}

func TestSnapshotsOfARunningTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ctx := newHost(), t.Context()
		must(t, h.Update(ctx, ToolCall{SessionUpdate: "tool_call", ID: "1", Title: "make", Status: "pending"}))
		for i := range 95 { // nine and a half seconds
			u := snapshot("1", "in_progress", "make")
			u.Content = TextContent(strings.Repeat("line\n", i))
			must(t, h.Update(ctx, u))
			pass(100 * time.Millisecond)
		}
		if n := len(told(t, h)); n < 5 || n > 7 {
			t.Errorf("%d events", n)
		}
		must(t, h.Update(ctx, ToolCall{SessionUpdate: "tool_call_update", ID: "1", Status: "completed", RawOutput: json.RawMessage(`{"code":0}`)}))
		h.flush()
		frames, _ := h.journal.after(nil, 0, 100)
		last := string(frames[len(frames)-1].Data)
		// What came after the last snapshot that was written is not lost.
		if !strings.Contains(last, `"status":"completed"`) || !strings.Contains(last, `"rawOutput":{"code":0}`) || strings.Count(last, `line`) != 94 {
			t.Errorf("%s", last)
		}
		if h.held.bytes != 0 || len(h.held.tools) != 0 {
			t.Errorf("%d bytes of %d tools are still held", h.held.bytes, len(h.held.tools))
		}
	})
}

// TestSnapshotIsToldInTime: the last snapshot of a tool that has gone silent is told,
// and text does not wait for it.
func TestSnapshotIsToldInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ctx := newHost(), t.Context()
		must(t, h.Update(ctx, snapshot("1", "in_progress", "a")))
		must(t, h.Text(ctx, saying, "so"))
		must(t, h.Update(ctx, snapshot("1", "in_progress", "b")))
		must(t, h.Update(ctx, snapshot("1", "", "c")))
		must(t, h.Text(ctx, saying, "on"))
		pass(time.Second)
		wantTold(t, h, "tool_call_update:in_progress", saying+":soon")
		pass(time.Second + 1)
		wantTold(t, h, "tool_call_update:in_progress", saying+":soon", "tool_call_update:in_progress")
		frames, _ := h.journal.after(nil, 2, 1)
		if !strings.Contains(string(frames[0].Data), `"title":"c"`) {
			t.Errorf("%s", frames[0].Data)
		}
	})
}

func TestManyToolsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		for i := range toolMost + 50 {
			u := snapshot(strings.Repeat("i", i+1), "in_progress", "")
			must(t, h.Update(t.Context(), u))
			u.Content = TextContent(strings.Repeat("x", 24<<10))
			must(t, h.Update(t.Context(), u))
			if h.held.bytes > toolBytes || len(h.held.tools) > toolMost {
				t.Fatalf("%d bytes of %d tools are held", h.held.bytes, len(h.held.tools))
			}
		}
		h.flush()
	})
}

func TestLongToolResultIsCut(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	raw, _ := json.Marshal(long)
	for name, u := range map[string]ToolCall{
		"content":   {Content: TextContent(long)},
		"rawOutput": {RawOutput: raw, RawInput: raw},
		"both":      {Content: TextContent(long), RawOutput: raw},
		"snapshot":  {Content: TextContent(long), Status: "in_progress"},
	} {
		h := newHost()
		u.SessionUpdate, u.ID = "tool_call_update", "1"
		if u.Status == "" {
			u.Status = "completed"
		}
		must(t, h.Update(t.Context(), u))
		frames, _ := h.journal.after(nil, 0, 2)
		if len(frames) != 1 || !strings.Contains(string(frames[0].Data), "éé… (20971") || !json.Valid(frames[0].Data) {
			t.Errorf("%s: %d events, %.200s", name, len(frames), frames[0].Data)
		}
		h.flush()
	}
}

func TestUpdateThatCannotBeCutIsRefused(t *testing.T) {
	h := newHost()
	err := h.Update(t.Context(), map[string]string{"sessionUpdate": "plan", "x": strings.Repeat("x", wire.MaxFrame)})
	if err == nil || len(told(t, h)) != 0 {
		t.Error(err)
	}
	if err := h.Update(t.Context(), map[string]any{
		"sessionUpdate": saying, "content": map[string]string{"type": "text", "text": "x", "y": strings.Repeat("x", wire.MaxFrame)},
	}); err == nil {
		t.Error("no error")
	}
}

// TestSecretIsNotCutInTwo: the masks of the host see one event at a time, so a secret
// whose second half comes late must be in one event.
func TestSecretIsNotCutInTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		masker := secret.NewMasker("hunter2-and-more")
		h.mask = func() *secret.Masker { return masker }
		slowly := func(pieces ...string) {
			for _, piece := range pieces {
				must(t, h.Text(t.Context(), saying, piece))
				pass(textTime + time.Millisecond)
			}
		}
		slowly("it is hunt", "er2-and", "-more, yes. ")
		wantTold(t, h, saying+":it is ", saying+":hunter2-and-more, yes. ")
		pass(keptTime / 2)
		slowly("ghp_0123456789abcdef", "0123 ")
		wantTold(t, h, saying+":it is ", saying+":hunter2-and-more, yes. ", saying+":ghp_0123456789abcdef0123 ")
	})
}

// TestWhatIsKeptIsTold: what might have become a secret is told when another event
// comes or when nothing has come for long, and is bounded.
func TestWhatIsKeptIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		masker := secret.NewMasker("hunter2-and-more")
		h.mask = func() *secret.Masker { return masker }
		must(t, h.Text(t.Context(), saying, "the hunt"))
		pass(textTime + keptTime/2)
		wantTold(t, h, saying+":the ")
		pass(keptTime)
		wantTold(t, h, saying+":the ", saying+":hunt")
		must(t, h.Text(t.Context(), saying, " of a hunt"))
		pass(textTime + time.Millisecond)
		must(t, h.Event(t.Context(), wire.EventTurnComplete, map[string]string{}))
		wantTold(t, h, saying+":the ", saying+":hunt", saying+": of a ", saying+":hunt", wire.EventTurnComplete)
		for range 2*textKept/textSize + 1 {
			must(t, h.Text(t.Context(), saying, "ghp_"+strings.Repeat("x", textSize)))
		}
		if n := len(told(t, h)); n < 4 {
			t.Errorf("%d events: a token without an end is kept for ever", n)
		}
	})
}
