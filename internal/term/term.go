// Package term holds the streams of the process: where data and messages go,
// whether a person is looking, how wide the screen is and whether colour is
// welcome. The process makes one [Streams] with [System]; tests make one with
// [Test]. Nothing else in the program touches the standard streams.
//
// A reader that goes away (`| head -1`) is not an error of ours: the first write
// that finds nobody closes [Streams.Gone], and every later one is answered with
// [ErrGone], so that a command can stop its work in order and end quietly. The
// process must have asked for SIGPIPE, or the runtime ends it first.
//
// The package imports the standard library only.
package term

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
)

// ErrGone is returned by writes to Out and Err when nobody reads any more.
var ErrGone = errors.New("output closed by its reader")

// DefaultWidth is the width where no terminal tells one.
const DefaultWidth = 80

// Streams are the three streams of the process and what is known about them.
type Streams struct {
	In  io.Reader
	Out io.Writer // data only
	Err io.Writer // everything else

	InTTY, OutTTY, ErrTTY bool

	Width int  // columns of the terminal, DefaultWidth without one
	Color bool // colour is welcome: a terminal, no NO_COLOR, not TERM=dumb
	Dumb  bool // TERM=dumb: no escape sequence at all, not even to redraw a line

	gone    chan struct{}
	in, out *os.File // nil in tests
	held    *held
}

// System returns the streams of the process. environ is consulted for NO_COLOR
// and TERM.
func System(in, out, err *os.File, environ []string) *Streams {
	s := &Streams{In: in, Width: DefaultWidth, gone: make(chan struct{}), in: in, out: out, held: &held{}}
	s.InTTY, s.OutTTY, s.ErrTTY = isTerminal(in), isTerminal(out), isTerminal(err)
	for _, f := range []*os.File{out, err} {
		if w := width(f); w > 0 {
			s.Width = w
			break
		}
	}
	s.Dumb = lookup(environ, "TERM") == "dumb"
	s.Color = s.OutTTY && s.ErrTTY && !s.Dumb && lookup(environ, "NO_COLOR") == ""
	var once sync.Once
	lost := func() { once.Do(func() { close(s.gone) }) }
	s.Out = &pipe{w: out, lost: lost, held: s.held}
	s.Err = &pipe{w: err, lost: func() {}, held: s.held} // messages nobody reads are no reason to stop
	return s
}

// Test returns streams over buffers, as of a process in a pipe.
func Test() (s *Streams, in, out, err *bytes.Buffer) {
	in, out, err = &bytes.Buffer{}, &bytes.Buffer{}, &bytes.Buffer{}
	return &Streams{In: in, Out: out, Err: err, Width: DefaultWidth, gone: make(chan struct{})}, in, out, err
}

// Gone is closed when the reader of Out has gone away.
func (s *Streams) Gone() <-chan struct{} { return s.gone }

// pipe turns the system's ways of saying "nobody reads" into ErrGone.
type pipe struct {
	w    *os.File
	lost func()
	held *held
}

// Write implements io.Writer.
func (p *pipe) Write(b []byte) (int, error) {
	if p.held.keep(p, b) {
		return len(b), nil
	}
	return p.write(b)
}

func (p *pipe) write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if err != nil && isClosedPipe(err) {
		p.lost()
		return n, ErrGone
	}
	return n, err
}

// lookup finds the last value of a variable, as the system would.
func lookup(environ []string, name string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(environ[i], name+"="); ok {
			return v
		}
	}
	return ""
}
