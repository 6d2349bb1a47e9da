package transcript

import (
	"bufio"
	"cmp"
	_ "embed"
	"html/template"
	"io"
	"strings"
	"sync"

	"github.com/Insights/insightscli/internal/linediff"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

//go:embed page.html
var pageText string

// pageTemplates are parsed when the first page is written.
var pageTemplates = sync.OnceValues(func() (*template.Template, error) {
	return template.New("page").Parse(pageText)
})

// HTML writes a transcript as one page that needs nothing else: no script, no picture, no
// font, no network.
func HTML(w io.Writer, a About, o Options) (Writer, error) {
	t, err := pageTemplates()
	if err != nil {
		return nil, err
	}
	return newTeller(&htmlPage{w: bufio.NewWriterSize(w, 64<<10), t: t, agent: cmp.Or(a.Agent, "agent")}, a, o), nil
}

// htmlPage is the page as HTML. All of it goes through html/template, which escapes.
type htmlPage struct {
	w      *bufio.Writer
	t      *template.Template
	agent  string
	failed error
}

func (p *htmlPage) err() error { return p.failed }

func (p *htmlPage) write(name string, data any) {
	if p.failed == nil {
		p.failed = p.t.ExecuteTemplate(p.w, name, data)
	}
}

// named is a text with a name. The fields of these types are exported for the templates.
type named struct{ Name, Text string }

func (p *htmlPage) head(a About) {
	var all []named
	for _, f := range a.fields() {
		all = append(all, named{f.name, render.Clean(f.text)})
	}
	p.write("head", struct {
		Title   string
		Fields  []named
		Command string
	}{cmp.Or(render.Clean(a.Title), "Run "+a.Run.Short()), all, render.CleanText(strings.Join(a.Command, " "))})
}

func (p *htmlPage) words(who speaker, at, text string) {
	type part struct {
		Code bool
		Text string
	}
	var parts []part
	for _, s := range splitFences(render.CleanText(text)) {
		if text := strings.Trim(s.text, "\n"); text != "" {
			parts = append(parts, part{s.code, text})
		}
	}
	if len(parts) == 0 {
		return
	}
	p.write("words", struct {
		Who, At  string
		Thinking bool
		User     bool
		Parts    []part
	}{map[speaker]string{agent: render.Clean(p.agent), user: "prompt", thinking: "thoughts"}[who], at, who == thinking, who == user, parts})
}

func (p *htmlPage) tool(t toolCall, at string) {
	type diffLine struct{ Class, Text string }
	type result struct {
		Path, Text string
		Lines      []diffLine
	}
	var inputs []named
	for _, f := range fields(t.input) {
		inputs = append(inputs, named{render.Clean(f.name), render.CleanText(f.text)})
	}
	var results []result
	for _, part := range t.result() {
		r := result{Path: render.Clean(part.path), Text: render.CleanText(part.text)}
		for _, l := range part.change {
			text := string(l.Op) + render.Clean(l.Text)
			if l.Op == '@' {
				text = "@@"
			}
			r.Lines = append(r.Lines, diffLine{classOf(l), text + "\n"})
		}
		results = append(results, r)
	}
	p.write("tool", struct {
		Headline      string
		Failed, Asked bool
		Inputs        []named
		Results       []result
	}{t.headline(at), t.status == "failed", t.status == "asked", inputs, results})
}

func classOf(l linediff.Line) string {
	return map[byte]string{'+': "plus", '-': "minus", '@': "skip"}[l.Op]
}

func (p *htmlPage) plan(entries []planEntry, at string) {
	type entry struct {
		Done bool
		Text string
	}
	var all []entry
	for _, e := range entries {
		all = append(all, entry{e.Status == "completed", render.Clean(e.Content)})
	}
	p.write("plan", struct {
		At      string
		Entries []entry
	}{at, all})
}

func (p *htmlPage) line(l line, at string) {
	p.write("line", struct {
		Mark, Text, At string
		Bad, Good      bool
	}{render.Clean(l.mark), render.Clean(l.text), at, l.bad, l.good})
}

func (p *htmlPage) output(at string) { p.write("output", at) }

func (p *htmlPage) piece(stream task.Stream, b []byte) {
	if stream == task.Stderr {
		p.write("stderr", string(b))
		return
	}
	p.write("stdout", string(b))
}

func (p *htmlPage) outputEnd() { p.write("outputEnd", nil) }

func (p *htmlPage) value(title, at, text string) {
	p.write("value", struct{ Title, At, Text string }{title, at, render.CleanText(text)})
}

func (p *htmlPage) foot() {
	p.write("foot", nil)
	if err := p.w.Flush(); p.failed == nil {
		p.failed = err
	}
}
