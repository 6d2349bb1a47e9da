package codex

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// mode is a permission mode, by its name.
type mode string

const (
	modePlan     mode = "plan"
	modeAuto     mode = "auto"
	modeReadOnly mode = "read-only"
	modeFull     mode = "full-access"
)

func parseMode(name string) (mode, error) {
	switch m := mode(name); m {
	case "":
		return modeFull, nil
	case modePlan, modeAuto, modeReadOnly, modeFull:
		return m, nil
	}
	return "", fmt.Errorf("codex has no permission mode %q; it has plan, auto, read-only and full-access", name)
}

// policy is Codex's word for when to ask. With full access it asks too, and is allowed:
// "never" would have it refuse, by itself, commands such as rm -rf.
func (m mode) policy() string {
	switch m {
	case modeFull, modeAuto:
		return "on-request"
	}
	return "untrusted"
}

// collaboration is what tells Codex of its plan mode, or of its end. The settings in it
// go before those of the turn, so they are the same.
func collaboration(s settings) map[string]any {
	name, model, effort := "default", s.model, any(nil)
	if s.mode == modePlan {
		name = "plan"
	}
	if model == "" {
		model = s.chosen
	}
	if s.effort != "" {
		effort = s.effort
	}
	return map[string]any{"mode": name, "settings": map[string]any{
		"model": model, "reasoning_effort": effort, "developer_instructions": nil,
	}}
}

var (
	// plainShell is a command as Codex shows it, with nothing in it that means
	// anything to a shell but words and patterns.
	plainShell = regexp.MustCompile(`^/\S+ -l?c (?:'([\w ./:=,@%+*?-]+)'|([\w./-]+))$`)
	// readers are programs that write nothing, whatever their arguments.
	readers = []string{"ls", "cat", "head", "tail", "pwd", "wc", "grep", "nl", "stat", "file", "cut", "basename", "dirname", "true"}
)

// reads reports whether a command certainly only reads. Codex's own view of a command
// (its commandActions) is made for screens: to it, find -delete is a search.
func reads(command string) bool {
	match := plainShell.FindStringSubmatch(command)
	if match == nil {
		return false
	}
	args := strings.Fields(match[1] + match[2])
	return len(args) > 0 && slices.Contains(readers, args[0])
}

// script is the command within the shell that Codex puts around it, for people.
func script(command string) string {
	shell, rest, ok := strings.Cut(command, " -c ")
	if !ok {
		shell, rest, ok = strings.Cut(command, " -lc ")
	}
	if !ok || strings.Contains(shell, " ") {
		return command
	}
	if inner, ok := strings.CutPrefix(rest, "'"); ok && strings.HasSuffix(inner, "'") {
		if inner = strings.TrimSuffix(inner, "'"); !strings.Contains(inner, "'") {
			return inner
		}
		return rest
	}
	return rest
}
