package agentserver

import (
	"context"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// defaultJournal bounds the journal when Boot does not say.
const defaultJournal = 64 << 20

// frameCost is what a frame takes beside its bytes: the struct, its place in the
// queue, and the rounding of the allocator.
const frameCost = 128

// journal is the queue of frames that are not durable on the host yet.
type journal struct {
	limit int // bytes
	keep  int // bytes of acknowledged frames to keep for late readers of /events

	mu     sync.Mutex // guards the rest
	frames []wire.Frame
	acked  int    // how many of frames, from the front, are acknowledged
	held   int    // bytes of the others
	kept   int    // bytes of the acknowledged
	last   uint64 // number of the newest frame
	done   bool   // FrameDone was written
	added  chan struct{}
	freed  chan struct{}
}

func newJournal(limit, keep int) *journal {
	return &journal{limit: limit, keep: keep}
}

func cost(f *wire.Frame) int { return frameCost + len(f.Method) + len(f.Data) }

// append numbers f and keeps it. It never blocks: wait for room before. Frames after
// the last one, FrameDone, are dropped. It retains f.Data.
func (j *journal) append(f wire.Frame) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.done {
		return
	}
	j.last++
	f.Seq, f.At = j.last, time.Now()
	j.done = f.Type == wire.FrameDone
	j.frames = append(j.frames, f)
	j.held += cost(&f)
	wake(&j.added)
}

// room blocks while the journal is three quarters full, and reports whether it did.
// It returns ctx's error when ctx ends first.
func (j *journal) room(ctx context.Context) (waited bool, err error) {
	for {
		j.mu.Lock()
		if j.held < j.limit/4*3 {
			j.mu.Unlock()
			return waited, nil
		}
		freed := listen(&j.freed)
		j.mu.Unlock()
		waited = true
		select {
		case <-freed:
		case <-ctx.Done():
			return waited, ctx.Err()
		}
	}
}

// after appends to dst up to max frames with a number above seq that are still
// here. If there are none it returns a channel that is closed when there may be.
func (j *journal) after(dst []wire.Frame, seq uint64, max int) ([]wire.Frame, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := 0
	if n := len(j.frames); n > 0 && seq >= j.frames[0].Seq {
		i = int(min(seq-j.frames[0].Seq+1, uint64(n))) // numbers have no gaps
	}
	if rest := j.frames[i:]; len(rest) > 0 {
		return append(dst, rest[:min(len(rest), max)]...), nil
	}
	return dst, listen(&j.added)
}

// ack records that everything up to seq is durable. A number that was never given
// is from nobody honest and is cut to the last one.
func (j *journal) ack(seq uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.acked < len(j.frames) && j.frames[j.acked].Seq <= seq {
		n := cost(&j.frames[j.acked])
		j.held, j.kept = j.held-n, j.kept+n
		j.acked++
	}
	drop := 0
	for drop < j.acked && j.kept > j.keep {
		j.kept -= cost(&j.frames[drop])
		j.frames[drop] = wire.Frame{} // so that its bytes are freed
		drop++
	}
	j.frames, j.acked = j.frames[drop:], j.acked-drop
	wake(&j.freed)
}

// state returns the number of the newest frame, and whether everything has been
// acknowledged.
func (j *journal) state() (last uint64, clean bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last, j.acked == len(j.frames)
}

// first returns the number of the oldest frame that is still here, or of the next one.
func (j *journal) first() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.frames) > 0 {
		return j.frames[0].Seq
	}
	return j.last + 1
}

// flushed blocks until everything has been acknowledged or ctx ends, and reports
// which.
func (j *journal) flushed(ctx context.Context) bool {
	for {
		j.mu.Lock()
		clean, freed := j.acked == len(j.frames), listen(&j.freed)
		j.mu.Unlock()
		if clean {
			return true
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

// listen returns the channel that the next wake closes. It is made only when
// somebody waits.
func listen(c *chan struct{}) <-chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

func wake(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}
