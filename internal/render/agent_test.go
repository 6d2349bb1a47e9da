package render_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

// With a schema the output is the reply alone, also where a terminal shows it: cleaned, as
// everything that an agent says.
func TestTheReplyAloneIsTheOutput(t *testing.T) {
	s := &story{}
	s.add(task.KindAgent, `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"let me see"}}}`)
	s.add(task.KindTurn, task.Turn{OK: true, Value: json.RawMessage(`{"a":"\u009b2J"}`)})
	s.events[1].Params = json.RawMessage("{\"ok\":true,\"value\":{\"a\":\"\u009b2J\"}}")
	stdout, stderr, _ := emit(render.Options{ValueOnly: true}, s.events)
	if stdout != "{\"a\":\"\u009b2J\"}\n" || !strings.Contains(stderr, "let me see\n") {
		t.Errorf("stdout %q, stderr %q", stdout, stderr)
	}
	if stdout, _, _ = emit(render.Options{ValueOnly: true, OutTTY: true, ErrTTY: true}, s.events); strings.Contains(stdout, "\u009b") {
		t.Errorf("a terminal gets %q", stdout)
	}
}

// Whoever reads the log knows how to answer.
func TestAQuestionIsShownWithItsAnswers(t *testing.T) {
	s := &story{}
	s.add(task.KindPermission, task.Permission{
		RequestID: "r1", ToolCall: task.PermissionTool{Title: "rm -rf build"}, Options: []task.PermissionOption{{ID: "yes"}, {ID: "no"}},
	})
	if _, stderr, _ := emit(render.Options{}, s.events); stderr != "permission: rm -rf build (request r1: yes, no)\n" {
		t.Errorf("shown as %q", stderr)
	}
}

// Replies of one prompt, and what comes after the agent's words where no turn is shown,
// begin a line.
func TestWordsEndWithTheirLine(t *testing.T) {
	s := &story{}
	chunk := `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"so it"}}}`
	s.add(task.KindAgent, chunk)
	s.add(task.KindNotice, task.Notice{Level: "warn", Message: "retry 1 of 5"})
	s.add(task.KindAgent, chunk)
	s.add("turn_complete", `{}`)
	s.add(task.KindAgent, chunk)
	var out strings.Builder
	text := render.NewText(&out, io.Discard, render.Options{})
	for _, ev := range s.events {
		text.Emit(ev)
	}
	text.End()
	text.End()
	if out.String() != "so itso it\nso it\n" {
		t.Errorf("said %q", out.String())
	}
}

// A quiet run tells why its agent failed; a command has said it itself.
func TestAQuietFailureHasAReason(t *testing.T) {
	one := 1
	for want, r := range map[string]task.Result{
		"error: no answer\n": {Kind: string(errs.TaskFailed), Error: "no answer"},
		"":                   {Kind: string(errs.TaskFailed), Error: "exit status 1", ExitCode: &one},
	} {
		s := &story{}
		s.add(task.KindFinished, r)
		if _, stderr, _ := emit(render.Options{Quiet: true, ReasonFollows: true}, s.events); stderr != want {
			t.Errorf("told %q, want %q", stderr, want)
		}
	}
}
