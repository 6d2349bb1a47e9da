package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// agent answers by label; without an answer its turn fails.
type agent struct {
	answers map[string]string
	prompts []string // "label: prompt"
	cancel  context.CancelCauseFunc
	sendErr error
	endErr  error

	state  task.State
	reason error
	ends   int
	endCtx error
}

var _ Conversation = (*agent)(nil)

func (a *agent) Send(_ context.Context, prompt string, schema json.RawMessage, label string) (task.Turn, error) {
	a.prompts = append(a.prompts, label+": "+prompt)
	answer, ok := a.answers[label]
	switch {
	case a.sendErr != nil:
		return task.Turn{}, a.sendErr
	case answer == "cancel":
		a.cancel(errors.New("interrupted"))
		return task.Turn{OK: true, Text: "x", Attempts: 1}, nil
	case !ok:
		return task.Turn{Category: task.TurnEmpty, Error: "empty end_turn twice", Attempts: 2}, nil
	case schema == nil:
		return task.Turn{OK: true, Text: answer, Attempts: 1}, nil
	}
	return task.Turn{OK: true, Text: answer, Value: json.RawMessage(answer), Attempts: 1}, nil
}

func (a *agent) End(ctx context.Context, state task.State, reason error) error {
	a.ends, a.state, a.reason, a.endCtx = a.ends+1, state, reason, ctx.Err()
	return a.endErr
}

func noFiles(name string) ([]byte, error) { return nil, fmt.Errorf("open %s: no such file", name) }

func mustLoad(t *testing.T, script string) *Script {
	t.Helper()
	s, err := Load([]byte(script), noFiles)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const threeTurns = `
title: Research
turns:
  - label: discovery
    prompt: Find items.
    schema: {type: object, required: [items]}
  - label: research
    each: discovery.items
    max: 2
    as: research_${item.name}
    prompt: "${index}: research ${item.name} of ${item}, not $${this}"
    schema: true
  - label: extra
    when: research.0.score == 9007199254740993
    prompt: why ${research.0.score}?
  - label: skipped
    when: "!research"
    prompt: nothing there
  - label: summary
    prompt: "sum up ${research} and ${extra}"
`

func TestRunOfAScript(t *testing.T) {
	a := &agent{answers: map[string]string{
		"discovery":  `{"items":[{"name":"a"},{"name":"${discovery}"},{"name":"c"}]}`,
		"research_a": `{"score":9007199254740993,"b":"<&>"}`, "research_${discovery}": `2.50`,
		"extra": "because", "summary": "all",
	}}
	var told []string
	doc, err := Run(t.Context(), mustLoad(t, threeTurns), a, func(turn Turn) { told = append(told, turn.Label) })
	if err != nil || doc.State != task.StateCompleted || a.state != task.StateCompleted || a.ends != 1 {
		t.Fatalf("%+v, %v; ended %d times", doc, err, a.ends)
	}
	want := `discovery: Find items.
research_a: 0: research a of {"name":"a"}, not ${this}
research_${discovery}: 1: research ${discovery} of {"name":"${discovery}"}, not ${this}
extra: why 9007199254740993?
summary: sum up [{"b":"<&>","score":9007199254740993},2.50] and because`
	if got := strings.Join(a.prompts, "\n"); got != want {
		t.Errorf("got:\n%s", got)
	}
	if len(told) != 5 || len(doc.Turns) != 5 || doc.Turns[1].Label != "research_a" {
		t.Errorf("%v, %+v", told, doc.Turns)
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc.Replies); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != `{"discovery":{"items":[{"name":"a"},{"name":"${discovery}"},{"name":"c"}]},"extra":"because",`+
		`"research":[{"score":9007199254740993,"b":"<&>"},2.50],"summary":"all"}`+"\n" {
		t.Error(got)
	}
}

// TestEveryFailureEndsTheSession: none may stay in progress.
func TestEveryFailureEndsTheSession(t *testing.T) {
	for name, tt := range map[string]struct {
		script  string
		answers map[string]string
		sendErr error
		want    string
		kind    errs.Kind
	}{
		"a failed turn":   {threeTurns, nil, nil, "discovery: empty end_turn twice", errs.TaskFailed},
		"a failed item":   {threeTurns, map[string]string{"discovery": `{"items":[{"name":"a"}]}`}, nil, "research_a: empty", errs.TaskFailed},
		"no list":         {threeTurns, map[string]string{"discovery": `{"items":7}`}, nil, "discovery.items is not a list", errs.TaskFailed},
		"a missing name":  {threeTurns, map[string]string{"discovery": `{"items":[{}]}`}, nil, "there is no item.name", errs.TaskFailed},
		"no conversation": {threeTurns, nil, errs.New("x", errs.Unavailable, "", "no engine"), "discovery: no engine", errs.Unavailable},
		"cancelled":       {"turns: [{label: a, prompt: x}, {label: b, prompt: y}]", map[string]string{"a": "cancel"}, nil, "interrupted", errs.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			a := &agent{answers: tt.answers, sendErr: tt.sendErr, cancel: cancel}
			doc, err := Run(ctx, mustLoad(t, tt.script), a, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || errs.KindOf(err) != tt.kind {
				t.Errorf("%v (%s); want %q", err, errs.KindOf(err), tt.want)
			}
			if doc.State != task.StateFailed || doc.Error == "" || a.ends != 1 || a.state != task.StateFailed || !errors.Is(a.reason, err) {
				t.Errorf("%+v; ended %d times as %s: %v", doc, a.ends, a.state, a.reason)
			}
			if a.endCtx != nil {
				t.Error("the end was told on a context that is over")
			}
		})
	}
}

func TestAnEndThatCannotBeToldIsAWarning(t *testing.T) {
	a := &agent{answers: map[string]string{"a": "x"}, endErr: errors.New("gone")}
	doc, err := Run(t.Context(), mustLoad(t, "turns: [{label: a, prompt: x}]"), a, nil)
	if err != nil || doc.State != task.StateCompleted || !strings.Contains(doc.Warning, "gone") {
		t.Errorf("%+v, %v", doc, err)
	}
}

func TestScriptsThatCannotBeUsed(t *testing.T) {
	for name, tt := range map[string]struct{ script, want string }{
		"empty":             {"", "empty"},
		"no YAML":           {"turns: [", "yaml"},
		"no turns":          {"title: x", "no turns"},
		"unknown field":     {"turns: [{label: a, promt: x}]", "promt"},
		"not in our types":  {"turns: [{label: a, promt: x}]", "line 1: field promt not found"},
		"a word as turns":   {"turns: x", "line 1: cannot unmarshal !!str `x`"},
		"no prompt":         {"turns: [{label: a}]", "turn 1: a has no prompt"},
		"no label":          {"turns: [{prompt: x}]", `label ""`},
		"bad label":         {"turns: [{label: a.b, prompt: x}]", `label "a.b"`},
		"reserved label":    {"turns: [{label: item, prompt: x}]", `label "item"`},
		"label twice":       {"turns: [{label: a, prompt: x}, {label: a, prompt: y}]", "twice"},
		"not closed":        {"turns: [{label: a, prompt: \"x ${b\"}]", "not closed"},
		"itself":            {"turns: [{label: a, prompt: \"${a}\"}]", "not the label of an earlier turn"},
		"a later one":       {"turns: [{label: a, prompt: \"${b}\"}, {label: b, prompt: x}]", "turn 1: a: prompt"},
		"no path":           {"turns: [{label: a, prompt: x}, {label: b, prompt: \"${a..b}\"}]", "not a path"},
		"item without each": {"turns: [{label: a, prompt: \"${item}\"}]", "within each only"},
		"item in when":      {"turns: [{label: a, prompt: x}, {label: b, prompt: y, each: a.b, when: item.c}]", "when: item"},
		"each of nothing":   {"turns: [{label: a, prompt: x, each: b.c}]", "each"},
		"max without each":  {"turns: [{label: a, prompt: x, max: 3}]", "go with each"},
		"max":               {"turns: [{label: a, prompt: x}, {label: b, prompt: y, each: a, max: 1000}]", "max"},
		"schema":            {"turns: [{label: a, prompt: x, schema: {type: thing}}]", "at /type"},
		"schema's file":     {"turns: [{label: a, prompt: x, schema: none.json}]", "open none.json"},
		"schema's key":      {"turns: [{label: a, prompt: x, schema: {1: x}}]", "schema"},
		"many turns":        {"turns:\n" + strings.Repeat("- {label: a, prompt: x}\n", maxTurns+1), "more than"},
	} {
		_, err := Load([]byte(tt.script), noFiles)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errs.KindOf(err) != errs.Usage || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "struct") {
			t.Errorf("%s: %v; want %q", name, err, tt.want)
		}
	}
}

func TestFlags(t *testing.T) {
	s := mustLoad(t, "title: T\nagent: codex\nrepo: [., org/x]\noptions: {network: link, env-var: [A=1, B=2]}\nturns: [{label: a, prompt: x}]")
	want := "[{title T} {agent codex} {repo .} {repo org/x} {env-var A=1} {env-var B=2} {network link}]"
	if got := fmt.Sprint(s.Flags()); got != want || s.First() != "a" {
		t.Error(got)
	}
}

func TestSchemaOfAFile(t *testing.T) {
	s, err := Load([]byte("turns: [{label: a, prompt: x, schema: s.json}]"), func(name string) ([]byte, error) {
		return []byte("\ufeff" + `{"maximum":9007199254740993}`), nil
	})
	if err != nil || string(s.turns[0].schema) != `{"maximum":9007199254740993}` {
		t.Error(err)
	}
}

func TestDemo(t *testing.T) {
	s, err := Demo()
	if err != nil {
		t.Fatal(err)
	}
	for choice, want := range map[string]string{
		"immediately_actionable": "discovery research_get research_get2 actionability priority presentation",
		"not_actionable":         "discovery research_get research_get2 actionability presentation",
	} {
		a := &agent{answers: map[string]string{
			"discovery":    `{"items":[{"name":"get","file":"a.go","why":"it sets"},{"name":"get2","file":"a.go","why":"it gets once"}]}`,
			"research_get": `{"name":"get"}`, "research_get2": `{"name":"get2"}`,
			"actionability": `{"choice":"` + choice + `"}`, "priority": `{"priority":"P2"}`, "presentation": `{"title":"t"}`,
		}}
		doc, err := Run(t.Context(), s, a, nil)
		if err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, turn := range doc.Turns {
			labels = append(labels, turn.Label)
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("%s: %s", choice, got)
		}
	}
	none := &agent{answers: map[string]string{"discovery": `{"items":[]}`, "presentation": `{"title":"t"}`}}
	if doc, err := Run(t.Context(), s, none, nil); err != nil || len(doc.Turns) != 2 {
		t.Errorf("%+v, %v", doc, err)
	}
}
