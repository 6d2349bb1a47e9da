package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

// ErrNoOutput is returned by the Close of a [Cast] that had no output of a command to
// record; nothing was written then.
var ErrNoOutput = errors.New("the run has no output of a command")

// The size of the terminal that a recording is played on.
const (
	castWidth  = 120
	castHeight = 36
)

// Cast writes the output of a run's command as a recording in asciinema's version 2. What
// could do more to a terminal than show text and colours is taken out, because a
// recording is played on one.
func Cast(w io.Writer, a About) Writer {
	c := &cast{w: bufio.NewWriterSize(w, 64<<10), about: a}
	for _, s := range []task.Stream{task.Stdout, task.Stderr} {
		c.clean(s).Color = true
	}
	return c
}

type cast struct {
	w     *bufio.Writer
	about About

	out, err render.Cleaner
	begin    time.Time // of the first output; zero: there was none
	last     time.Duration
	buf, row []byte
}

func (c *cast) clean(s task.Stream) *render.Cleaner {
	if s == task.Stderr {
		return &c.err
	}
	return &c.out
}

// Event implements Writer.
func (c *cast) Event(ev task.Event) error {
	if ev.Kind != task.KindOutput {
		return nil
	}
	o, err := ev.Output()
	if err != nil {
		return nil // it says nothing that could be shown
	}
	stream, b, err := o.Bytes()
	if err != nil || len(b) == 0 {
		return nil // as above
	}
	if c.begin.IsZero() {
		c.begin = ev.At
		if err := c.header(); err != nil {
			return err
		}
	}
	c.last = max(c.last, ev.At.Sub(c.begin)) // clocks may be set back
	c.buf = c.clean(stream).Append(c.buf[:0], b)
	return c.frame()
}

func (c *cast) header() error {
	return c.json(struct {
		Version   int               `json:"version"`
		Width     int               `json:"width"`
		Height    int               `json:"height"`
		Timestamp int64             `json:"timestamp"`
		Title     string            `json:"title,omitempty"`
		Env       map[string]string `json:"env"`
	}{2, castWidth, castHeight, c.begin.Unix(), render.Clean(c.about.Title), map[string]string{"TERM": "xterm-256color"}})
}

// frame writes what is in buf. A pipe has no carriage returns, which a terminal wants.
func (c *cast) frame() error {
	if len(c.buf) == 0 {
		return nil
	}
	c.row = c.row[:0]
	for len(c.buf) > 0 {
		i := bytes.IndexByte(c.buf, '\n')
		if i < 0 {
			c.row = append(c.row, c.buf...)
			break
		}
		c.row = append(c.row, c.buf[:i]...)
		c.row = append(c.row, '\r', '\n')
		c.buf = c.buf[i+1:]
	}
	return c.json([]any{json.Number(seconds(c.last)), "o", string(c.row)})
}

func (c *cast) json(v any) error {
	enc := json.NewEncoder(c.w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// seconds is a time with microseconds.
func seconds(d time.Duration) string {
	b, _ := json.Marshal(d.Round(time.Microsecond).Seconds()) // a finite number
	return string(b)
}

// Close implements Writer.
func (c *cast) Close() error {
	if c.begin.IsZero() {
		return ErrNoOutput
	}
	c.buf = c.err.End(c.out.End(c.buf[:0]))
	if err := c.frame(); err != nil {
		return err
	}
	return c.w.Flush()
}
