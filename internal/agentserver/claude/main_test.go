//go:build unix

package claude

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/memory"
	"github.com/Insights/insightscli/internal/task"
)

// hangs is long enough to tell an answer from a hang.
const hangs = 90 * time.Second

// The test binary under the name of the program is the program: it replays.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == Name {
		os.Exit(replay())
	}
	os.Exit(m.Run())
}

// replay does, for the nth message, what the nth file of FIXTURES says. Its lines are
// written as they are, but for those that begin with a # and a word: exit CODE, die WORDS
// (on the standard error, then exit 1), unless FLAG WORDS (the same where an argument has
// FLAG), with FLAG LINE (where an argument is FLAG, LINE is all that is written, then exit 1), huge, read (waits for one more line).
// Everything that was read is appended to the file LOG.
func replay() int {
	log, err := os.OpenFile(os.Getenv("LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	_, _ = fmt.Fprintf(log, "argv %s\n", strings.Join(os.Args[1:], " "))
	if slices.Contains(os.Args, "--version") {
		fmt.Println(os.Getenv("VERSION") + " (Claude Code)")
		return 0
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	take := func() (string, bool) {
		if !in.Scan() {
			return "", false
		}
		_, _ = fmt.Fprintf(log, "%s\n", in.Text())
		return in.Text(), true
	}
	fixtures := filepath.SplitList(os.Getenv("FIXTURES"))
	if len(fixtures) > 0 && strings.HasPrefix(fixtures[0], "#") {
		if code, over := act(fixtures[0], take); over {
			return code
		}
		fixtures = fixtures[1:]
	}
	for n := 0; ; {
		text, ok := take()
		if !ok {
			return 0
		}
		if !strings.Contains(text, `"type":"user"`) || n >= len(fixtures) {
			continue
		}
		if code, over := replayFile(fixtures[n], take); over {
			return code
		}
		n++
	}
}

func replayFile(path string, take func() (string, bool)) (code int, over bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9, true
	}
	for l := range strings.Lines(string(b)) {
		if !strings.HasPrefix(l, "#") {
			fmt.Print(l)
			continue
		}
		if code, over := act(strings.TrimSpace(l), take); over {
			return code, true
		}
	}
	return 0, false
}

func act(l string, take func() (string, bool)) (code int, over bool) {
	word, rest, _ := strings.Cut(l[1:], " ")
	switch word {
	case "exit":
		code, _ := strconv.Atoi(rest)
		return code, true
	case "unless":
		flag, words, _ := strings.Cut(rest, " ")
		if !slices.Contains(os.Args, flag) {
			return 0, false
		}
		rest = words
		fallthrough
	case "die":
		fmt.Fprintln(os.Stderr, rest)
		return 1, true
	case "with":
		flag, line, _ := strings.Cut(rest, " ")
		if slices.Contains(os.Args, flag) {
			fmt.Println(line)
			return 1, true
		}
	case "huge":
		fmt.Println(`{"type":"x","x":"` + strings.Repeat("x", maxLine) + `"}`)
	case "read":
		_, _ = take()
	}
	return 0, false
}

// place is a whole agent server with this driver.
type place struct {
	t      *testing.T
	client *agent.Client
	dir    string
	driver *driver // once the session has begun

	mu      sync.Mutex // guards the rest
	frames  []wire.Frame
	changed chan struct{}
}

// newPlace makes one whose programs are found in bin.
func newPlace(t *testing.T, bin string, env map[string]string) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), changed: make(chan struct{})}
	provider := memory.New(map[string]agentserver.NewDriver{Name: func(h *agentserver.Host) agentserver.Driver {
		p.driver = New(h).(*driver)
		return p.driver
	}})
	key, err := link.NewKeys("run")
	p.must(err)
	all := map[string]string{"PATH": bin + ":" + os.Getenv("PATH"), tokenName: "insx_token"}
	for k, v := range env {
		all[k] = v
	}
	boot, err := json.Marshal(wire.Boot{
		V: wire.Version, Run: "run", HostKey: key.Public(), Secret: key.Secret, Home: "/home/agent", Dir: "/tmp/workspace", Env: all,
	})
	p.must(err)
	box, err := provider.Create(t.Context(), sandbox.Spec{Labels: map[string]string{sandbox.LabelRun: "run"}, Boot: boot, Dir: p.dir})
	p.must(err)
	t.Cleanup(func() { p.must(box.Destroy(context.Background())) })
	conn, err := box.Link(t.Context())
	p.must(err)
	p.client, err = agent.Connect(t.Context(), conn, key, nil)
	p.must(err)
	t.Cleanup(func() { _ = p.client.Close() })
	return p
}

// replayPlace is one whose program replays.
func replayPlace(t *testing.T, fixtures ...string) *place {
	t.Helper()
	bin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(bin, filepath.Join(dir, Name)); err != nil {
		t.Fatal(err)
	}
	for i, f := range fixtures {
		if strings.HasPrefix(f, "#") {
			continue
		}
		if fixtures[i], err = filepath.Abs(filepath.Join("testdata", f)); err != nil {
			t.Fatal(err)
		}
	}
	p := newPlace(t, dir, map[string]string{
		"FIXTURES": strings.Join(fixtures, string(os.PathListSeparator)), "LOG": filepath.Join(dir, "log"), "VERSION": "2.1.332",
	})
	p.dir = dir
	return p
}

// log is what the replaying program was told.
func (p *place) log() string {
	b, err := os.ReadFile(filepath.Join(p.dir, "log"))
	p.must(err)
	return string(b)
}

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// begin starts the session and follows it.
func (p *place) begin(start wire.Start) {
	p.t.Helper()
	start.Agent = Name
	p.must(p.client.Start(p.t.Context(), start))
	go func() {
		_ = p.client.Follow(p.t.Context(), 0, func(f wire.Frame) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			f.Data = slices.Clone(f.Data)
			p.frames = append(p.frames, f)
			close(p.changed)
			p.changed = make(chan struct{})
			p.client.Ack(f.Seq)
			return nil
		})
	}()
}

// await returns the nth frame, from 1, for which is holds.
func (p *place) await(n int, is func(wire.Frame) bool) wire.Frame {
	p.t.Helper()
	late := time.After(hangs)
	for {
		p.mu.Lock()
		seen := 0
		for _, f := range p.frames {
			if is(f) {
				if seen++; seen == n {
					p.mu.Unlock()
					return f
				}
			}
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-late:
			p.t.Fatalf("it never came; there are:\n%s", p.story())
		}
	}
}

// turn returns how the nth turn ended, from 1.
func (p *place) turn(n int) wire.TurnComplete {
	p.t.Helper()
	f := p.await(n, func(f wire.Frame) bool { return f.Method == wire.EventTurnComplete })
	var c wire.TurnComplete
	p.must(json.Unmarshal(f.Data, &c))
	return c
}

// say gives a message.
func (p *place) say(text, schema string) {
	p.t.Helper()
	in := task.Input{Kind: task.InputMessage, Text: text}
	if schema != "" {
		in.Schema = json.RawMessage(schema)
	}
	p.must(p.client.Send(p.t.Context(), in))
}

// update is a session update of any kind, and of the other events what tests look at.
type update struct {
	Kind    string          `json:"sessionUpdate"`
	Content json.RawMessage `json:"content"`
	ID      string          `json:"toolCallId"`
	Title   string          `json:"title"`
	Tool    string          `json:"kind"`
	Status  string          `json:"status"`
}

// story is the events in words, one a line.
func (p *place) story() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.storyLocked()
}

func (p *place) storyLocked() string {
	var b strings.Builder
	for _, f := range p.frames {
		var e struct {
			Update         update
			Level, Message string
		}
		if f.Type == wire.FrameHeartbeat || json.Unmarshal(f.Data, &e) != nil {
			continue
		}
		u := e.Update
		switch {
		case f.Type == wire.FrameDone:
			fmt.Fprintf(&b, "done\n")
		case f.Method == "_insights/console":
			fmt.Fprintf(&b, "%s: %s\n", e.Level, e.Message)
		case f.Method != wire.EventUpdate:
			fmt.Fprintf(&b, "%s\n", f.Method)
		case u.Kind == "tool_call":
			fmt.Fprintf(&b, "call %s [%s] %s\n", u.Title, u.Tool, u.Status)
		case u.Kind == "tool_call_update":
			fmt.Fprintf(&b, "returned %s %s\n", u.Status, strings.TrimSpace(textOf(unwrap(u.Content))))
		default:
			fmt.Fprintf(&b, "%s %s\n", u.Kind, strings.TrimSpace(textOf(json.RawMessage("["+string(u.Content)+"]"))))
		}
	}
	return b.String()
}

// unwrap takes the blocks out of ACP's content of a tool call.
func unwrap(content json.RawMessage) json.RawMessage {
	var pieces []struct {
		Content json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(content, &pieces)
	blocks := []json.RawMessage{}
	for _, p := range pieces {
		blocks = append(blocks, p.Content)
	}
	b, _ := json.Marshal(blocks)
	return b
}
