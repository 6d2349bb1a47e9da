package tui

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/Insights/insightscli/internal/linediff"
	"github.com/Insights/insightscli/internal/render"
)

const (
	// folded is how many rows of output are shown of an item that is not opened, and
	// opened of one that is: whoever wants more has the file.
	folded = 30
	opened = 20_000
	// maxShown is how much text is laid out for an item.
	maxShown = 1 << 20
)

func itoa(n int) string { return strconv.Itoa(n) }

// rows lays an item out. open shows all of it.
func (it *item) rows(width int, open bool) []row {
	width = max(width, 1)
	rows := it.body(width, open)
	limit := folded
	if open || it.kind == message || it.kind == user || it.kind == tool || it.kind == permission {
		limit = opened
	}
	if len(rows) > limit {
		note := "… " + itoa(len(rows)-limit) + " more lines"
		if !open {
			note += " (enter)"
		}
		rows = append(rows[:limit:limit], text(note, dim))
	}
	if it.hidden > 0 {
		rows = append(rows, text("… "+bytesText(it.hidden)+" more than are shown; s saves the log", dim))
	}
	switch {
	case len(rows) == 0:
		rows = []row{text("(empty)", dim)}
	case it.kind == message, it.kind == user: // words stand apart
		rows = append(rows, nil)
	}
	return rows
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<20:
		return strconv.FormatInt(n>>20, 10) + " MiB"
	case n >= 1<<10:
		return strconv.FormatInt(n>>10, 10) + " KiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// short cuts text that is too long to be laid out.
func short(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "")
}

func (it *item) body(width int, open bool) []row {
	switch it.kind {
	case message:
		return markdown(clean(short(it.text)), width)
	case user:
		return prefixed(lines(clean(short(it.text)), bold, max(1, width-2)), span{"> ", accent}, span{"  ", plain})
	case thought:
		return it.thoughtRows(width, open)
	case tool:
		return it.toolRows(width, open)
	case plan:
		return planRows(it.plan, width)
	case output:
		return it.outputRows(width)
	case permission:
		return it.permissionRows(width)
	case finished:
		return it.finishedRows(width)
	case step:
		f := dim
		if it.bad {
			f = bad
		}
		return row{{"- ", f}, {cleanLine(short(it.text)), f}}.wrap(width, text("  ", plain))
	}
	return row{{cleanLine(it.mark), it.lineFace()}, {sep(it.mark), plain}, {cleanLine(short(it.text)), it.textFace()}}.wrap(width, text("  ", plain))
}

func sep(mark string) string {
	if mark == "" {
		return ""
	}
	return " "
}

// lineFace is the face of the word before a line, textFace of the line.
func (it *item) lineFace() face {
	switch {
	case it.bad:
		return bad
	case it.kind == published:
		return good
	case it.mark == "warning: ":
		return warn
	}
	return dim
}

func (it *item) textFace() face {
	if it.kind == turn || it.kind == other {
		return dim
	}
	return plain
}

func (it *item) thoughtRows(width int, open bool) []row {
	s := clean(short(it.text))
	if !open {
		first := cleanLine(s)
		return []row{{{"~ thought ", dim}, {cut(first, max(1, width-10)), dim}}}
	}
	return append([]row{text("~ thought", dim)}, prefixed(lines(strings.TrimSpace(s), italic, max(1, width-2)), span{"  ", plain}, span{"  ", plain})...)
}

// toolRows is one line, which opens to what went in and what came out.
func (it *item) toolRows(width int, open bool) []row {
	t := it.tool
	if t == nil {
		t = &toolCall{title: it.text}
	}
	sign, f := "•", accent
	switch t.status {
	case "completed":
		sign, f = "✓", good
	case "failed":
		sign, f = "✗", bad
	}
	title := cleanLine(t.title)
	if title == "" {
		title = cleanLine(t.kind)
	}
	head := row{{sign + " ", f}, {title, bold}}
	if took := it.until.Sub(it.at); took > 0 && t.status != "" && t.status != "pending" && t.status != "in_progress" {
		head = append(head, span{" " + render.Took(took), dim})
	}
	if !open {
		rows := []row{head.clip(width)}
		if changes := t.changeCount(); changes != "" {
			rows[0] = append(row{{sign + " ", f}, {cut(title, max(1, width-3-cellWidth(changes))), bold}}, span{" " + changes, dim}).clip(width)
		}
		return rows
	}
	rows := head.wrap(width, text("  ", plain))
	inner := max(1, width-4)
	for _, p := range t.places {
		rows = append(rows, prefixed(lines(cleanLine(p), dim, inner), span{"  │ ", dim}, span{"  │ ", dim})...)
	}
	for _, part := range [][]row{inputRows(t.input, inner), t.contentRows(inner), it.outputOf(inner)} {
		rows = append(rows, prefixed(part, span{"  │ ", dim}, span{"  │ ", dim})...)
	}
	return rows
}

// outputOf shows the tool's own form of its output where it has no other.
func (it *item) outputOf(width int) []row {
	if it.tool == nil || len(it.tool.content) > 0 || len(it.tool.output) == 0 {
		return nil
	}
	return append([]row{text("output", dim)}, valueRows(it.tool.output, width)...)
}

// changeCount tells how much a tool changed.
func (t *toolCall) changeCount() string {
	plus, minus, n := 0, 0, 0
	for _, c := range t.content {
		if c.path == "" {
			continue
		}
		n++
		for _, l := range linediff.Lines(c.old, c.new) {
			switch l.Op {
			case '+':
				plus++
			case '-':
				minus++
			}
		}
	}
	if n == 0 {
		return ""
	}
	return "+" + itoa(plus) + " -" + itoa(minus)
}

func (t *toolCall) contentRows(width int) []row {
	var rows []row
	for _, c := range t.content {
		if c.path != "" {
			rows = append(rows, text(cut("--- "+cleanLine(c.path), width), bold))
			rows = append(rows, changeRows(linediff.Lines(c.old, c.new), width)...)
			continue
		}
		rows = append(rows, fencedRows(clean(short(c.text)), width)...)
	}
	return rows
}

// fencedRows shows text that is a fenced block of code without its fence, as agents put
// the output of a command.
func fencedRows(s string, width int) []row {
	body := strings.TrimSpace(s)
	if strings.HasPrefix(body, "```") && strings.HasSuffix(body, "```") && len(body) > 6 {
		if i := strings.IndexByte(body, '\n'); i > 0 {
			s = strings.TrimSuffix(body[i+1:], "```")
		}
	}
	return lines(s, plain, width)
}

// inputRows shows the arguments of a tool, one a line.
func inputRows(raw json.RawMessage, width int) []row {
	if len(raw) == 0 || string(raw) == "{}" {
		return nil
	}
	return valueRows(raw, width)
}

// valueRows shows a JSON value: an object member by member, texts as they are.
func valueRows(raw json.RawMessage, width int) []row {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return lines(clean(short(s)), plain, width)
	}
	var rows []row
	fields(bytes.TrimSpace(raw), func(k, v []byte) bool {
		name := cleanLine(string(k)) + ": "
		var s string
		if json.Unmarshal(v, &s) != nil {
			s = string(v)
		}
		s = clean(short(s))
		if strings.Contains(strings.TrimSpace(s), "\n") {
			rows = append(rows, text(name, accent))
			rows = append(rows, prefixed(lines(s, plain, max(1, width-2)), span{"  ", plain}, span{"  ", plain})...)
		} else {
			rows = append(rows, row{{name, accent}, {strings.TrimSpace(s), plain}}.wrap(width, text("  ", plain))...)
		}
		return len(rows) < opened
	})
	if rows == nil {
		rows = lines(clean(short(string(raw))), plain, width)
	}
	return rows
}

func planRows(entries []planEntry, width int) []row {
	rows := []row{text("plan", heading)}
	for _, e := range entries {
		box, f := "[ ] ", plain
		switch e.Status {
		case "completed":
			box, f = "[✓] ", dim
		case "in_progress":
			box, f = "[•] ", bold
		}
		rows = append(rows, row{{box, accent}, {cleanLine(e.Content), f}}.wrap(width, text("    ", plain))...)
	}
	return rows
}

func (it *item) outputRows(width int) []row {
	var rows []row
	for _, p := range it.pieces {
		f := plain
		if p.err {
			f = warn
		}
		rows = append(rows, lines(clean(short(p.text)), f, width)...)
	}
	if it.mark != "" {
		f := dim
		if it.bad {
			f = bad
		}
		rows = append(rows, text(it.mark, f))
	}
	return rows
}

func (it *item) permissionRows(width int) []row {
	if it.asks == nil {
		return lines(clean(short(it.text)), plain, width)
	}
	rows := row{{"? ", warn}, {"asks for leave: ", warn}, {cleanLine(it.asks.ToolCall.Title), bold}}.wrap(width, text("  ", plain))
	rows = append(rows, prefixed(inputRows(it.asks.ToolCall.Input, max(1, width-4)), span{"  │ ", dim}, span{"  │ ", dim})...)
	if it.answer != "" {
		return append(rows, row{{"  answered: ", dim}, {cleanLine(it.answer), plain}}.clip(width))
	}
	for i, o := range it.asks.Options {
		rows = append(rows, row{{"  " + itoa(i+1) + " ", accent}, {cleanLine(o.Name), plain}}.clip(width))
	}
	return append(rows, text(cut("  a answers", width), dim))
}

func (it *item) finishedRows(width int) []row {
	if it.result == nil {
		return lines(clean(short(it.text)), plain, width)
	}
	f := good
	if it.bad {
		f = bad
	}
	var rows []row
	for _, l := range render.Final(*it.result) {
		rows = append(rows, row{{cleanLine(l), f}}.wrap(width, text("  ", plain))...)
		f = plain
	}
	if it.result.Error != "" {
		rows = append(rows, row{{"error: ", bad}, {cleanLine(it.result.Error), plain}}.wrap(width, text("  ", plain))...)
	}
	return rows
}
