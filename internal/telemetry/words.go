package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// other stands for a word that is not known here. What a sandbox says could be anything.
const other = "other"

// oneOf is the word if it is among the known ones.
func oneOf(word string, known ...string) string {
	switch {
	case word == "" || slices.Contains(known, word):
		return word
	}
	return other
}

func toolKind(s string) string {
	if s == "" {
		return other
	}
	return oneOf(s, "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode")
}

func toolStatus(s string) string {
	return oneOf(s, "pending", "in_progress", "completed", "failed")
}

func stopReason(s string) string {
	return oneOf(s, "end_turn", "refusal", "max_tokens", "max_turn_requests", "cancelled", "error")
}

func permissionMode(s string) string {
	return oneOf(s, "default", "acceptEdits", "plan", "bypassPermissions", "auto", "read-only", "full-access")
}

func decision(s string) string {
	return oneOf(s, "allow_once", "allow_always", "reject_once", "reject_always")
}

func decider(s string) string { return oneOf(s, "user", "default", "timeout", "cancelled", "mode") }

// category is a kind of error in the host's own words: of package errs, or of a turn.
func category(s string) string {
	if len(s) > 40 || strings.ContainsFunc(s, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		return other
	}
	return s
}

// opaque is an identifier that somebody else has made: as it is if it looks like one, else
// a hash of it.
func opaque(id string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:", r)
	}
	if len(id) <= 128 && !strings.ContainsFunc(id, func(r rune) bool { return !plain(r) }) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}
