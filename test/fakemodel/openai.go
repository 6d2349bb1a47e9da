package fakemodel

var responses = &dialect{
	name:   "responses",
	read:   readResponses,
	stream: responsesStream,
	whole: func(_ *conversation, r reply) any {
		return responsesObject(r, "completed", responsesItems(r))
	},
	broken: func(words string) event {
		return event{"response.failed", object{
			"type":     "response.failed",
			"response": object{"status": "failed", "error": object{"code": "server_error", "message": words}},
		}}
	},
	fault: openAIFault,
}

func openAIFault(status int, words string) any {
	kind := "invalid_request_error"
	if status >= 500 {
		kind = "server_error"
	}
	return object{"error": object{"message": words, "type": kind, "code": nil, "param": nil}}
}

func responsesObject(r reply, status string, output []object) object {
	o := object{"id": "resp_" + r.id, "object": "response", "status": status, "model": r.model, "output": output}
	if status == "completed" {
		input := r.usage.Input + r.usage.CacheRead
		o["usage"] = object{
			"input_tokens": input, "input_tokens_details": object{"cached_tokens": r.usage.CacheRead},
			"output_tokens": r.usage.Output, "output_tokens_details": object{"reasoning_tokens": 0},
			"total_tokens": input + r.usage.Output,
		}
	}
	return o
}

// responsesItems are the parts of a reply: thoughts, words, a call.
func responsesItems(r reply) []object {
	out := []object{}
	if r.think != "" {
		out = append(out, object{
			"type": "reasoning", "id": "rs_" + r.id,
			"summary": []object{{"type": "summary_text", "text": r.think}},
		})
	}
	switch {
	case r.refuse:
		out = append(out, responsesMessage(r, object{"type": "refusal", "refusal": "I cannot help with that."}))
	case r.say != "":
		out = append(out, responsesMessage(r, object{"type": "output_text", "text": r.say, "annotations": []any{}}))
	}
	if r.call != nil {
		out = append(out, responsesCall(r.call))
	}
	return out
}

func responsesMessage(r reply, content object) object {
	return object{
		"type": "message", "id": "msg_" + r.id, "role": "assistant", "status": "completed",
		"content": []object{content},
	}
}

func responsesCall(c *call) object {
	if c.custom != "" {
		return named(c, object{
			"type": "custom_tool_call", "id": "ctc_" + c.id, "call_id": c.id, "status": "completed",
			"input": c.custom,
		})
	}
	return named(c, object{
		"type": "function_call", "id": "fc_" + c.id, "call_id": c.id, "status": "completed",
		"arguments": string(c.args),
	})
}

// named puts the name of the tool into o.
func named(c *call, o object) object {
	o["name"] = c.name
	if c.namespace != "" {
		o["namespace"] = c.namespace
	}
	return o
}

func responsesStream(_ *conversation, r reply) []event {
	var out []event
	add := func(name string, o object) {
		o["type"], o["sequence_number"] = name, len(out)
		out = append(out, event{name, o})
	}
	add("response.created", object{"response": responsesObject(r, "in_progress", []object{})})
	items := responsesItems(r)
	for i, it := range items {
		add("response.output_item.added", object{"output_index": i, "item": started(it)})
		responsesDeltas(add, r, i, it)
		add("response.output_item.done", object{"output_index": i, "item": it})
	}
	add("response.completed", object{"response": responsesObject(r, "completed", items)})
	return out
}

// started is an item as it is announced: nothing in it yet.
func started(it object) object {
	o := object{}
	for k, v := range it {
		o[k] = v
	}
	if _, ok := o["status"]; ok {
		o["status"] = "in_progress"
	}
	for _, k := range []string{"content", "summary"} {
		if _, ok := o[k]; ok {
			o[k] = []any{}
		}
	}
	for _, k := range []string{"arguments", "input"} {
		if _, ok := o[k]; ok {
			o[k] = ""
		}
	}
	return o
}

func responsesDeltas(add func(string, object), r reply, i int, it object) {
	id := it["id"]
	grow := func(name, text string, more object) {
		for _, part := range chunks(text) {
			o := object{"item_id": id, "output_index": i, "delta": part}
			for k, v := range more {
				o[k] = v
			}
			add(name, o)
		}
	}
	switch it["type"] {
	case "reasoning":
		at := object{"summary_index": 0}
		add("response.reasoning_summary_part.added", object{
			"item_id": id, "output_index": i, "summary_index": 0, "part": object{"type": "summary_text", "text": ""},
		})
		grow("response.reasoning_summary_text.delta", r.think, at)
	case "message":
		if r.refuse {
			grow("response.refusal.delta", "I cannot help with that.", object{"content_index": 0})
			return
		}
		add("response.content_part.added", object{
			"item_id": id, "output_index": i, "content_index": 0,
			"part": object{"type": "output_text", "text": "", "annotations": []any{}},
		})
		grow("response.output_text.delta", r.say, object{"content_index": 0})
	case "function_call":
		grow("response.function_call_arguments.delta", string(r.call.args), nil)
	case "custom_tool_call":
		grow("response.custom_tool_call_input.delta", r.call.custom, nil)
	}
}

var chat = &dialect{
	name:   "chat",
	read:   readChat,
	stream: chatStream,
	whole: func(_ *conversation, r reply) any {
		message := object{"role": "assistant", "content": r.say}
		if r.refuse {
			message["refusal"] = "I cannot help with that."
		}
		if r.call != nil {
			message["tool_calls"] = []object{chatCall(r.call, string(r.call.args))}
		}
		o := chatObject(r, "chat.completion", object{"message": message, "finish_reason": chatFinish(r)})
		o["usage"] = chatUsage(r.usage)
		return o
	},
	broken: func(words string) event { return event{"", openAIFault(500, words)} },
	fault:  openAIFault,
	done:   "[DONE]",
}

func chatObject(r reply, kind string, choice object) object {
	choices := []object{}
	if choice != nil {
		choice["index"] = 0
		choices = append(choices, choice)
	}
	return object{"id": "chatcmpl-" + r.id, "object": kind, "created": 1767225600, "model": r.model, "choices": choices}
}

func chatUsage(u Usage) object {
	input := u.Input + u.CacheRead
	return object{
		"prompt_tokens": input, "completion_tokens": u.Output, "total_tokens": input + u.Output,
		"prompt_tokens_details": object{"cached_tokens": u.CacheRead},
	}
}

func chatCall(c *call, args string) object {
	return object{"index": 0, "id": c.id, "type": "function", "function": object{"name": c.name, "arguments": args}}
}

func chatFinish(r reply) string {
	switch {
	case r.call != nil:
		return "tool_calls"
	case r.refuse:
		return "content_filter"
	}
	return "stop"
}

func chatStream(c *conversation, r reply) []event {
	var out []event
	add := func(delta object, finish any) {
		choice := object{"delta": delta, "finish_reason": finish}
		out = append(out, event{"", chatObject(r, "chat.completion.chunk", choice)})
	}
	add(object{"role": "assistant", "content": ""}, nil)
	for _, part := range chunks(r.think) {
		add(object{"reasoning_content": part}, nil)
	}
	for _, part := range chunks(r.say) {
		add(object{"content": part}, nil)
	}
	if r.refuse {
		add(object{"refusal": "I cannot help with that."}, nil)
	}
	if r.call != nil {
		add(object{"tool_calls": []object{chatCall(r.call, "")}}, nil)
		for _, part := range chunks(string(r.call.args)) {
			add(object{"tool_calls": []object{{"index": 0, "function": object{"arguments": part}}}}, nil)
		}
	}
	add(object{}, chatFinish(r))
	if c.usage {
		last := chatObject(r, "chat.completion.chunk", nil)
		last["usage"] = chatUsage(r.usage)
		out = append(out, event{"", last})
	}
	return out
}
