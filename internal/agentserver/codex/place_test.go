//go:build unix

package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
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

// place is a whole agent server with this driver, and what it has written.
type place struct {
	t      *testing.T
	client *agent.Client
	driver *driver // once the session has begun
	dir    string  // where commands run
	sent   int
	busy   sync.WaitGroup
	life   context.Context // until the end of the test

	patience time.Duration // of the driver, if not 0

	mu      sync.Mutex // guards the rest
	events  []event
	changed chan struct{}
	outcome *wire.Outcome // of the session
}

// event is one entry of the journal.
type event struct {
	method string
	data   map[string]any
}

// update is the session update in an event of that kind, or nil.
func (e event) update(kind string) map[string]any {
	u, _ := e.data["update"].(map[string]any)
	if u["sessionUpdate"] != kind {
		return nil
	}
	return u
}

// newPlace makes a sandbox whose agent has env beside what every agent has.
func newPlace(t *testing.T, env map[string]string) *place {
	t.Helper()
	p := &place{t: t, changed: make(chan struct{})}
	provider := memory.New(map[string]agentserver.NewDriver{Name: func(h *agentserver.Host) agentserver.Driver {
		p.driver = New(h).(*driver)
		p.driver.grace = time.Second
		if p.patience > 0 {
			p.driver.patience = p.patience
		}
		return p.driver
	}})
	key, err := link.NewKeys("run")
	p.must(err)
	all := map[string]string{
		"PATH": os.Getenv("PATH"), "OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "insx_run",
		"INSIGHTS_PERSONAL_API_KEY": "insx_run", "INSIGHTS_API_URL": "http://127.0.0.1:1",
	}
	maps.Copy(all, env)
	boot, err := json.Marshal(wire.Boot{
		V: wire.Version, Run: "run", HostKey: key.Public(), Secret: key.Secret, Home: "/home/agent", Dir: "/tmp/workspace",
		Env: all,
	})
	p.must(err)
	dir := t.TempDir()
	p.dir = dir + "/root/tmp/workspace"
	box, err := provider.Create(t.Context(), sandbox.Spec{Labels: map[string]string{sandbox.LabelRun: "run"}, Boot: boot, Dir: dir})
	p.must(err)
	t.Cleanup(func() { p.must(box.Destroy(context.Background())) })
	conn, err := box.Link(t.Context())
	p.must(err)
	p.client, err = agent.Connect(t.Context(), conn, key, nil)
	p.must(err)
	t.Cleanup(func() { _ = p.client.Close() })
	return p
}

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// start begins the session and follows it.
func (p *place) start(start wire.Start) error {
	p.t.Helper()
	start.Agent = Name
	p.must(p.client.Start(p.t.Context(), start))
	life, cancel := context.WithCancel(context.Background())
	p.life = life
	p.t.Cleanup(func() { cancel(); p.busy.Wait() })
	p.busy.Go(func() {
		err := p.client.Follow(life, 0, p.record)
		if err != nil && life.Err() == nil {
			p.t.Errorf("follow: %v", err)
		}
	})
	ctx, done := context.WithTimeout(life, hangs)
	defer done()
	return p.client.Ready(ctx)
}

func (p *place) record(f wire.Frame) error {
	defer p.client.Ack(f.Seq)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch f.Type {
	case wire.FrameEvent:
		e := event{method: f.Method}
		if err := json.Unmarshal(f.Data, &e.data); err != nil {
			return err
		}
		p.events = append(p.events, e)
	case wire.FrameDone:
		p.outcome = &wire.Outcome{}
		if err := json.Unmarshal(f.Data, p.outcome); err != nil {
			return err
		}
	}
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

// await waits for an event from number from on, and returns it with its number.
func (p *place) await(from int, what string, ok func(event) bool) (event, int) {
	p.t.Helper()
	timer := time.NewTimer(hangs)
	defer timer.Stop()
	for {
		p.mu.Lock()
		events, changed := p.events, p.changed
		p.mu.Unlock()
		for ; from < len(events); from++ {
			if ok(events[from]) {
				return events[from], from
			}
		}
		select {
		case <-changed:
		case <-timer.C:
			p.t.Fatalf("no %s; %s", what, p.dump())
		}
	}
}

func (p *place) dump() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, e := range p.events {
		raw, _ := json.Marshal(e.data)
		fmt.Fprintf(&b, "%s %.300s\n", e.method, raw)
	}
	return b.String()
}

// input sends something to the session.
func (p *place) input(in task.Input) {
	p.t.Helper()
	p.must(p.client.Send(p.t.Context(), in))
}

// say sends a message and returns its id.
func (p *place) say(text string, schema string) string {
	p.t.Helper()
	p.sent++
	id := fmt.Sprintf("m%d", p.sent)
	in := task.Input{ID: id, Kind: task.InputMessage, Text: text}
	if schema != "" {
		in.Schema = json.RawMessage(schema)
	}
	p.busy.Go(func() { _ = p.client.Send(p.life, in) }) // the turn tells how it ended
	return id
}

// result is what came of one turn.
type result struct {
	stop, err  string
	structured string
	events     []event
}

// end waits for the end of the turn of that message.
func (p *place) end(id string) result {
	p.t.Helper()
	_, from := p.await(0, "beginning of turn "+id, func(e event) bool {
		return e.method == wire.EventUserMessage && e.data["messageId"] == id
	})
	last, to := p.await(from, "end of turn "+id, func(e event) bool {
		return e.method == wire.EventTurnComplete && e.data["messageId"] == id
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	r := result{events: p.events[from:to]}
	r.stop, _ = last.data["stopReason"].(string)
	r.err, _ = last.data["error"].(string)
	if s := last.data["structured"]; s != nil {
		b, err := json.Marshal(s)
		p.must(err)
		r.structured = string(b)
	}
	return r
}

// turn does a whole turn.
func (p *place) turn(text, schema string) result {
	p.t.Helper()
	return p.end(p.say(text, schema))
}

// text is what the agent said.
func (r result) text() string { return r.chunks("agent_message_chunk") }

func (r result) chunks(kind string) string {
	var b strings.Builder
	for _, e := range r.events {
		if u := e.update(kind); u != nil {
			b.WriteString(u["content"].(map[string]any)["text"].(string))
		}
	}
	return b.String()
}

// notices are the lines for people.
func (r result) notices() string {
	var b strings.Builder
	for _, e := range r.events {
		if e.method == "_insights/console" {
			fmt.Fprintf(&b, "%s: %s\n", e.data["level"], e.data["message"])
		}
	}
	return b.String()
}

// tools are the tool calls as a line each: kind, title, last status, text.
func (r result) tools() []string {
	var order []string
	calls := map[string]map[string]any{}
	for _, e := range r.events {
		for _, kind := range []string{"tool_call", "tool_call_update"} {
			u := e.update(kind)
			if u == nil {
				continue
			}
			id := u["toolCallId"].(string)
			if calls[id] == nil {
				order, calls[id] = append(order, id), map[string]any{}
			}
			maps.Copy(calls[id], u)
		}
	}
	lines := make([]string, 0, len(order))
	for _, id := range order {
		c := calls[id]
		line := fmt.Sprintf("%v %v %v", c["kind"], c["title"], c["status"])
		if list, _ := c["content"].([]any); len(list) > 0 {
			line += fmt.Sprintf(" %q", list[0].(map[string]any)["content"].(map[string]any)["text"])
		}
		lines = append(lines, line)
	}
	return lines
}

// answer answers the next request for leave after event number from.
func (p *place) answer(from int, option string) (map[string]any, int) {
	p.t.Helper()
	e, at := p.await(from, "request for leave", func(e event) bool { return e.method == wire.EventPermission })
	p.input(task.Input{Kind: task.InputPermission, Name: e.data["requestId"].(string), Value: option})
	return e.data["toolCall"].(map[string]any), at + 1
}

// running waits until a tool call is in progress, from event number from on.
func (p *place) running(from int) int {
	p.t.Helper()
	_, at := p.await(from, "tool call", func(e event) bool {
		u := e.update("tool_call")
		return u != nil && u["status"] == "in_progress"
	})
	return at + 1
}

// count is how many events there are.
func (p *place) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.events)
}
