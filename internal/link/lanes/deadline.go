package lanes

import (
	"sync"
	"time"
)

// past is a deadline that has passed.
func past() time.Time { return time.Unix(1, 0) }

// deadline tells waiters when it has passed. The zero deadline never does.
type deadline struct {
	mu    sync.Mutex // guards what follows
	timer *time.Timer
	over  chan struct{} // closed when it has passed; nil while nobody has asked
	done  bool
	turn  int // of set: a timer that fires late is one of an earlier turn
}

// set makes t the deadline; the zero time is none. Who waits already is told.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.done {
		d.over, d.done = nil, false
	}
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		d.pass()
		return
	}
	turn := d.turn
	d.timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.turn == turn {
			d.pass()
		}
	})
}

// pass is called with mu held.
func (d *deadline) pass() {
	if d.over == nil {
		d.over = make(chan struct{})
	}
	close(d.over)
	d.done = true
}

// passed is closed when the deadline has passed.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over == nil {
		d.over = make(chan struct{})
	}
	return d.over
}
