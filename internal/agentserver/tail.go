package agentserver

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// drainTime is how long the output of a process is waited for after its end,
	// where a background child keeps the pipe open.
	drainTime = 2 * time.Second
	// pipeSize is asked for each output pipe: the producer sleeps less often.
	pipeSize = 1 << 20
)

// source is an *os.File or a net.Conn.
type source interface {
	io.ReadCloser
	SetReadDeadline(t time.Time) error
}

// tail reads one output stream of a process to its end: the end of the pipe or,
// where somebody still holds it after the process has ended, the moment when nothing
// has come for drainTime. Time that the reader spends elsewhere, held up by
// backpressure, does not count, and what the process itself had written is always
// taken, however slowly.
type tail struct {
	src source

	mu      sync.Mutex // guards the deadline of src, and ended
	ended   time.Time  // when the process ended; zero while it runs
	blocked time.Duration
	left    int // bytes that the process may have left in the pipe
}

func newTail(src source) *tail { return &tail{src: src, left: pipeSize} }

// end tells that the process has ended.
func (t *tail) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = time.Now()
	_ = t.src.SetReadDeadline(t.ended) // wakes the reader, who then counts
}

// read is Read with a deadline, due; zero is none. It may return 0 and nil before
// due. At the end it returns io.EOF, whatever made it the end.
func (t *tail) read(p []byte, due time.Time) (int, error) {
	begin := time.Now()
	ended, over := t.arm(begin, due)
	if over {
		return 0, io.EOF
	}
	n, err := t.src.Read(p)
	if ended {
		t.blocked += time.Since(begin)
		t.left -= n
	}
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
		return n, nil
	}
	return n, io.EOF
}

// arm sets the deadline of the next read. over means that there shall be none.
func (t *tail) arm(now, due time.Time) (ended, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ended = !t.ended.IsZero(); ended {
		late := t.left <= 0 && now.Sub(t.ended) > drainTime
		if late || t.blocked >= drainTime {
			return ended, true
		}
		if limit := now.Add(drainTime - t.blocked); due.IsZero() || limit.Before(due) {
			due = limit
		}
	}
	_ = t.src.SetReadDeadline(due)
	return ended, false
}
