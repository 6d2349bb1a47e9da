package agentserver

import (
	"bytes"
	"io"
	"os"
	"sync"
)

// pipeSet makes pipes and remembers the first error, so that one check is enough.
type pipeSet struct {
	err    error
	ours   []io.Closer
	childs []*os.File
}

type inputPipe struct {
	child, write *os.File
}

type outPipe struct {
	child *os.File
	ours  source
}

func (s *pipeSet) input() inputPipe {
	r, w, err := os.Pipe()
	if err != nil {
		s.err = err
		return inputPipe{}
	}
	s.ours, s.childs = append(s.ours, w), append(s.childs, r)
	return inputPipe{child: r, write: w}
}

func (s *pipeSet) output() outPipe {
	r, w, err := outputPipe()
	if err != nil {
		s.err = err
		return outPipe{}
	}
	s.ours, s.childs = append(s.ours, r), append(s.childs, w)
	return outPipe{child: w, ours: r}
}

// started closes the process's ends.
func (s *pipeSet) started() {
	for _, f := range s.childs {
		_ = f.Close()
	}
	s.childs = nil
}

func (s *pipeSet) close() {
	s.started()
	for _, c := range s.ours {
		_ = c.Close()
	}
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	limit int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Write(p[:min(len(p), b.limit-b.buf.Len())])
	return len(p), nil
}

// String returns what was kept, without its line end.
func (b *bounded) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(bytes.TrimSpace(b.buf.Bytes()))
}
