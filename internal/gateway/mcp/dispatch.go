package mcp

import (
	"encoding/json"
	"slices"
	"strings"
)

// dispatcher is the tool of the Insights server that runs others: its argument is a
// command such as `call feature-flag-delete {"id": 1}`.
const dispatcher = "exec"

// dispatches reports whether a tool runs others by name. Only the Insights server has
// such a tool, and it may have been added under a longer name.
func dispatches(server, tool string) bool {
	return tool == dispatcher && (server == Insights || strings.HasPrefix(server, Insights+"_"))
}

// maxDepth bounds how deep in its arguments a dispatched tool is looked for.
const maxDepth = 6

// dispatched returns every word of the dispatcher's arguments that may be the name of
// the tool that it runs. What the agent writes is hostile and what the server takes may
// change, so it is liberal: a word too many costs a question, one too few a flag.
func dispatched(args json.RawMessage) []string {
	var v any
	if json.Unmarshal(args, &v) != nil {
		return nil
	}
	var names []string
	find(v, "", 0, &names)
	slices.Sort(names)
	return slices.Compact(names)
}

// find looks for names in v, which stands under key.
func find(v any, key string, depth int, names *[]string) {
	if depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case string:
		switch words := commandWords(v); {
		case isCommand(key):
			*names = append(*names, words...)
		case len(words) == 1 && isName(key, depth):
			*names = append(*names, words...)
		}
	case []any:
		if words, ok := argv(v); ok && isCommand(key) {
			*names = append(*names, commandWords(words)...)
			return
		}
		for _, e := range v {
			find(e, key, depth+1, names)
		}
	case map[string]any:
		named := isCall(v)
		for k, e := range v {
			if !named || !isArguments(k) {
				find(e, strings.ToLower(k), depth+1, names)
			}
		}
	}
}

// isCommand reports whether a field holds a whole command.
func isCommand(key string) bool {
	switch key {
	case "", "command", "commands", "cmd", "input", "script", "argv", "args", "call", "calls":
		return true
	}
	return false
}

// isName reports whether a field may hold the name of a tool: any one at the top, and
// the usual ones below.
func isName(key string, depth int) bool {
	switch key {
	case "tool", "tools", "name", "tool_name", "toolname", "subcommand", "method":
		return true
	}
	return depth <= 1
}

// isCall reports whether an object names a tool itself, so that its arguments are data.
func isCall(object map[string]any) bool {
	for k, v := range object {
		if _, ok := v.(string); ok && (isName(strings.ToLower(k), maxDepth) || isCommand(strings.ToLower(k))) {
			return true
		}
	}
	return false
}

// isArguments reports whether a field holds the arguments of the tool that is run, which
// are data.
func isArguments(key string) bool {
	switch strings.ToLower(key) {
	case "arguments", "params", "parameters", "payload", "data":
		return true
	}
	return false
}

// argv joins a list of words.
func argv(list []any) (string, bool) {
	words := make([]string, len(list))
	for i, e := range list {
		s, ok := e.(string)
		if !ok {
			return "", false
		}
		words[i] = s
	}
	return strings.Join(words, "\n"), true
}

// commandWords returns the words of a command that are not within JSON. A command that
// only asks about tools has none.
func commandWords(s string) []string {
	words := strings.FieldsFunc(withoutJSON(s), func(r rune) bool {
		return r <= ' ' || strings.ContainsRune("\"'`;|&(),=:", r)
	})
	if len(words) > 0 && asks(words[0]) && !slices.ContainsFunc(words, runs) {
		return nil
	}
	return words
}

func asks(word string) bool {
	switch strings.ToLower(word) {
	case "info", "tools", "search", "schema", "help", "list", "describe":
		return true
	}
	return false
}

func runs(word string) bool {
	switch strings.ToLower(word) {
	case "call", "run", "exec", "invoke":
		return true
	}
	return false
}

// withoutJSON leaves out every well-formed JSON object and array of s.
func withoutJSON(s string) string {
	var out strings.Builder
	for {
		i := strings.IndexAny(s, "{[")
		if i < 0 {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(s[:i] + " ")
		dec := json.NewDecoder(strings.NewReader(s[i:]))
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			s = s[i+1:] // not JSON: what it holds are words
			continue
		}
		s = s[i+int(dec.InputOffset()):]
	}
}
