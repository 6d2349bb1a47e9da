package term

import (
	"os"
	"sync"
)

// maxHeld bounds what is kept while a screen has the terminal, in bytes.
const maxHeld = 1 << 20

// Terminal returns the files of a terminal that a screen can be drawn on: where keys come
// from and where it is shown. Not ok, there is none, or it cannot do it.
func (s *Streams) Terminal() (in, out *os.File, ok bool) {
	ok = s.InTTY && s.OutTTY && !s.Dumb && s.in != nil && s.out != nil
	return s.in, s.out, ok
}

// Hold keeps what is written to Out and Err until release is called, because a screen has
// the terminal; then it is written, in order. Of more than a megabyte the first is kept.
func (s *Streams) Hold() (release func()) {
	if s.held == nil {
		return func() {}
	}
	s.held.mu.Lock()
	s.held.on = true
	s.held.mu.Unlock()
	return s.held.release
}

// held are the writes that wait.
type held struct {
	mu     sync.Mutex // guards the rest, and is held while they are written
	on     bool
	writes []write
	size   int
}

type write struct {
	to   *pipe
	data []byte
}

// keep keeps a write, if writes are kept now.
func (h *held) keep(p *pipe, b []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.on {
		return false
	}
	if h.size += len(b); h.size <= maxHeld {
		h.writes = append(h.writes, write{p, append([]byte(nil), b...)})
	}
	return true
}

func (h *held) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.writes {
		_, _ = w.to.write(w.data) // whoever wrote it was told that it was taken
	}
	h.on, h.writes, h.size = false, nil, 0
}
