package mcp

import (
	"bufio"
	"bytes"
	"errors"
)

// messages reads the lines of a server's output that may be messages: some programs
// greet on the stream that they should keep for the protocol.
type messages struct {
	in     *bufio.Reader
	inside bool // of a line that is given
}

// Read implements io.Reader.
func (m *messages) Read(p []byte) (int, error) {
	for {
		first, err := m.in.Peek(1)
		if err != nil {
			return 0, err
		}
		if m.inside || first[0] == '{' || first[0] == '[' {
			break
		}
		if err := m.skip(); err != nil {
			return 0, err
		}
	}
	m.inside = true
	line, err := m.in.Peek(min(m.in.Buffered(), len(p)))
	if err != nil {
		return 0, err
	}
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line, m.inside = line[:i+1], false
	}
	return m.in.Discard(copy(p, line))
}

// skip reads to the end of the line.
func (m *messages) skip() error {
	for {
		_, err := m.in.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
