package tui

import (
	"bytes"
)

// kind is what an event is on the screen.
type kind uint8

// The kinds, in the order in which the filter lists them. Those from quiet on are not
// in the conversation.
const (
	missing kind = iota // of a line that cannot be read
	step
	message
	thought
	tool
	plan
	user
	output
	permission
	denied
	published
	turn
	notice
	finished
	other // of a method that this version does not know
	quiet // for programs
	usage
	toolUpdate // belongs to a tool
	answered   // belongs to a permission
	kinds
)

// The kinds by name, for the filter.
func (k kind) String() string {
	return [kinds]string{
		"damaged", "steps", "messages", "thoughts", "tools", "plans", "yours", "output", "permissions",
		"denied", "published", "turns", "notices", "result", "others", "session", "usage", "tool updates", "answers",
	}[k]
}

// class is what is seen of an event without decoding it.
type class struct {
	kind   kind
	bad    bool   // something went wrong
	hidden bool   // no news
	chunk  bool   // goes on in the next event of its kind
	told   bool   // the summary wants it
	id     []byte // of the tool, or of the request
}

// classify looks at an event of that method. params may be cut.
func classify(method string, params []byte) class {
	if rest, ok := bytes.CutPrefix([]byte(method), []byte("__insights/")); ok {
		method = "_insights/" + string(rest)
	}
	switch method {
	case "session/update":
		return classifyUpdate(field(params, "update"))
	case "_insights/sandbox_output":
		code, isCode := bytes.CutPrefix(params, []byte(`{"exitCode":`))
		return class{kind: output, chunk: !isCode, bad: isCode && !bytes.HasPrefix(code, []byte("0}"))}
	case "_insights/progress":
		status := unquoted(field(params, "status"))
		return class{kind: step, told: true, bad: string(status) == "failed", hidden: string(status) == "completed" && field(params, "detail") == nil}
	case "_insights/permission_request":
		return class{kind: permission, told: true, id: unquoted(field(params, "requestId"))}
	case "_insights/permission_resolved":
		return class{kind: answered, told: true, hidden: true, id: unquoted(field(params, "requestId"))}
	case "_insights/console":
		return class{kind: notice, bad: string(unquoted(field(params, "level"))) == "error"}
	case "_insights/turn_result":
		return class{kind: turn, told: true, bad: string(field(params, "ok")) == "false"}
	case "_insights/run_finished":
		return class{kind: finished, told: true, bad: string(unquoted(field(params, "state"))) == "failed"}
	case "_insights/network_denied":
		return class{kind: denied, told: true, bad: true}
	case "_insights/published":
		return class{kind: published, told: true}
	case "_insights/usage_update":
		return class{kind: usage, told: true}
	case "_insights/user_message":
		return class{kind: user}
	case "_insights/turn_complete", "_insights/sdk_session":
		return class{kind: quiet}
	}
	return class{kind: other}
}

// classifyUpdate looks at an update of the Agent Client Protocol.
func classifyUpdate(update []byte) class {
	var c class
	var name, status, id []byte
	fields(update, func(k, v []byte) bool {
		switch string(k) {
		case "sessionUpdate":
			name = unquoted(v)
		case "status":
			status = unquoted(v)
		case "toolCallId":
			id = unquoted(v)
		}
		return true
	})
	name, c.chunk = bytes.CutSuffix(name, []byte("_chunk"))
	switch string(name) {
	case "agent_message":
		c.kind = message
	case "agent_thought":
		c.kind = thought
	case "user_message":
		c.kind = user
	case "tool_call":
		c.kind, c.id, c.bad = tool, id, string(status) == "failed"
	case "tool_call_update":
		c.kind, c.id, c.bad = toolUpdate, id, string(status) == "failed"
	case "plan":
		c.kind, c.told = plan, true
	case "usage_update":
		c.kind, c.told = usage, true
	default:
		c.kind = quiet
	}
	return c
}
