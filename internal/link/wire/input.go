package wire

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// Input is PID 1's side of the input window: the bounded queue between the reader
// of an exec stream and the standard input of the process. [Input.Push] never
// blocks; [Input.Read] does, and gives credit for what it took. When the process
// has closed its input, go on reading into [io.Discard].
type Input struct {
	credit func(n int) error

	mu     sync.Mutex // guards the rest
	ready  *sync.Cond
	queue  bytes.Buffer
	closed bool
}

// NewInput returns an empty queue that reports consumed bytes to credit, which is
// [StreamWriter.Credit] or the like.
func NewInput(credit func(n int) error) *Input {
	in := &Input{credit: credit}
	in.ready = sync.NewCond(&in.mu)
	return in
}

// Push queues a copy of p. It refuses what exceeds [InputWindow]. After
// [Input.Close] it drops p.
func (in *Input) Push(p []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.queue.Len()+len(p) > InputWindow {
		return fmt.Errorf("%w: input exceeds its window", ErrFrame)
	}
	if !in.closed {
		in.queue.Write(p)
		in.ready.Broadcast()
	}
	return nil
}

// Close ends the input: Read returns what is queued, then [io.EOF]. It may be
// called again.
func (in *Input) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.ready.Broadcast()
	return nil
}

// Read implements [io.Reader].
func (in *Input) Read(p []byte) (int, error) {
	in.mu.Lock()
	for in.queue.Len() == 0 && !in.closed {
		in.ready.Wait()
	}
	n, err := in.queue.Read(p)
	in.mu.Unlock()
	if err != nil {
		return 0, io.EOF
	}
	return n, in.credit(n)
}
