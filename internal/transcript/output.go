package transcript

import (
	"fmt"

	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

// maxOutput is how much is kept of the beginning, and of the end, of one piece of a
// command's output.
const maxOutput = 256 << 10

// output is what a command says without anything between.
type output struct {
	clean map[task.Stream]*render.Cleaner
	room  int       // of the beginning
	tail  []outPart // the end, so far
	size  int       // of tail
	lost  int       // bytes between the beginning and the end
}

type outPart struct {
	stream task.Stream
	text   []byte
}

// output takes a piece of what a command says.
func (t *teller) output(ev task.Event, at string) {
	o, err := ev.Output()
	if err != nil {
		t.endOutput()
		t.page.line(told(ev), at)
		return
	}
	if o.ExitCode != nil {
		t.endOutput()
		t.page.line(line{mark: "exit code", text: fmt.Sprint(*o.ExitCode), bad: *o.ExitCode != 0}, at)
		return
	}
	stream, b, err := o.Bytes()
	if err != nil || len(b) == 0 {
		return
	}
	if t.out == nil {
		t.out = &output{clean: map[task.Stream]*render.Cleaner{task.Stdout: {}, task.Stderr: {}}, room: maxOutput}
		t.page.output(at)
	}
	t.outText(stream, t.out.clean[stream].Append(nil, b))
}

// outText writes clean text while there is room for the beginning, and keeps the end.
func (t *teller) outText(stream task.Stream, text []byte) {
	o := t.out
	if len(text) == 0 {
		return
	}
	if t.options.Full || o.room > 0 {
		t.page.piece(stream, text)
		o.room -= len(text)
		return
	}
	o.tail = append(o.tail, outPart{stream, text})
	o.size += len(text)
	for o.size-len(o.tail[0].text) >= maxOutput {
		o.lost += len(o.tail[0].text)
		o.size -= len(o.tail[0].text)
		o.tail[0].text = nil
		o.tail = o.tail[1:]
	}
}

// endOutput writes the end of what a command has said.
func (t *teller) endOutput() {
	o := t.out
	if o == nil {
		return
	}
	for _, s := range []task.Stream{task.Stdout, task.Stderr} {
		t.outText(s, o.clean[s].End(nil))
	}
	t.out = nil
	if o.lost > 0 {
		t.page.outputEnd()
		t.page.line(line{mark: "left out", text: fmt.Sprintf("%d bytes of output (--full leaves nothing out)", o.lost)}, "")
		t.page.output("")
	}
	for _, p := range o.tail {
		t.page.piece(p.stream, p.text)
	}
	t.page.outputEnd()
}
