package llm

import (
	"net/http"
	"net/url"
	"strings"
)

// dialect is the language of a provider.
type dialect int

const (
	anthropic dialect = iota
	openai
)

// key is the variable that holds the host's key for the dialect.
func (d dialect) key() string {
	if d == anthropic {
		return "ANTHROPIC_API_KEY"
	}
	return "OPENAI_API_KEY"
}

// urlVariable is the setting that names another endpoint of the dialect.
func (d dialect) urlVariable() string {
	if d == anthropic {
		return "INSIGHTS_LLM_ANTHROPIC_URL"
	}
	return "INSIGHTS_LLM_OPENAI_URL"
}

// official is the base URL of the provider that the dialect is named after.
func (d dialect) official() string {
	if d == anthropic {
		return "https://api.anthropic.com"
	}
	return "https://api.openai.com"
}

// endpoint is something that the gateway serves.
type endpoint struct {
	dialect dialect
	path    string // at the provider
	method  string // GET includes HEAD
	answers bool   // a model answers: it costs something
	local   bool   // the gateway itself answers
}

// The paths of endpoints.
const (
	pathMessages  = "/v1/messages"
	pathCount     = "/v1/messages/count_tokens"
	pathResponses = "/v1/responses"
	pathChat      = "/v1/chat/completions"
	pathModels    = "/v1/models"
	pathHello     = "/api/hello"
)

// resolve finds the endpoint of a request. The path may have one segment before
// that of the provider: its dialect, or the name of a product, which the agent server of
// the platform puts there.
func resolve(r *http.Request) (endpoint, *refusal) {
	prefix, path := split(r.URL)
	e, ok := lookUp(prefix, path, r.Header)
	switch {
	case !ok:
		return e, &refusal{
			status: http.StatusNotFound, dialect: e.dialect, code: "not_found",
			text: "the LLM gateway of insightscli does not serve this path",
		}
	case path == pathResponses && r.Method == http.MethodGet:
		// Codex would rather talk over a WebSocket: this answer makes it use HTTP at once.
		return e, &refusal{
			status: http.StatusUpgradeRequired, dialect: e.dialect, code: "no_websocket",
			text: "the LLM gateway of insightscli does not speak WebSocket: use HTTP",
		}
	case r.Method != e.method && (e.method != http.MethodGet || r.Method != http.MethodHead):
		return e, &refusal{
			status: http.StatusMethodNotAllowed, dialect: e.dialect, code: "method_not_allowed",
			text: "use " + e.method, allow: e.method,
		}
	}
	return e, nil
}

// split takes the leading segment off a path that has one. A path with escapes in it, or
// one that is not clean, is none of ours.
func split(u *url.URL) (prefix, path string) {
	if u.RawPath != "" {
		return "", ""
	}
	for _, own := range []string{"/v1/", "/api/"} {
		if strings.HasPrefix(u.Path, own) {
			return "", u.Path
		}
	}
	first, rest, found := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if !found || !isProduct(first) {
		return "", ""
	}
	return first, "/" + rest
}

func isProduct(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

func lookUp(prefix, path string, h http.Header) (endpoint, bool) {
	e := endpoint{path: path, method: http.MethodPost}
	switch path {
	case pathMessages:
		e.dialect, e.answers = anthropic, true
	case pathCount:
		e.dialect = anthropic
	case pathResponses, pathChat:
		e.dialect, e.answers = openai, true
	case pathHello:
		e.dialect, e.method, e.local = anthropic, http.MethodGet, true
	case pathModels:
		e.method = http.MethodGet
		e.dialect = openai
		if prefix == "anthropic" || prefix != "openai" && h.Get("Anthropic-Version") != "" {
			e.dialect = anthropic
		}
	default:
		if prefix != "anthropic" {
			e.dialect = openai
		}
		return e, false
	}
	foreign := prefix == "anthropic" && e.dialect != anthropic || prefix == "openai" && e.dialect != openai
	return e, !foreign
}
