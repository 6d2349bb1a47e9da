package fakemodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	scriptBegin = "<<script>>"
	scriptEnd   = "<<end>>"
)

// Step is one element of a script; see the package comment.
type Step struct {
	ID string `json:"id,omitempty"`

	Bash       string          `json:"bash,omitempty"`
	Read       string          `json:"read,omitempty"`
	Write      *Write          `json:"write,omitempty"`
	Edit       *Edit           `json:"edit,omitempty"`
	Tool       string          `json:"tool,omitempty"`
	NS         string          `json:"ns,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Text       *string         `json:"text,omitempty"`
	Refuse     bool            `json:"refuse,omitempty"`
	Empty      bool            `json:"empty,omitempty"`

	Status      int    `json:"status,omitempty"`
	Message     string `json:"message,omitempty"`
	RetryAfter  string `json:"retry_after,omitempty"`
	Cut         bool   `json:"cut,omitempty"`
	StreamError string `json:"stream_error,omitempty"`
	Hang        bool   `json:"hang,omitempty"`
	Times       int    `json:"times,omitempty"`

	Say   string `json:"say,omitempty"`
	Think string `json:"think,omitempty"`
	Slow  string `json:"slow,omitempty"`
	Hold  string `json:"hold,omitempty"`
	Usage *Usage `json:"usage,omitempty"`
}

// Write is a file to be written by the agent's own tool.
type Write struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// Edit is a passage to be replaced by the agent's own tool.
type Edit struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// Usage is how many tokens a reply says that it took.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
}

// Script returns the text that carries steps in a prompt.
func Script(steps ...Step) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if steps == nil {
		steps = []Step{}
	}
	if err := enc.Encode(steps); err != nil {
		return err.Error()
	}
	return scriptBegin + strings.TrimSpace(b.String()) + scriptEnd
}

// Say returns the step that ends a turn with text.
func Say(text string) Step { return Step{Text: &text} }

// findScript returns the last whole script in text.
func findScript(text string) (script string, ok bool) {
	begin := strings.LastIndex(text, scriptBegin)
	if begin < 0 {
		return "", false
	}
	return strings.CutSuffix(cutAfter(text[begin+len(scriptBegin):], scriptEnd), scriptEnd)
}

// cutAfter returns s up to and with the first mark.
func cutAfter(s, mark string) string {
	if i := strings.Index(s, mark); i >= 0 {
		return s[:i+len(mark)]
	}
	return s
}

// parseScript reads the steps. Some agents hand the prompt on as a JSON string within
// text, so a script that does not parse is tried once more without its escapes.
func parseScript(text string) ([]Step, error) {
	steps, err := decodeSteps(text)
	if err == nil {
		return steps, nil
	}
	var plain string
	if json.Unmarshal([]byte(`"`+text+`"`), &plain) == nil {
		if steps, again := decodeSteps(plain); again == nil {
			return steps, nil
		}
	}
	return nil, err
}

func decodeSteps(text string) ([]Step, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	var steps []Step
	if err := dec.Decode(&steps); err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("script: more than a list")
	}
	for i, s := range steps {
		if s.Slow == "" {
			continue
		}
		if _, err := time.ParseDuration(s.Slow); err != nil {
			return nil, fmt.Errorf("script: step %d: %w", i, err)
		}
	}
	return steps, nil
}

// answers reports whether the step is a reply that takes a place in the count.
func (s *Step) answers() bool {
	return s.Bash != "" || s.Read != "" || s.Write != nil || s.Edit != nil || s.Tool != "" ||
		s.Structured != nil || s.Text != nil || s.Refuse || s.Empty
}

// fails reports whether the step is a failure.
func (s *Step) fails() bool { return s.Status > 0 || s.Cut || s.StreamError != "" || s.Hang }

// kind names the step in the log.
func (s *Step) kind() string {
	switch {
	case s.Status > 0:
		return fmt.Sprintf("status %d", s.Status)
	case s.Cut:
		return "cut"
	case s.StreamError != "":
		return "stream_error"
	case s.Hang:
		return "hang"
	case s.Bash != "":
		return "bash"
	case s.Read != "":
		return "read"
	case s.Write != nil:
		return "write"
	case s.Edit != nil:
		return "edit"
	case s.Tool != "":
		return "tool"
	case s.Structured != nil:
		return "structured"
	case s.Refuse:
		return "refuse"
	case s.Empty:
		return "empty"
	}
	return "text"
}

// turn is what to do for one request.
type turn struct {
	index   int   // of the answer or failure in the script; -1 without a script
	failure *Step // happens instead of, or within, the answer
	answer  Step
}

// choose finds the step of a request: done answers were given before. The function
// happened counts a failure and tells whether it may happen once more.
func choose(steps []Step, done int, happened func(index int, s *Step) bool) turn {
	words := "(the script has ended)"
	t := turn{index: len(steps), answer: Step{Text: &words}}
	var slow, hold string
	for i := range steps {
		s := &steps[i]
		switch {
		case s.answers() && done > 0:
			done--
			slow, hold = "", ""
		case s.answers():
			t.answer = *s
			if t.failure == nil {
				t.index = i
			}
			t.answer.Slow = first(s.Slow, slow)
			t.answer.Hold = first(s.Hold, hold)
			return t
		case done > 0:
		case s.fails():
			if t.failure == nil && happened(i, s) {
				t.failure, t.index = s, i
			}
		default:
			slow, hold = first(s.Slow, slow), first(s.Hold, hold)
		}
	}
	return t
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
