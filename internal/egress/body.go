package egress

import (
	"bufio"
	"errors"
	"io"
)

// errFull is what a reader says of a line that is longer than its buffer.
var errFull = bufio.ErrBufferFull

// body carries the body of a request.
func (g *Gate) body(p *passage, h *head) error {
	if !h.chunked {
		if h.length == 0 {
			return nil
		}
		return g.buffers.copyN(p.target, p.client, h.length, &p.up)
	}
	for {
		line, err := p.line()
		if err != nil {
			return err
		}
		n, err := chunkSize(line)
		if err != nil {
			return p.badBody()
		}
		if err := p.send(line); err != nil {
			return err
		}
		if n == 0 {
			return p.trailers()
		}
		if err := g.buffers.copyN(p.target, p.client, n, &p.up); err != nil {
			return err
		}
		if line, err = p.line(); err != nil {
			return err
		}
		if string(line) != "\r\n" {
			return p.badBody()
		}
		if err := p.send(line); err != nil {
			return err
		}
	}
}

func (p *passage) badBody() error {
	const reason = "the body of an HTTP request is malformed"
	return p.refuse(page(400, p.place, reason), "%s: %s", p.place, reason)
}

// line reads a short line of a chunked body. It is valid until the next read.
func (p *passage) line() ([]byte, error) {
	line, err := p.client.in.ReadSlice('\n')
	if errors.Is(err, io.EOF) || errors.Is(err, errFull) {
		return nil, p.badBody()
	}
	return line, err
}

// trailers carries the fields behind the last chunk, of which none may be one that decides.
func (p *passage) trailers() error {
	for range maxFields {
		line, err := p.line()
		if err != nil {
			return err
		}
		if string(line) != "\r\n" {
			n := len(line)
			if n < 2 || line[n-2] != '\r' {
				return p.badBody()
			}
			name, _, err := field(line[:n-2])
			if err != nil || decides(name) {
				return p.badBody()
			}
		}
		if err := p.send(line); err != nil || len(line) == 2 {
			return err
		}
	}
	return p.badBody()
}

func decides(name string) bool {
	switch name {
	case "host", "content-length", "transfer-encoding", "upgrade", "connection":
		return true
	}
	return false
}
