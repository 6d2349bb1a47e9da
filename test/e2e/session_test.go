//go:build linux

package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/task"
)

// reply is what session start and send print.
type reply struct {
	Run  string `json:"session"`
	Turn task.Turn
}

func (w *world) reply(out string) reply {
	w.t.Helper()
	var r reply
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	return r
}

// A session of three turns, each with a schema of its own, in one conversation and one
// sandbox; in between its process is killed.
func TestSession(t *testing.T) {
	each(t, []agent{claude, codex}, func(w *world) {
		start := append([]string{"session", "start", "--json", "--schema", w.schema()}, w.flags...)
		first := w.reply(w.must(append(start, w.script(bash("echo kept > /tmp/kept"), answer(`{"items":["a"]}`)))...))
		if compact(string(first.Turn.Value)) != `{"items":["a"]}` || first.Run == "" {
			w.t.Fatalf("first %+v", first)
		}
		w.killRunner()
		other := filepath.Join(w.home, "other.json")
		w.write(other, `{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"],"additionalProperties":false}`)
		second := w.reply(w.must("session", "send", first.Run, "--json", "--schema", other,
			w.script(answer(`{"n":0}`), answer(`{"n":12345678901234567890}`), say("and that is all"))))
		if compact(string(second.Turn.Value)) != `{"n":12345678901234567890}` || second.Turn.Attempts != 2 {
			w.t.Errorf("second %+v", second.Turn)
		}
		third := w.must("session", "send", first.Run, w.script(bash("cat /tmp/kept"), say("free words")))
		if strings.TrimSpace(third) != "free words" {
			w.t.Errorf("third %q", third)
		}
		if list := w.must("session", "list", "--json"); !strings.Contains(list, first.Run) {
			w.t.Errorf("list %s", list)
		}
		w.must("session", "end", first.Run)
		r := w.latest(first.Run)
		if r.result.State != task.StateCompleted || len(w.turns(r)) != 3 || !strings.Contains(r.updates(), "kept") {
			w.t.Errorf("result %+v\n%s", r.result, w.story(r.events))
		}
	})
}

// Any failure ends the session as failed: it is never left at work.
func TestASessionThatFails(t *testing.T) {
	for _, a := range []agent{claude, codex} {
		one(t, a, func(w *world) {
			first := w.reply(w.must(append(append([]string{"session", "start", "--json"}, w.flags...), w.script(say("hello")))...))
			no := answer(`{"items":1}`)
			out := w.try("session", "send", first.Run, "--schema", w.schema(), w.script(no, no, no, no, no, no, no, no, no, no, no, no))
			if out.code != 7 {
				w.t.Errorf("exit code %d: %s", out.code, out.stderr)
			}
			r := w.ended(first.Run)
			if r.result.State != task.StateFailed {
				w.t.Errorf("result %+v\n%s", r.result, w.story(r.events))
			}
			if out := w.try("session", "send", first.Run, "more"); out.code == 0 {
				w.t.Errorf("a session that is over takes messages: %s", out.stdout)
			}
		})
	}
}

// A conversation from a file: what the first turn finds is researched one by one.
func TestSessionRun(t *testing.T) {
	for _, a := range []agent{claude, codex} {
		one(t, a, func(w *world) {
			script := filepath.Join(w.home, "research.yaml")
			w.write(script, `title: Research
turns:
  - label: discovery
    prompt: '`+w.script(answer(`{"items":["tide","moon"]}`))+`'
    schema: schema.json
  - label: research
    each: discovery.items
    prompt: '`+w.script(say("the ${item} is high"))+`'
  - label: summary
    when: research
    prompt: '`+w.script(say("both are"))+`'
`)
			w.schema()
			out := w.must(append([]string{"session", "run", script}, w.flags...)...)
			for _, want := range []string{"the tide is high", "the moon is high", "both are"} {
				if !strings.Contains(out, want) {
					w.t.Errorf("no %q in %s", want, out)
				}
			}
			r := w.latest("latest")
			if r.result.State != task.StateCompleted || len(w.turns(r)) != 4 {
				w.t.Errorf("result %+v\n%s", r.result, w.story(r.events))
			}
		})
	}
}
