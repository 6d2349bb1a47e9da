package claude

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// message is one line of the program: of any type, so with the fields of all that are
// looked at. Those whose shape depends on the type are left as they are.
type message struct {
	Type    string          `json:"type"`
	Subtype string          `json:"subtype"`
	Parent  string          `json:"parent_tool_use_id"` // the tool call whose subagent says it
	Message json.RawMessage `json:"message"`
	Error   json.RawMessage `json:"error"`

	// system
	Session     string          `json:"session_id"`
	Version     string          `json:"claude_code_version"`
	MCP         []server        `json:"mcp_servers"`
	Attempt     int             `json:"attempt"`
	MaxRetries  int             `json:"max_retries"`
	DelayMs     float64         `json:"retry_delay_ms"`
	ErrorStatus int             `json:"error_status"`
	ToolUse     string          `json:"tool_use_id"`
	Content     json.RawMessage `json:"content"`

	// assistant, user, stream_event
	APIError bool  `json:"is_api_error_message"`
	Event    event `json:"event"`

	// result
	IsError    bool            `json:"is_error"`
	Result     json.RawMessage `json:"result"`
	Errors     []string        `json:"errors"`
	StopReason string          `json:"stop_reason"`
	Terminal   string          `json:"terminal_reason"`
	Structured json.RawMessage `json:"structured_output"`

	// command_lifecycle
	Command string `json:"command_uuid"`
	State   string `json:"state"`

	// control_request, control_response, control_cancel_request
	RequestID string          `json:"request_id"`
	Request   permission      `json:"request"`
	Response  controlResponse `json:"response"`
}

type server struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// event is one of the model's stream.
type event struct {
	Type  string `json:"type"`
	Block block  `json:"content_block"`
	Delta struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		JSON     string `json:"partial_json"`
	} `json:"delta"`
}

// block is a piece of a message.
type block struct {
	Type     string          `json:"type"` // text, thinking, tool_use, tool_result
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	ToolUse  string          `json:"tool_use_id"`
	IsError  bool            `json:"is_error"`
	Content  json.RawMessage `json:"content"`
}

type controlResponse struct {
	Subtype   string `json:"subtype"`
	RequestID string `json:"request_id"`
	Error     string `json:"error"`
}

// parse reads one line. A field of another type than we know is as good as absent.
func parse(line []byte) (*message, error) {
	m := &message{}
	return m, tolerant(json.Unmarshal(line, m))
}

func tolerant(err error) error {
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return nil
	}
	return err
}

// blocks are the pieces of an assistant's or a user's message.
func (m *message) blocks() []block {
	var body struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(m.Message, &body) != nil {
		return nil
	}
	return blocksOf(body.Content)
}

func blocksOf(content json.RawMessage) []block {
	if text := stringOf(content); text != "" {
		return []block{{Type: "text", Text: text}}
	}
	var blocks []block
	if tolerant(json.Unmarshal(content, &blocks)) != nil {
		return nil
	}
	return blocks
}

// textOf is the text of a tool's result.
func textOf(content json.RawMessage) string {
	var parts []string
	for _, b := range blocksOf(content) {
		switch {
		case b.Type == "text":
			parts = append(parts, b.Text)
		case b.Type != "":
			parts = append(parts, "["+b.Type+"]")
		}
	}
	return strings.Join(parts, "\n")
}

func stringOf(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // not a string is none
	return s
}

// failure is why a turn failed.
func (m *message) failure() string {
	for _, words := range append([]string{stringOf(m.Result)}, m.Errors...) {
		if words != "" && !strings.HasPrefix(words, "[ede_diagnostic]") {
			return words
		}
	}
	if m.Terminal != "" {
		return "the turn failed: " + m.Terminal
	}
	return "the turn failed"
}

// retry is what is said about a request to the model that will be tried again.
func (m *message) retry() string {
	why := stringOf(m.Error)
	if m.ErrorStatus != 0 {
		why = strings.TrimSpace(strconv.Itoa(m.ErrorStatus) + " " + why)
	}
	if why == "" || why == "unknown" {
		why = "the connection broke"
	}
	return "the model did not answer: " + why + "; retry " + strconv.Itoa(m.Attempt) + " of " + strconv.Itoa(m.MaxRetries)
}

// userLine is a message to the program.
func userLine(text, id string) []byte {
	return line(map[string]any{
		"type": "user", "uuid": id,
		"message": map[string]string{"role": "user", "content": text},
	})
}

// controlLine asks the program for something.
func controlLine(id string, request map[string]any) []byte {
	return line(map[string]any{"type": "control_request", "request_id": id, "request": request})
}

// interruptLine ends the turn, and drops what waits for one.
func interruptLine() []byte {
	return controlLine(newID(), map[string]any{"subtype": "interrupt", "cancel_queued": true})
}

func line(v any) []byte {
	b, _ := json.Marshal(v) // of maps, strings and JSON that was parsed
	return append(b, '\n')
}

func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
}

// cut is the beginning of text, at most n bytes, in whole characters.
func cut(text string, n int) (head, rest string) {
	if len(text) <= n {
		return text, ""
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n], text[n:]
}
