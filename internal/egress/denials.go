package egress

import (
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

const (
	// quiet is the least time between two events of one place.
	quiet = time.Second
	// maxPlaces bounds the places that are told apart; the others are one.
	maxPlaces = 1000
)

// others is the place of the denials that are too many to tell apart.
func others() task.Denied {
	return task.Denied{Host: "other places", Reason: "refused at more places than are told one by one"}
}

// denials tells what was refused: the first of a place at once, and then what has come
// together, once in a while.
type denials struct {
	tell    func(task.Denied)
	telling sync.Mutex // held while tell is called; taken before mu, never while it is held

	mu     sync.Mutex // guards what follows
	places map[task.Denied]*denied
	timer  *time.Timer // set while something waits
	closed bool
}

// denied is one place. Its key has no count.
type denied struct {
	pending int
	last    time.Time
}

func newDenials(tell func(task.Denied)) *denials {
	return &denials{tell: tell, places: map[task.Denied]*denied{}}
}

func (d *denials) add(what task.Denied) {
	if d.tell == nil {
		return
	}
	what.Count = 0
	d.mu.Lock()
	place := d.places[what]
	if place == nil {
		if len(d.places) >= maxPlaces {
			what = others()
		}
		if place = d.places[what]; place == nil {
			place = &denied{}
			d.places[what] = place
		}
	}
	place.pending++
	wait := quiet - time.Since(place.last)
	if wait > 0 && d.timer == nil && !d.closed {
		d.timer = time.AfterFunc(wait, d.flush)
	}
	d.mu.Unlock()
	if wait <= 0 {
		d.flush()
	}
}

// flush tells what is due, and sees to it that the rest will be.
func (d *denials) flush() {
	d.telling.Lock()
	defer d.telling.Unlock()
	for _, what := range d.due() {
		d.tell(what)
	}
}

func (d *denials) due() []task.Denied {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []task.Denied
	var next time.Duration
	now := time.Now()
	for what, place := range d.places {
		if place.pending == 0 {
			continue
		}
		if wait := quiet - now.Sub(place.last); wait > 0 && !d.closed {
			if next == 0 || wait < next {
				next = wait
			}
			continue
		}
		what.Count = place.pending
		place.pending, place.last = 0, now
		out = append(out, what)
	}
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if next > 0 {
		d.timer = time.AfterFunc(next, d.flush)
	}
	return out
}

// close tells everything that waits. Nothing is told later.
func (d *denials) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	if d.tell != nil {
		d.flush()
	}
}
