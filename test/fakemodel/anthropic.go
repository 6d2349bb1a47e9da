package fakemodel

import (
	"encoding/json"
	"net/http"
)

// event is one of a stream; data is encoded as JSON unless it is raw.
type event struct {
	name string // "" where the dialect names no events
	data any
}

type object = map[string]any

// dialect is one API: how a request is read and a reply written.
type dialect struct {
	name   string
	read   func(body []byte) (*conversation, error)
	stream func(c *conversation, r reply) []event
	whole  func(c *conversation, r reply) any
	broken func(words string) event // an error within a stream
	fault  func(status int, words string) any
	done   string // a last line of the stream that is not JSON
}

var anthropic = &dialect{
	name:   "anthropic",
	read:   readAnthropic,
	stream: anthropicStream,
	whole: func(_ *conversation, r reply) any {
		m := anthropicMessage(r)
		content := []object{}
		for _, b := range anthropicBlocks(r) {
			content = append(content, b.whole)
		}
		m["content"], m["stop_reason"] = content, anthropicStop(r)
		m["usage"] = anthropicUsage(r.usage, r.usage.Output)
		return m
	},
	broken: func(words string) event {
		return event{"error", anthropicFault("overloaded_error", words)}
	},
	fault: func(status int, words string) any {
		return anthropicFault(anthropicErrorType(status), words)
	},
}

func anthropicFault(kind, words string) object {
	return object{"type": "error", "error": object{"type": kind, "message": words}}
}

func anthropicErrorType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	if status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}

func anthropicMessage(r reply) object {
	return object{
		"id": "msg_" + r.id, "type": "message", "role": "assistant", "model": r.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": anthropicUsage(r.usage, 1),
	}
}

func anthropicUsage(u Usage, output int64) object {
	return object{
		"input_tokens": u.Input, "output_tokens": output,
		"cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
	}
}

func anthropicStop(r reply) string {
	switch {
	case r.refuse:
		return "refusal"
	case r.call != nil:
		return "tool_use"
	}
	return "end_turn"
}

// anthropicBlock is a block of content, as a whole and as it begins and grows.
type anthropicBlock struct {
	whole, start object
	deltas       []object
}

func anthropicBlocks(r reply) []anthropicBlock {
	var out []anthropicBlock
	if r.think != "" {
		b := anthropicBlock{
			whole: object{"type": "thinking", "thinking": r.think, "signature": "c2NyaXB0ZWQ="},
			start: object{"type": "thinking", "thinking": "", "signature": ""},
		}
		for _, part := range chunks(r.think) {
			b.deltas = append(b.deltas, object{"type": "thinking_delta", "thinking": part})
		}
		b.deltas = append(b.deltas, object{"type": "signature_delta", "signature": "c2NyaXB0ZWQ="})
		out = append(out, b)
	}
	if r.say != "" {
		b := anthropicBlock{
			whole: object{"type": "text", "text": r.say},
			start: object{"type": "text", "text": ""},
		}
		for _, part := range chunks(r.say) {
			b.deltas = append(b.deltas, object{"type": "text_delta", "text": part})
		}
		out = append(out, b)
	}
	if r.call != nil {
		b := anthropicBlock{
			whole: object{"type": "tool_use", "id": "toolu_" + r.call.id, "name": r.call.name, "input": r.call.args},
			start: object{"type": "tool_use", "id": "toolu_" + r.call.id, "name": r.call.name, "input": object{}},
		}
		for _, part := range chunks(string(r.call.args)) {
			b.deltas = append(b.deltas, object{"type": "input_json_delta", "partial_json": part})
		}
		out = append(out, b)
	}
	return out
}

func anthropicStream(_ *conversation, r reply) []event {
	out := []event{{"message_start", object{"type": "message_start", "message": anthropicMessage(r)}}}
	for i, b := range anthropicBlocks(r) {
		out = append(out, event{"content_block_start", object{"type": "content_block_start", "index": i, "content_block": b.start}})
		for _, d := range b.deltas {
			out = append(out, event{"content_block_delta", object{"type": "content_block_delta", "index": i, "delta": d}})
		}
		out = append(out, event{"content_block_stop", object{"type": "content_block_stop", "index": i}})
	}
	delta := object{"stop_reason": anthropicStop(r), "stop_sequence": nil}
	return append(
		out,
		event{"message_delta", object{"type": "message_delta", "delta": delta, "usage": anthropicUsage(r.usage, r.usage.Output)}},
		event{"message_stop", object{"type": "message_stop"}},
	)
}

// countTokens answers a question for the size of a request.
func countTokens(body []byte) any {
	var in json.RawMessage
	if json.Unmarshal(body, &in) != nil {
		return anthropicFault("invalid_request_error", "not JSON")
	}
	return object{"input_tokens": len(body)/4 + 1}
}
