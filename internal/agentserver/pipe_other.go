//go:build !linux

package agentserver

import (
	"io"
	"net"
	"os"
)

// outputPipe returns both ends of a pipe; our end can be read with a deadline.
// Windows has none for its pipes, so that one that has is put behind it.
func outputPipe() (ours source, child *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	near, far := net.Pipe()
	go func() { // ends with the pipe, which the reader closes or its last writer
		_, _ = io.Copy(far, r)
		_ = far.Close()
	}()
	return &fedPipe{Conn: near, pipe: r}, w, nil
}

// fedPipe is the near end of a pipe that a goroutine feeds.
type fedPipe struct {
	net.Conn
	pipe *os.File
}

// Close implements io.Closer.
func (r *fedPipe) Close() error {
	err := r.Conn.Close()
	_ = r.pipe.Close()
	return err
}
