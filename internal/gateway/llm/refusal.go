package llm

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// statusClientGone stands in the log for a request whose client left; nobody sees it.
const statusClientGone = 499

// refusal is an answer of the gateway itself. It is an error, so that it can come out
// of the reader of a request's body.
type refusal struct {
	status  int
	dialect dialect
	code    string
	text    string
	allow   string // the method that would do
	again   int    // seconds after which trying again makes sense; 0: it does not
}

// Error implements error.
func (f *refusal) Error() string { return f.text }

// write answers in the shape of the dialect. A refusal that stands is marked for the
// clients of both providers, which would try again else.
func (f *refusal) write(w http.ResponseWriter) {
	var body any
	if f.dialect == anthropic {
		body = map[string]any{"type": "error", "error": map[string]any{"type": anthropicType(f.status), "message": f.text}}
	} else {
		body = map[string]any{"error": map[string]any{
			"message": f.text, "type": openaiType(f.status), "param": nil, "code": f.code,
		}}
	}
	h := w.Header()
	for name := range h {
		delete(h, name)
	}
	h.Set("Content-Type", "application/json")
	h.Set("X-Should-Retry", strconv.FormatBool(f.again > 0))
	if f.again > 0 {
		h.Set("Retry-After", strconv.Itoa(f.again))
	}
	if f.allow != "" {
		h.Set("Allow", f.allow)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		raw = []byte(`{}`)
	}
	h.Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(f.status)
	_, _ = w.Write(raw) // a client that has gone needs no answer
}

func anthropicType(status int) string {
	switch status {
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

func openaiType(status int) string {
	if status >= http.StatusInternalServerError {
		return "server_error"
	}
	return "invalid_request_error"
}
