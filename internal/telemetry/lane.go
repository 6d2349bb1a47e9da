package telemetry

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// flushPause is how often what is queued is sent.
	flushPause = 2 * time.Second
	// maxPause is the longest wait between two tries of the same batch.
	maxPause = 30 * time.Second
	// Bounds of a queue, and of one request.
	maxQueued     = 2048
	maxQueuedSize = 8 << 20
	maxBatch      = 512
	maxBatchSize  = 1 << 20
)

// item is one record or span, as it is sent, of the event seq.
type item struct {
	seq  uint64
	data []byte
}

// lane is a bounded queue and the goroutine that empties it to one place. Adding never
// waits.
type lane struct {
	name   string // of what it carries, for people
	pause  time.Duration
	most   int  // items in the queue
	batch  int  // items in one request
	eager  bool // a full batch is sent at once
	send   func(ctx context.Context, items [][]byte) (rejected int, err error)
	mark   func(seq uint64)         // everything up to seq is delivered, or given up
	failed func(l *lane, err error) // the first time that something goes wrong

	from uint64 // what was delivered before
	said int64  // how many dropped items were told of; of the sender's goroutine

	wake chan struct{} // capacity 1

	mu      sync.Mutex // guards the rest
	queue   []item
	size    int
	newest  uint64 // seq of the last item that was offered
	ending  bool   // flush now
	told    bool   // failed was called
	dropped atomic.Int64
	sent    atomic.Int64
}

// add queues the items of one event, or counts those for which there is no room.
func (l *lane) add(seq uint64, all ...[]byte) {
	if len(all) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.newest = seq
	for _, data := range all {
		if len(l.queue) >= l.most || l.size+len(data) > maxQueuedSize {
			l.dropped.Add(1)
			continue
		}
		l.queue = append(l.queue, item{seq, data})
		l.size += len(data)
	}
	if l.eager && len(l.queue) >= l.batch {
		l.poke()
	}
}

// full reports whether n more items would be dropped, and counts them as such: who asks
// first need not make them.
func (l *lane) full(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) < l.most {
		return false
	}
	l.dropped.Add(int64(n))
	return true
}

func (l *lane) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// flush has everything sent now, without the wait that follows a failure.
func (l *lane) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = true
	l.poke()
}

// run sends what is queued until ctx is done, or until it was told to flush and nothing
// is left.
func (l *lane) run(ctx context.Context) {
	timer := time.NewTimer(l.pause)
	defer timer.Stop()
	wait := time.Duration(0) // after failures
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.wake:
			if wait > 0 && !l.isEnding() {
				continue // the timer says when to try again
			}
		}
		err := l.drain(ctx)
		if l.isEnding() && (err != nil || l.left() == 0) {
			return
		}
		wait = nextWait(wait, err)
		timer.Reset(max(wait, l.pause))
	}
}

// nextWait is how long to wait after a try.
func nextWait(before time.Duration, err error) time.Duration {
	var refused *refusedError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &refused) && refused.after > 0:
		return refused.after
	}
	return min(max(2*before, flushPause), maxPause)
}

// drain sends batches until there is none, or one fails that may succeed later.
func (l *lane) drain(ctx context.Context) error {
	for {
		batch := l.next()
		if len(batch) == 0 {
			return nil
		}
		data := make([][]byte, len(batch))
		for i, it := range batch {
			data[i] = it.data
		}
		rejected, err := l.send(ctx, data)
		if ctx.Err() != nil && err != nil {
			return err // the end, not a failure
		}
		if err != nil {
			l.tell(err)
			if !lasting(err) {
				return err
			}
			rejected = len(batch)
		}
		l.dropped.Add(int64(rejected))
		l.sent.Add(int64(len(batch) - rejected))
		l.remove(len(batch))
	}
}

// next is the oldest batch. It stays in the queue until it was taken.
func (l *lane) next() []item {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, size := 0, 0
	for n < min(len(l.queue), l.batch) && (n == 0 || size+len(l.queue[n].data) <= maxBatchSize) {
		size += len(l.queue[n].data)
		n++
	}
	return append([]item(nil), l.queue[:n]...)
}

// remove takes the oldest n items out and notes how far the receiver has got: no further
// than before an event of which something is left.
func (l *lane) remove(n int) {
	l.mu.Lock()
	for _, it := range l.queue[:n] {
		l.size -= len(it.data)
	}
	seq := l.newest
	if n < len(l.queue) {
		seq = l.queue[n].seq - 1
	}
	l.queue = append(l.queue[:0:0], l.queue[n:]...)
	l.mu.Unlock()
	if l.mark != nil {
		l.mark(seq)
	}
}

// tell says what goes wrong, once.
func (l *lane) tell(err error) {
	l.mu.Lock()
	first := !l.told
	l.told = true
	l.mu.Unlock()
	if first && l.failed != nil {
		l.failed(l, err)
	}
}

func (l *lane) isEnding() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ending
}

// left is how many items wait.
func (l *lane) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}
