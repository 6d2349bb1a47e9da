package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// tokenPrefixes are the beginnings of well-known tokens; minToken token characters
// follow at least.
func tokenPrefixes() []string {
	return []string{
		"sk-ant-oat01-", "sk-ant-api", "phx_", "github_pat_",
		"ghs_", "ghp_", "gho_", "ghu_", "ghr_",
	}
}

// headerNames are the headers whose values are masked. proxy-authorization ends in
// the first and needs no entry.
func headerNames() []string { return []string{"authorization", "x-api-key"} }

// formsOf returns the forms in which programs print a value: as it is, each of its
// lines, in base64 wherever it lies in what was encoded, in JSON and in URLs.
func formsOf(value string) []string {
	all := []string{value}
	if trimmed := strings.TrimSpace(value); trimmed != value {
		all = append(all, trimmed)
	}
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) != len(value) {
			all = append(all, line)
		}
	}
	for _, form := range slices.Clone(all) {
		all = append(all, jsonForms(form)...)
		all = append(all, url.QueryEscape(form), url.PathEscape(form))
	}
	all = append(all, base64Forms(value)...)
	if trimmed := strings.TrimSpace(value); trimmed != value {
		all = append(all, base64Forms(trimmed)...)
	}
	return slices.DeleteFunc(all, func(s string) bool { return len(s) < minLength })
}

// base64Forms returns the characters that a value gives in base64, in both
// alphabets. Inside something longer it may begin at each of three places; only the
// characters that depend on nothing else are taken. The whole is also taken with
// its padding, and line by line as base64(1), openssl and MIME wrap it.
func base64Forms(value string) []string {
	var all []string
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		whole := enc.EncodeToString([]byte(value))
		all = append(all, whole, strings.TrimRight(whole, "="))
		for _, width := range []int{76, 64} {
			all = append(all, wrapped(whole[:8*len(value)/6], width)...)
		}
		for before := range 3 {
			text := enc.EncodeToString(append(make([]byte, before), value...))
			first := (8*before + 5) / 6
			last := 8 * (before + len(value)) / 6
			all = append(all, text[first:last])
		}
	}
	return all
}

// wrapped cuts text into lines.
func wrapped(text string, width int) []string {
	if len(text) <= width {
		return nil
	}
	var lines []string
	for ; len(text) > width; text = text[width:] {
		lines = append(lines, text[:width])
	}
	return append(lines, text)
}

// jsonForms returns the ways in which a value is written inside a JSON string: with
// and without the escapes for HTML, and in ASCII only.
func jsonForms(value string) []string {
	if !utf8.ValidString(value) {
		return nil
	}
	html, err := json.Marshal(value)
	if err != nil {
		return nil // a string always marshals
	}
	var plain, ascii strings.Builder
	for _, r := range value {
		switch {
		case r == '"' || r == '\\':
			plain.WriteString(`\` + string(r))
			ascii.WriteString(`\` + string(r))
		case r < ' ':
			plain.WriteString(controlEscape(r))
			ascii.WriteString(controlEscape(r))
		default:
			plain.WriteRune(r)
			ascii.WriteString(asciiEscape(r))
		}
	}
	return []string{string(html[1 : len(html)-1]), plain.String(), ascii.String()}
}

func controlEscape(r rune) string {
	if i := strings.IndexRune("\n\r\t\b\f", r); i >= 0 {
		return `\` + "nrtbf"[i:i+1]
	}
	return fmt.Sprintf(`\u%04x`, r)
}

func asciiEscape(r rune) string {
	if r < utf8.RuneSelf {
		return string(r)
	}
	if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
		return fmt.Sprintf(`\u%04x\u%04x`, hi, lo)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
