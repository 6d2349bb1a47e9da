package render_test

import (
	"encoding/json"
	"strings"
	"testing"

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
