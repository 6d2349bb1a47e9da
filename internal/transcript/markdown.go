package transcript

import (
	"bufio"
	"cmp"
	"fmt"
	"html"
	"io"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

// maxFence is how much output one block of code holds; more makes several.
const maxFence = 64 << 10

// Markdown writes a transcript in GitHub's Markdown.
func Markdown(w io.Writer, a About, o Options) Writer {
	return newTeller(&markdown{w: bufio.NewWriterSize(w, 64<<10), agent: cmp.Or(a.Agent, "agent"), harmless: harmless()}, a, o)
}

// markdown is the page in Markdown. What agents say is quoted, everything else that is not
// ours stands in blocks of code: neither can be left, since every line is prefixed or the
// fence is longer than any in it.
type markdown struct {
	w     *bufio.Writer
	agent string
	list  bool // the last part was an item of a list
	out   []byte

	harmless *strings.Replacer
}

func (m *markdown) err() error {
	_, err := m.w.Write(nil) // the writer keeps its first error
	return err
}

func (m *markdown) print(format string, args ...any) { fmt.Fprintf(m.w, format, args...) }

// part begins a part that is no item of a list.
func (m *markdown) part() {
	if m.list {
		m.print("\n")
	}
	m.list = false
}

func (m *markdown) head(a About) {
	m.print("# %s\n\n| | |\n|---|---|\n", mdText(cmp.Or(a.Title, "Run "+a.Run.Short())))
	for _, f := range a.fields() {
		m.print("| %s | %s |\n", f.name, mdText(f.text))
	}
	m.print("\n")
	if len(a.Command) > 0 {
		m.code("", "", strings.Join(a.Command, " "))
	}
}

// fields are what is known of the run, in order.
func (a About) fields() []field {
	var all []field
	add := func(name, text string) {
		if text != "" {
			all = append(all, field{name, text})
		}
	}
	add("run", string(a.Run))
	add("state", string(a.State))
	add("agent", strings.TrimSpace(a.Agent+" "+a.Model))
	add("repository", strings.Join(a.Repos, ", "))
	add("provider", a.Provider)
	add("network", a.Network)
	if !a.Created.IsZero() {
		add("created", a.Created.UTC().Format(time.RFC3339))
	}
	return all
}

func (m *markdown) words(who speaker, at, text string) {
	text = render.CleanText(text)
	if strings.TrimSpace(text) == "" {
		return
	}
	m.part()
	switch who {
	case thinking:
		m.print("<details>\n<summary>thoughts%s</summary>\n\n", html.EscapeString(after(at)))
		m.quote(text)
		m.print("</details>\n\n")
		return
	case user:
		m.print("**prompt**%s\n\n", mdText(after(at)))
	case agent:
		m.print("**%s**%s\n\n", mdText(m.agent), mdText(after(at)))
	}
	m.quote(text)
}

func after(at string) string {
	if at == "" {
		return ""
	}
	return " · " + at
}

// quote writes text that is Markdown itself as a quotation.
func (m *markdown) quote(text string) {
	for _, s := range splitFences(text) {
		if s.code {
			m.code("> ", langOf(s.lang), s.text)
			continue
		}
		for l := range strings.Lines(strings.Trim(s.text, "\n")) {
			m.print("> %s\n", m.harmless.Replace(strings.TrimRight(l, "\n")))
		}
		m.print(">\n")
	}
	m.print("\n")
}

// harmless takes the power from a line of Markdown: it can make no HTML, load no picture,
// hide no address behind a word, and open no block of code.
func harmless() *strings.Replacer {
	return strings.NewReplacer(
		"<", "&lt;", "![", "!&#91;", "](", "]&#40;", "]:", "]&#58;", "][", "]&#91;",
		"```", "&#96;&#96;&#96;", "~~~", "&#126;&#126;&#126;",
	)
}

// code writes a block of code, every line behind prefix.
func (m *markdown) code(prefix, lang, text string) {
	text = render.CleanText(text)
	fence := fenceFor(text)
	m.print("%s%s%s\n", prefix, fence, lang)
	if prefix == "" {
		m.print("%s", text)
	} else {
		for l := range strings.Lines(text) {
			m.print("%s%s", prefix, l)
		}
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		m.print("\n")
	}
	m.print("%s%s\n%s\n", prefix, fence, strings.TrimSpace(prefix))
}

func (m *markdown) tool(t toolCall, at string) {
	m.part()
	m.print("<details>\n<summary>%s</summary>\n\n", html.EscapeString(t.headline(at)))
	for _, f := range fields(t.input) {
		if f.name != "" {
			m.print("%s:\n\n", mdText(f.name))
		}
		m.code("", "", f.text)
	}
	for _, p := range t.result() {
		if p.path != "" {
			m.print("%s:\n\n", mdText(p.path))
			m.code("", "diff", changeText(p.change))
			continue
		}
		m.print("result:\n\n")
		m.code("", "", p.text)
	}
	m.print("</details>\n\n")
}

// headline says in a line what a tool was asked, and how it ended.
func (c *toolCall) headline(at string) string {
	text := map[string]string{"completed": "✓ ", "failed": "✗ ", "asked": "? "}[c.status]
	text += cmp.Or(render.Clean(c.title), "a tool")
	if kind := render.Clean(c.kind); kind != "" && kind != c.title {
		text += " (" + kind + ")"
	}
	text += after(at)
	if c.took != "" {
		text += " · took " + c.took
	}
	return text
}

func (m *markdown) plan(entries []planEntry, at string) {
	m.part()
	m.print("**plan**%s\n\n", mdText(after(at)))
	for _, e := range entries {
		m.print("- [%s] %s\n", map[bool]string{true: "x", false: " "}[e.Status == "completed"], mdText(e.Content))
	}
	m.print("\n")
}

func (m *markdown) line(l line, at string) {
	m.list = true
	mark := l.mark
	if mark != "" {
		mark = "**" + mdText(mark) + "** "
	}
	m.print("- %s%s%s\n", mark, mdText(l.text), mdText(after(at)))
}

func (m *markdown) output(at string) {
	m.part()
	if at != "" {
		m.print("**output**%s\n\n", mdText(after(at)))
	}
}

func (m *markdown) piece(_ task.Stream, b []byte) {
	m.out = append(m.out, b...)
	if len(m.out) >= maxFence {
		m.outputEnd()
	}
}

func (m *markdown) outputEnd() {
	if len(m.out) > 0 {
		m.code("", "", string(m.out))
	}
	m.out = m.out[:0]
}

func (m *markdown) value(title, at, text string) {
	m.part()
	m.print("**%s**%s\n\n", mdText(title), mdText(after(at)))
	m.code("", "json", text)
}

func (m *markdown) foot() { _ = m.w.Flush() } // the writer keeps its first error

// mdText is one line of text in which nothing is Markdown or HTML.
func mdText(s string) string {
	var b strings.Builder
	for _, r := range render.Clean(s) {
		switch {
		case strings.ContainsRune("\\`*_[]{}#|~!$", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@': // mentions nobody
			b.WriteString("&#64;")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
