package claude

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/Insights/insightscli/internal/task"
)

// permission is a request of the program: for leave to use a tool, if it is one that we
// know.
type permission struct {
	Subtype     string          `json:"subtype"`
	Tool        string          `json:"tool_name"`
	Input       json.RawMessage `json:"input"`
	ToolUse     string          `json:"tool_use_id"`
	Suggestions []suggestion    `json:"permission_suggestions"`
}

// suggestion is a change of the program's rules by which it would not ask again.
type suggestion map[string]json.RawMessage

// request takes a request of the program. Its answer may take a while.
func (d *driver) request(life context.Context, p *process, m *message) {
	r := m.Request
	switch {
	case r.Subtype != "can_use_tool":
		p.say(line(map[string]any{"type": "control_response", "response": map[string]string{
			"subtype": "error", "request_id": m.RequestID, "error": "not supported: " + r.Subtype,
		}}))
		return
	case r.Tool == "AskUserQuestion":
		p.say(answerLine(m.RequestID, deny("Nobody answers questions here. Decide by yourself, and say what you assumed.")))
		return
	}
	ctx, cancel := context.WithCancel(life)
	p.mu.Lock()
	p.asking[m.RequestID] = cancel
	p.mu.Unlock()
	p.running.Go(func() {
		defer p.withdrawn(m.RequestID)
		said, err := d.host.AskWords(ctx, r.asked(m.RequestID))
		if err == nil {
			p.say(answerLine(m.RequestID, r.answer(said.OptionID, said.CustomInput)))
			return
		}
		if ctx.Err() == nil { // it could not be asked
			d.host.Log.Warn("claude: request for leave", "err", err)
			p.say(answerLine(m.RequestID, deny("The request could not be put to anybody.")))
		}
	})
}

// withdrawn ends a request for leave that waits, or has been answered.
func (p *process) withdrawn(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.asking[id]; cancel != nil {
		cancel()
		delete(p.asking, id)
	}
}

// asked is the request as people see it. Without an answer it is refused.
func (r permission) asked(id string) task.Permission {
	title, kind := describe(r.Tool, r.Input)
	p := task.Permission{
		RequestID: id, Default: task.RejectOnce,
		ToolCall: task.PermissionTool{ID: r.ToolUse, Title: title, Kind: kind, Input: bounded(r.Input)},
		Options:  []task.PermissionOption{{ID: task.AllowOnce, Name: "Allow", Kind: task.AllowOnce}},
	}
	if len(r.Suggestions) > 0 {
		p.Options = append(p.Options, task.PermissionOption{
			ID: task.AllowAlways, Name: "Allow from now on", Kind: task.AllowAlways,
		})
	}
	p.Options = append(p.Options, task.PermissionOption{ID: task.RejectOnce, Name: "Reject", Kind: task.RejectOnce})
	return p
}

// answer is what the program is told.
func (r permission) answer(option, words string) map[string]any {
	switch option {
	case task.AllowOnce, task.AllowAlways:
	default:
		return deny(cmp.Or(words, "The user does not allow this."))
	}
	input := r.Input
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	a := map[string]any{"behavior": "allow", "updatedInput": input}
	if option == task.AllowAlways {
		a["updatedPermissions"] = forSession(r.Suggestions)
	}
	return a
}

// forSession are the rules among suggestions, for this session only: the program would
// write some into files of the workspace. Where there are no rules it is all of them;
// else the others are alternatives that allow more than was asked.
func forSession(suggestions []suggestion) []suggestion {
	var rules, all []suggestion
	for _, s := range suggestions {
		changed := suggestion{}
		for k, v := range s {
			changed[k] = v
		}
		changed["destination"] = json.RawMessage(`"session"`)
		all = append(all, changed)
		if stringOf(s["type"]) == "addRules" {
			rules = append(rules, changed)
		}
	}
	if len(rules) > 0 {
		return rules
	}
	return all
}

func deny(message string) map[string]any {
	return map[string]any{"behavior": "deny", "message": message}
}

func answerLine(id string, answer map[string]any) []byte {
	return line(map[string]any{"type": "control_response", "response": map[string]any{
		"subtype": "success", "request_id": id, "response": answer,
	}})
}
