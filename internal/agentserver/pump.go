package agentserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"github.com/Insights/insightscli/internal/link/wire"
)

// quiet is how long output may wait for company. A line that comes after a silence
// of so long is sent at once; others at most so much later, or when a frame is full.
const quiet = 15 * time.Millisecond

// pump turns one output stream into frames: as many whole lines as fit. A line that
// is longer, or that nobody has ended in time (a prompt), is sent in parts, all but
// the last marked as continued. A stream may end after such a mark. One buffer of
// wire.MaxChunk is all the memory it takes, whatever the length of a line.
type pump struct {
	kind wire.FrameType
	in   *tail
	out  *journal
	buf  []byte
	n    int       // bytes in buf
	sent time.Time // when the newest frame was
	due  time.Time // when buf must be sent; zero when it is empty
}

func newPump(kind wire.FrameType, in *tail, out *journal) *pump {
	return &pump{kind: kind, in: in, out: out, buf: make([]byte, wire.MaxChunk)}
}

// run pumps until the stream or ctx ends.
func (p *pump) run(ctx context.Context) {
	for {
		waited, err := p.out.room(ctx)
		if err != nil {
			break
		}
		if waited && p.n > 0 {
			p.due = time.Now().Add(quiet) // the pipe has filled up meanwhile: no small frames
		}
		n, err := p.in.read(p.buf[p.n:], p.due)
		p.take(n, time.Now())
		if errors.Is(err, io.EOF) {
			break
		}
	}
	if p.n > 0 {
		p.send(p.n, false, time.Now())
	}
}

// take looks at n new bytes and sends what is to be sent now.
func (p *pump) take(n int, now time.Time) {
	fresh := p.n == 0
	p.n += n
	switch {
	case p.n == 0:
		return
	case p.n == len(p.buf):
		p.sendFull(now)
	case n > 0 && now.Sub(p.sent) >= quiet && p.lines() > 0:
		p.send(p.lines(), false, now)
	case !p.due.IsZero() && !now.Before(p.due):
		p.sendDue(now)
	case fresh:
		p.due = now.Add(quiet)
	}
}

// lines returns the length of the whole lines in the buffer.
func (p *pump) lines() int { return bytes.LastIndexByte(p.buf[:p.n], '\n') + 1 }

func (p *pump) sendFull(now time.Time) {
	if n := p.lines(); n > 0 {
		p.send(n, false, now)
		return
	}
	p.send(wholeRunes(p.buf[:p.n]), true, now)
}

// sendDue sends everything; a line without an end is continued.
func (p *pump) sendDue(now time.Time) {
	n := wholeRunes(p.buf[:p.n])
	if n == 0 {
		n = p.n // the rest of the character has not come in time
	}
	p.send(n, n != p.lines(), now)
}

// send makes a frame of the first n bytes.
func (p *pump) send(n int, continued bool, now time.Time) {
	data := append([]byte(nil), p.buf[:n]...)
	p.out.append(wire.Frame{Type: p.kind, Continued: continued, Data: data})
	p.n = copy(p.buf, p.buf[n:p.n])
	p.sent, p.due = now, time.Time{}
	if p.n > 0 {
		p.due = now.Add(quiet)
	}
}

// wholeRunes returns len(b), less a UTF-8 sequence that b cuts off: text that is
// split stays text in both parts.
func wholeRunes(b []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		c := b[len(b)-i]
		if !utf8.RuneStart(c) {
			continue
		}
		if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
			return len(b) - i
		}
		break
	}
	return len(b)
}
