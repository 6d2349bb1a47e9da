package tui

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/Insights/insightscli/internal/task"
)

// sound checks what holds for every frame: it has no more lines than the screen and none is
// wider, and no byte does more than show text or change how it looks.
func (r *rig) sound() {
	r.t.Helper()
	frame := r.m.View()
	lines := strings.Split(frame, "\n")
	if len(lines) > r.m.height {
		r.t.Fatalf("%d lines on %d", len(lines), r.m.height)
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > r.m.width {
			r.t.Fatalf("a line of %d cells on %d: %q", w, r.m.width, l)
		}
	}
	rest := frame
	for rest != "" {
		i := strings.IndexByte(rest, 0x1b)
		part := rest
		if i >= 0 {
			part = rest[:i]
		}
		for _, c := range part {
			if c != '\n' && unicode.IsControl(c) || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 || c == 0xfeff {
				r.t.Fatalf("%U in %q", c, frame)
			}
		}
		if i < 0 {
			break
		}
		end := strings.IndexByte(rest[i:], 'm')
		if end < 2 || rest[i+1] != '[' || strings.Trim(rest[i+2:i+end], "0123456789;") != "" {
			r.t.Fatalf("sequence %q", rest[i:min(len(rest), i+20)])
		}
		rest = rest[i+end+1:]
	}
}

// hostile are texts that have broken screens.
func hostile() []string {
	return []string{
		"\x1bc\x1b[2J\x1b[?1049h", "\x1b]0;title\a", "\x1b]52;c;ZXZpbA==\x1b\\", "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "\x1bP1$r\x1b\\", "\x1b[31", "\u009b31m\u009d0;x\u009c",
		"日本語日本語日本語", "👩‍👩‍👧‍👦👩🏽‍🚀🇩🇪", "e" + strings.Repeat("\u0301", 500), "\u0301\u0301start", "a\tb\t\tc", "\r\r\n\r10%\r20%", strings.Repeat("x", 500),
		"\u202eabc\u202c\u2066x\u2069", "\ufeff\u200b\u200dx\u200d", "\u2028\u2029\u0085", "\x00\x07\x08\x7f", "\u1100\u1161\u11a8", "\u0e01\u0e33\u0e33", "ﷺ", "𒐫", "\xff\xfe\xc3",
		"```\n" + strings.Repeat("`", 40), strings.Repeat("*", 50) + "x" + strings.Repeat("_", 50), "[[[](((", "|||", "#", "> ", "- [ ] x", "1. ", "\t\t\t- x", "<>&\u2029", strings.Repeat("> ", 100),
	}
}

// hostileLog is a log of every kind of event with hostile texts in every field.
func hostileLog(rnd *rand.Rand, events int) []byte {
	word := func() string {
		s := hostile()
		t := ""
		for range 1 + rnd.IntN(4) {
			t += s[rnd.IntN(len(s))]
		}
		return fmt.Sprintf("%q", strings.ToValidUTF8(t, "?")) // close enough to JSON: what is not is damaged, too
	}
	kinds := []func() string{
		func() string { return `step {"step":` + word() + `,"status":"in_progress","label":` + word() + `}` },
		func() string { return `notice {"level":"error","message":` + word() + `}` },
		func() string { return `denied {"host":` + word() + `,"port":1,"reason":` + word() + `}` },
		func() string { return `published {"org":` + word() + `,"name":` + word() + `,"url":` + word() + `}` },
		func() string { return `turn {"turn":1,"ok":false,"error":` + word() + `}` },
		func() string { return word() + ` {"x":` + word() + `}` },
		func() string {
			return `permission {"requestId":"r` + fmt.Sprint(rnd.IntN(9)) + `","toolCall":{"title":` + word() + `,"rawInput":{` + word() + `:` + word() + `}},"options":[{"optionId":"a","name":` + word() + `}]}`
		},
		func() string { return `usage {"model":` + word() + `,"run":{"requests":1}}` },
		func() string {
			return string(append([]byte("output "), task.AppendOutput(nil, []task.Stream{task.Stdout, task.Stderr}[rnd.IntN(2)], []byte(hostile()[rnd.IntN(len(hostile()))]), true)...))
		},
		func() string {
			return update(`"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + word() + `}`)
		},
		func() string {
			return update(`"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":` + word() + `}`)
		},
		func() string {
			return update(`"sessionUpdate":"plan","entries":[{"content":` + word() + `,"status":` + word() + `}]`)
		},
		func() string {
			return update(`"sessionUpdate":"tool_call","toolCallId":"` + fmt.Sprint(rnd.IntN(9)) + `","title":` + word() + `,"kind":` + word() + `,"rawInput":` + word())
		},
		func() string {
			return update(`"sessionUpdate":"tool_call_update","toolCallId":"` + fmt.Sprint(rnd.IntN(9)) + `","status":"completed","content":[{"type":"diff","path":` + word() + `,"oldText":` + word() + `,"newText":` + word() + `},{"type":"content","content":{"type":"text","text":` + word() + `}}]`)
		},
	}
	var all []string
	for range events {
		all = append(all, kinds[rnd.IntN(len(kinds))]())
	}
	return aLog(all...)
}

// Whatever is in a log and whatever is pressed, at any width: the frame is sound.
func TestHostileText(t *testing.T) {
	keys := []string{"up", "down", "pgup", "pgdown", "home", "end", "tab", "shift+tab", "enter", "r", "e", "E", "n", "N", "f", "t", "?", "d", "a", "s", "/", "esc", "q", "space", "left", "right", "x", "y", "m", "M", "o"}
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for seed := range uint64(rounds) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		run := aRun()
		run.Title, run.Agent, run.Provider, run.State = hostile()[rnd.IntN(len(hostile()))], hostile()[rnd.IntN(len(hostile()))], hostile()[rnd.IntN(len(hostile()))], task.StateInProgress
		w := &world{runs: []Run{run, run}, log: inMemory(hostileLog(rnd, 60)), patch: strings.Join(hostile(), "\n+")}
		r := newRig(t, w, Options{Color: seed%2 == 0}, 1+rnd.IntN(200), 1+rnd.IntN(60))
		r.sound()
		r.press("enter")
		for range 60 {
			if rnd.IntN(8) == 0 { // a storm of sizes
				r.send(tea.WindowSizeMsg{Width: rnd.IntN(200), Height: rnd.IntN(60)})
			}
			if rnd.IntN(10) == 0 {
				r.types(hostile()[rnd.IntN(len(hostile()))])
			}
			r.press(keys[rnd.IntN(len(keys))])
			r.sound()
		}
	}
}

func FuzzRows(f *testing.F) {
	for _, s := range hostile() {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		width = 1 + max(0, width)%200
		for _, k := range []kind{message, thought, user, output, notice, other} {
			it := item{kind: k, text: s, pieces: []piece{{false, s}}}
			for _, r := range it.rows(width, true) {
				if got := ansi.StringWidth(painter{}.paint(r, width)); got > width {
					t.Fatalf("%d cells on %d: %q", got, width, r)
				}
			}
		}
	})
}

// The screen follows a live run until somebody scrolls, and then stays where it is.
func TestFollowing(t *testing.T) {
	run := aRun()
	run.State = task.StateInProgress
	grown := &growingLog{}
	grown.b = aLog(`notice {"message":"line 1"}`, `notice {"message":"line 2"}`)
	r := newRig(t, &world{runs: []Run{run}, log: func() (Log, error) { return grown, nil }}, Options{Run: "latest"}, 60, 10)
	more := func(n int) {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`notice {"message":"line %d"}`, i+1))
		}
		grown.b = aLog(all...)
		r.wait()
	}
	more(30)
	r.has("line 30", "following")
	r.press("pgup")
	before := r.screen()
	more(60)
	if r.hasNot("line 60", "following"); !strings.Contains(before, "line 20") {
		t.Errorf("a page up shows %s", before)
	}
	r.has("line 20")
	r.press("G")
	r.has("line 60", "following")
	more(61)
	r.has("line 61")
}

type growingLog struct{ growing }

func (g *growingLog) Size() (int64, error) { return int64(len(g.b)), nil }
func (g *growingLog) Close() error         { return nil }

// A run that has no log yet is waited for.
func TestARunThatHasNotBegun(t *testing.T) {
	run := aRun()
	run.State = task.StateQueued
	w := &world{runs: []Run{run}}
	r := newRig(t, w, Options{Run: "latest"}, 60, 10)
	r.has("reading…")
	w.log = inMemory(aLog(`notice {"message":"it begins"}`))
	r.wait()
	r.wait()
	r.has("it begins")
}

func TestSearch(t *testing.T) {
	r := newRig(t, &world{runs: []Run{aRun()}, log: inMemory(story(t))}, Options{Run: "latest", Color: true}, 80, 20)
	r.press("g", "/")
	r.types("test")
	r.press("enter")
	r.has("match")
	seen := map[uint32]bool{}
	for range 40 {
		at := r.m.view.cursor
		if row := r.m.view.rowsOf(at.seq)[at.line].String(); !strings.Contains(strings.ToLower(row), "test") {
			t.Fatalf("the cursor is at %q", row)
		}
		seen[at.seq] = true
		if !strings.Contains(r.m.View(), "\x1b[30;43mtest\x1b[0m") {
			t.Fatal("nothing is marked")
		}
		r.press("n")
	}
	if len(seen) < 5 { // thought, message, plan, tool, message of the user
		t.Errorf("found in %v", seen)
	}
	r.press("N", "esc")
	r.hasNot("match")
	r.press("/")
	r.types("toolCallId") // a word of the protocol
	r.has("0 match")
	r.press("enter")
	r.has("was not found")
	r.press("/")
	r.types("<<SCRIPT") // with a capital it counts
	r.press("enter")
	r.has("was not found")
	r.press("/")
	r.types("<<script")
	r.has("1 match")
}

// Errors are jumped to, and kinds left out.
func TestErrorsAndKinds(t *testing.T) {
	r := newRig(t, &world{runs: []Run{aRun()}, log: inMemory(story(t))}, Options{Run: "latest"}, 80, 30)
	r.press("g")
	var kinds []string
	for range 20 {
		at := r.m.view.cursor.seq
		if r.press("e"); r.m.view.cursor.seq == at {
			break
		}
		kinds = append(kinds, r.m.view.idx.at(r.m.view.cursor.seq).kind.String())
	}
	if got := strings.Join(kinds, " "); got != "tools tools denied output notices result" {
		t.Errorf("errors: %s", got)
	}
	r.press("f", "a")
	for range 3 { // steps, messages, thoughts → tools
		r.press("down")
	}
	r.press("space", "enter", "g")
	r.has("go test ./...", "Edit lines.go")
	r.hasNot("Preparing context", "denied")
}

func TestAnswerInPlace(t *testing.T) {
	run := aRun()
	run.State = task.StateInProgress
	w := &world{runs: []Run{run}, log: inMemory(aLog(
		`permission {"requestId":"r1","toolCall":{"title":"rm -rf build"},"options":[{"optionId":"allow_once","name":"Allow"},{"optionId":"reject_once","name":"Reject"}]}`,
	))}
	r := newRig(t, w, Options{Run: "latest"}, 80, 20)
	r.has("the agent asks for leave, a answers: rm -rf build")
	r.press("2") // not before it was said that this is the answer
	r.press("a")
	r.has("1 Allow", "2 Reject")
	r.press("2")
	r.press("m")
	r.types("then run the tests")
	r.press("enter", "M")
	r.types("no")
	r.press("esc", "i")
	want := []task.Input{
		{Kind: task.InputPermission, Name: "r1", Value: "reject_once"}, {Kind: task.InputMessage, Text: "then run the tests"}, {Kind: task.InputInterrupt},
	}
	if len(w.sent) != len(want) {
		t.Fatalf("sent %+v", w.sent)
	}
	for i, in := range w.sent {
		if in.ID == "" {
			t.Error("an input without an id")
		}
		if in.ID = ""; fmt.Sprint(in) != fmt.Sprint(want[i]) {
			t.Errorf("sent %+v, want %+v", in, want[i])
		}
	}
	w.fails = errors.New("there is no room \x1b[2J")
	r.press("i")
	r.has("there is no room")
	r.press("x")
	r.has("Cancel run 3f9a1c2b")
	r.press("y")
	if got := strings.Join(w.did, ";"); got != "cancel 3f9a1c2b" {
		t.Errorf("did %s", got)
	}
}

func TestTable(t *testing.T) {
	w := &world{runs: someRuns(), log: inMemory(story(t))}
	r := newRig(t, w, Options{Repo: "."}, 120, 20)
	r.press("/")
	r.types("acp")
	r.press("enter")
	r.has("bbbbbbbb", "filter: acp", "1 runs")
	r.hasNot("aaaaaaaa")
	r.press("esc", "s", "s", "s", "s", "s") // by cost
	r.has("by cost")
	if r.m.list.shown[0].ID.Short() != "aaaaaaaa" {
		t.Errorf("first is %s", r.m.list.shown[0].ID)
	}
	r.press("P", "y")
	r.has("removed 1 things")
	r.press("n")
	r.types("mend it")
	r.press("tab", "right", "ctrl+s")
	r.has("hostile  title with lines", "run 3f9a1c2b is started")
	if got := strings.Join(w.did, ";"); got != "prune;start codex: mend it in ." {
		t.Errorf("did %s", got)
	}
	r.press("q")
	r.has("RUN", "STATE")
	if r.press("q"); !r.quit {
		t.Error("q does not quit")
	}
}

func TestCopyAndSave(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, &world{runs: []Run{aRun()}, log: inMemory(story(t))}, Options{Run: "latest", Dir: dir}, 80, 20)
	if r.press("down", "up", "tab"); r.out.Len() > 0 {
		t.Errorf("written without being asked: %q", r.out.String())
	}
	r.press("G", "shift+tab", "y")
	if !strings.HasPrefix(r.out.String(), "\x1b]52;c;") || !strings.HasSuffix(r.out.String(), "\a") {
		t.Errorf("copied by %q", r.out.String())
	}
	r.press("s", "enter")
	r.has("saved")
	b, err := os.ReadFile(filepath.Join(dir, "run-3f9a1c2b.jsonl"))
	if err != nil || string(b) != string(story(t)) {
		t.Errorf("saved %d bytes, %v", len(b), err)
	}
	r.press("s", "enter") // nothing is overwritten
	r.has("file exists")
}

// The screen of a run of this process leaves when the run is over, unless somebody reads.
func TestAHostedRunLeaves(t *testing.T) {
	for _, reading := range []bool{false, true} {
		run := aRun()
		run.State = task.StateInProgress
		grown := &growingLog{growing{b: aLog(`notice {"message":"a"}`, `notice {"message":"b"}`)}}
		w := &world{runs: []Run{run}, log: func() (Log, error) { return grown, nil }}
		r := newRig(t, w, Options{Run: string(theRun), First: &run, Hosted: true}, 80, 20)
		if reading {
			r.press("up")
		}
		grown.b = aLog(`notice {"message":"a"}`, `notice {"message":"b"}`, `finished {"state":"completed"}`)
		r.wait()
		if r.quit == reading {
			t.Errorf("reading %v: left %v", reading, r.quit)
		}
		if reading {
			if r.press("q"); !r.quit {
				t.Error("q does not leave")
			}
		}
	}
}

// Somebody who talks with the agent is asked before nobody does.
func TestLeavingATalk(t *testing.T) {
	run, ended := aRun(), 0
	run.State = task.StateInProgress
	r := newRig(t, &world{runs: []Run{run}, log: inMemory(aLog(`notice {"message":"a"}`))}, Options{Run: string(theRun), First: &run, Hosted: true, End: func() { ended++ }}, 80, 20)
	r.press("q", "n")
	if r.quit || ended != 0 {
		t.Error("left without a yes")
	}
	r.press("q", "y")
	if !r.quit || ended != 1 {
		t.Errorf("left %v, ended %d", r.quit, ended)
	}
}

func TestMouse(t *testing.T) {
	r := newRig(t, &world{runs: []Run{aRun()}, log: inMemory(story(t))}, Options{Run: "latest"}, 80, 20)
	r.press("v")
	at := r.m.view.top
	r.send(tea.MouseMsg{Button: tea.MouseButtonWheelUp})
	if r.m.view.top == at || r.m.view.follow {
		t.Error("the wheel does not scroll")
	}
	r.send(tea.MouseMsg{Button: tea.MouseButtonLeft, Action: tea.MouseActionPress, Y: 6})
	if r.m.view.cursor != r.m.view.rows[4].pos {
		t.Errorf("the cursor is at %v", r.m.view.cursor)
	}
}

// Keys that are pressed faster than they are read arrive together.
func TestKeysThatComeTogether(t *testing.T) {
	r := newRig(t, &world{runs: []Run{aRun()}, log: inMemory(story(t))}, Options{Run: "latest"}, 80, 20)
	r.press("g")
	at := r.m.view.cursor.seq
	r.press("jjj")
	if r.m.view.cursor.seq <= at {
		t.Error("three keys are none")
	}
}

func TestKeysAreExplained(t *testing.T) {
	r := newRig(t, &world{runs: []Run{aRun()}, log: inMemory(story(t))}, Options{Run: "latest"}, 100, 80)
	r.press("?")
	r.has("search", "next error", "end the turn, not the run", "copy the item", "space")
}
