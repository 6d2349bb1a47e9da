//go:build unix

package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	hostside "github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/memory"
	"github.com/Insights/insightscli/internal/task"
)

// hangs is long enough to tell an answer from a hang.
const hangs = 60 * time.Second

// place is a whole agent server with this driver and the fake agent.
type place struct {
	t      *testing.T
	client *hostside.Client
	driver *driver
	times  times  // of the driver, if not zero
	name   string // of the agent
	dir    string
	frames chan wire.Frame // in order, to FrameDone
}

func newPlace(t *testing.T, agentWords ...string) *place {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return placeOf(t, fmt.Sprintf("%s'%s' fake-agent %s", Prefix, program, strings.Join(agentWords, " ")), nil)
}

// placeOf is a place with any agent.
func placeOf(t *testing.T, name string, env map[string]string) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), name: name, frames: make(chan wire.Frame, 16)}
	provider := memory.New(map[string]agentserver.NewDriver{name: func(h *agentserver.Host) agentserver.Driver {
		p.driver = New(h).(*driver)
		if p.times != (times{}) {
			p.driver.times = p.times
		}
		return p.driver
	}})
	key, err := link.NewKeys("run")
	p.must(err)
	all := map[string]string{"PATH": os.Getenv("PATH"), "FAKE_LOG": p.log(), "INSIGHTS_PERSONAL_API_KEY": "run-token"}
	for k, v := range env {
		all[k] = v
	}
	boot, err := json.Marshal(wire.Boot{
		V: wire.Version, Run: "run", HostKey: key.Public(), Secret: key.Secret, Home: p.dir, Dir: p.dir, Env: all,
	})
	p.must(err)
	box, err := provider.Create(t.Context(), sandbox.Spec{Labels: map[string]string{sandbox.LabelRun: "run"}, Boot: boot, Dir: t.TempDir()})
	p.must(err)
	t.Cleanup(func() { p.must(box.Destroy(context.Background())) })
	conn, err := box.Link(t.Context())
	p.must(err)
	p.client, err = hostside.Connect(t.Context(), conn, key, nil)
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

func (p *place) log() string { return filepath.Join(p.dir, "log") }

// asked is what the agent was asked with a method, all of it, or "".
func (p *place) asked(method string) string {
	p.t.Helper()
	b, err := os.ReadFile(p.log())
	p.must(err)
	var all strings.Builder
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, `"method":"`+method+`"`) {
			all.WriteString(line)
		}
	}
	return all.String()
}

// begin starts the session and returns why there is none, or "".
func (p *place) begin(start wire.Start) string {
	p.t.Helper()
	start.Agent, start.Dir = p.name, p.dir
	ctx, cancel := context.WithTimeout(p.t.Context(), hangs)
	p.t.Cleanup(cancel)
	p.must(p.client.Start(ctx, start))
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		defer close(p.frames)
		_ = p.client.Follow(ctx, 0, func(f wire.Frame) error {
			f.Data = append([]byte(nil), f.Data...)
			select {
			case p.frames <- f:
			case <-ctx.Done():
			}
			p.client.Ack(f.Seq)
			return nil
		})
	}()
	p.t.Cleanup(func() { <-followed })
	p.t.Cleanup(cancel)
	_ = p.client.Ready(ctx)
	health, err := p.client.Health(ctx)
	p.must(err)
	return health.Error
}

// did is what a turn left in the journal.
type did struct {
	updates []json.RawMessage
	text    string
	notices []string
	end     wire.TurnComplete
}

// turn follows one turn to its end. on is called with the text so far and with requests
// for leave.
func (p *place) turn(on func(text string, ask *task.Permission)) did {
	p.t.Helper()
	var d did
	for f := range p.frames {
		var body struct {
			Update  json.RawMessage
			Message string
		}
		_ = json.Unmarshal(f.Data, &body)
		switch f.Method {
		case wire.EventUpdate:
			d.updates = append(d.updates, body.Update)
			var u struct {
				Kind    string `json:"sessionUpdate"`
				Content struct{ Text string }
			}
			if _ = json.Unmarshal(body.Update, &u); u.Kind == "agent_message_chunk" {
				d.text += u.Content.Text
			}
			if on != nil {
				on(d.text, nil)
			}
		case "_insights/console":
			d.notices = append(d.notices, body.Message)
		case wire.EventPermission:
			var ask task.Permission
			p.must(json.Unmarshal(f.Data, &ask))
			if on != nil {
				on(d.text, &ask)
			}
		case wire.EventTurnComplete:
			p.must(json.Unmarshal(f.Data, &d.end))
			return d
		}
		if f.Type == wire.FrameDone {
			p.t.Fatalf("the session ended before the turn: %s", f.Data)
		}
	}
	p.t.Fatalf("no end of the turn; so far %+v", d)
	return d
}

// prompt does one more turn.
func (p *place) prompt(text string) did {
	p.t.Helper()
	p.send(text)
	return p.turn(nil)
}

func (p *place) send(text string) {
	p.t.Helper()
	p.must(p.client.Send(p.t.Context(), task.Input{Kind: task.InputMessage, Text: text}))
}

func (p *place) started(start wire.Start) {
	p.t.Helper()
	if failure := p.begin(start); failure != "" {
		p.t.Fatal(failure)
	}
}
