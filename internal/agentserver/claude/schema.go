package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
)

// maxFlag bounds a schema in the program's arguments: Linux allows 128 KiB for one.
const maxFlag = 120 << 10

// schemaPlan is how a reply of a schema is asked for: by the program's own flag, or in the
// prompt, where the program would not take the schema or no tool could have it for its
// input. Either way the host judges the reply.
type schemaPlan struct {
	flag  string
	words string // at the end of the prompt
}

// planSchema decides. refused is a flag that the program did not take.
func planSchema(schema json.RawMessage, refused string) schemaPlan {
	var root map[string]json.RawMessage
	if len(schema) == 0 || string(schema) == "null" {
		return schemaPlan{}
	}
	if json.Unmarshal(schema, &root) == nil && stringOf(root["type"]) == "object" {
		// The program knows no dialect but its own, and refuses the others by their name.
		delete(root, "$schema")
		if flag, err := json.Marshal(root); err == nil && len(flag) <= maxFlag && string(flag) != refused {
			return schemaPlan{flag: string(flag)}
		}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, schema) != nil {
		compact.Write(schema)
	}
	return schemaPlan{words: "\n\nReply with one JSON value and nothing else. It must fit this JSON Schema:\n" + compact.String()}
}

// noConversation is what the program says when its files hold no such conversation: it was
// killed before it had written it.
const noConversation = "No conversation found"

// adapt looks at what a process said that ended before its first turn, and reports whether
// another attempt has better prospects.
func (d *driver) adapt(ctx context.Context, p *process, schema string) bool {
	words := p.lastWords()
	d.mu.Lock()
	kept := d.kept
	lost := kept && (d.gone || strings.Contains(words, noConversation))
	d.gone = false
	switch {
	case schema != "" && strings.Contains(words, "--json-schema") && !strings.Contains(words, "unknown option"):
		d.host.Log.Info("claude does not take the schema", "why", words)
		d.refused = schema
	case lost:
		d.session, d.kept = newID(), false
	case !kept && strings.Contains(words, "already in use"):
		d.kept = true
	default:
		d.mu.Unlock()
		return false
	}
	d.mu.Unlock()
	if lost {
		d.log(ctx, d.host.Notice(ctx, "warn", "the agent's conversation is gone: it begins a new one"))
	}
	return true
}
