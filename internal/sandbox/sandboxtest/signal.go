package sandboxtest

import (
	"bytes"
	"strings"
	"sync"
)

// signal is a writer that can be waited on until it has been told a word.
type signal struct {
	word  string
	seen  chan struct{}
	ended chan error // told when the command is over

	mu  sync.Mutex // guards the rest
	buf bytes.Buffer
}

func newSignal(word string) *signal {
	return &signal{word: word, seen: make(chan struct{}), ended: make(chan error, 1)}
}

// Write implements io.Writer.
func (s *signal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := strings.Contains(s.buf.String(), s.word)
	s.buf.Write(p)
	if !before && strings.Contains(s.buf.String(), s.word) {
		close(s.seen)
	}
	return len(p), nil
}

// String returns what was written so far.
func (s *signal) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func (s *signal) wait(l *lab) {
	l.Helper()
	select {
	case <-s.seen:
	case err := <-s.ended:
		l.Fatalf("ended (%v) without printing %q, but %q", err, s.word, s.String())
	case <-l.context().Done():
		l.Fatalf("never printed %q, but %q", s.word, s.String())
	}
}

// then returns a channel that yields name once the word has been seen.
func (s *signal) then(l *lab, name string) <-chan string {
	names := make(chan string, 1)
	ctx := l.context()
	go func() {
		select {
		case <-s.seen:
			names <- name
		case <-ctx.Done():
		}
	}()
	return names
}
