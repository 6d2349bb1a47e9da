package fakemodel

import (
	"encoding/json"
	"strings"
)

// itemKind is what a part of a conversation is.
type itemKind int

const (
	userWords itemKind = iota
	modelWords
	toolCall
	toolResult
)

type item struct {
	kind itemKind
	text string
}

// conversation is a request of any dialect, as far as a script needs it.
type conversation struct {
	model  string
	stream bool
	tools  []string
	items  []item
	usage  bool // Chat Completions: the stream ends with the usage
}

// position returns the last script and how many of its answers were given.
func (c *conversation) position() (script string, done int, ok bool) {
	at := -1
	for i, it := range c.items {
		if it.kind != userWords {
			continue
		}
		if s, found := findScript(it.text); found {
			script, at = s, i
		}
	}
	if at < 0 {
		return "", 0, false
	}
	previous := modelWords
	for _, it := range c.items[at+1:] {
		switch it.kind {
		case toolResult:
			done++
			previous = toolResult
		case modelWords:
			// Claude Code closes a turn that a tool ended with words of its own.
			if it.text != "No response requested." {
				previous = modelWords
			}
		case userWords:
			// Words while tools are at work are a steer, not another turn.
			if previous == modelWords && !envelope(it.text) {
				done++
			}
		case toolCall:
		}
	}
	return script, done, true
}

// envelope reports whether an agent wrote text, not a user: it is wrapped in one tag.
func envelope(text string) bool {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "<") {
		return false
	}
	name, _, ok := strings.Cut(text[1:], ">")
	if !ok {
		return false
	}
	name, _, _ = strings.Cut(name, " ")
	return name != "" && strings.HasSuffix(text, "</"+name+">")
}

// block is a part of a message in any dialect.
type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// blocks reads content that is a string or a list.
func blocks(content json.RawMessage) []block {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var list []block
	if json.Unmarshal(content, &list) != nil {
		return nil
	}
	return list
}

func (c *conversation) addUser(list []block) {
	for _, b := range list {
		switch b.Type {
		case "text", "input_text":
			c.items = append(c.items, item{userWords, b.Text})
		case "tool_result":
			c.items = append(c.items, item{kind: toolResult})
		}
	}
}

func (c *conversation) addModel(list []block) {
	for _, b := range list {
		switch b.Type {
		case "text", "output_text", "refusal":
			c.items = append(c.items, item{modelWords, b.Text})
		case "tool_use":
			c.items = append(c.items, item{kind: toolCall})
		}
	}
}

// readAnthropic reads a request of the Messages API.
func readAnthropic(body []byte) (*conversation, error) {
	var in struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	c := &conversation{model: in.Model, stream: in.Stream}
	for _, t := range in.Tools {
		c.tools = append(c.tools, t.Name)
	}
	for _, m := range in.Messages {
		switch m.Role {
		case "user":
			c.addUser(blocks(m.Content))
		case "assistant":
			c.addModel(blocks(m.Content))
		}
	}
	return c, nil
}

// readResponses reads a request of the Responses API.
func readResponses(body []byte) (*conversation, error) {
	var in struct {
		Model  string          `json:"model"`
		Stream bool            `json:"stream"`
		Input  json.RawMessage `json:"input"`
		Tools  []struct {
			Name string `json:"name"`
			Type string `json:"type"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	c := &conversation{model: in.Model, stream: in.Stream}
	for _, t := range in.Tools {
		c.tools = append(c.tools, first(t.Name, t.Type))
	}
	var text string
	if json.Unmarshal(in.Input, &text) == nil {
		c.items = append(c.items, item{userWords, text})
		return c, nil
	}
	var list []struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Tools   []struct {
			Name  string `json:"name"`
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(in.Input, &list); err != nil {
		return nil, err
	}
	for _, it := range list {
		switch {
		case it.Type == "additional_tools":
			for _, space := range it.Tools {
				for _, t := range space.Tools {
					c.tools = append(c.tools, space.Name+"."+t.Name)
				}
			}
		case strings.HasSuffix(it.Type, "_call_output"):
			c.items = append(c.items, item{kind: toolResult})
		case strings.HasSuffix(it.Type, "_call"):
			c.items = append(c.items, item{kind: toolCall})
		case it.Role == "user":
			c.addUser(blocks(it.Content))
		case it.Role == "assistant":
			c.addModel(blocks(it.Content))
		}
	}
	return c, nil
}

// readChat reads a request of the Chat Completions API.
func readChat(body []byte) (*conversation, error) {
	var in struct {
		Model         string `json:"model"`
		Stream        bool   `json:"stream"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []struct {
			Role      string            `json:"role"`
			Content   json.RawMessage   `json:"content"`
			ToolCalls []json.RawMessage `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	c := &conversation{model: in.Model, stream: in.Stream, usage: in.StreamOptions.IncludeUsage}
	for _, t := range in.Tools {
		c.tools = append(c.tools, t.Function.Name)
	}
	for _, m := range in.Messages {
		switch m.Role {
		case "user":
			c.addUser(blocks(m.Content))
		case "assistant":
			if len(m.ToolCalls) > 0 {
				c.items = append(c.items, item{kind: toolCall})
				continue
			}
			c.addModel(blocks(m.Content))
		case "tool":
			c.items = append(c.items, item{kind: toolResult})
		}
	}
	return c, nil
}
