package telemetry

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

const (
	// maxAge is how long what was not delivered is kept for later.
	maxAge = 24 * time.Hour
	// maxLater is how many runs one call of Deliver looks at.
	maxLater = 100
)

// Later says how to deliver what runs that are over have left.
type Later struct {
	Dir string // as in Options
	// Options returns what New needs for a run; ok is false for one that is not over, or of
	// which nothing can be delivered now.
	Options func(ctx context.Context, run task.ID) (o Options, ok bool)
	// Read hands the events of a run to f, from the first one on.
	Read func(ctx context.Context, spec task.Spec, f func(task.Event)) error
}

// Deliver sends what earlier processes could not, the oldest run first, until a receiver
// does not take it or ctx is done. What is too old is forgotten.
func Deliver(ctx context.Context, l Later) {
	for _, file := range left(l.Dir) {
		if ctx.Err() != nil {
			return
		}
		if time.Since(file.at) > maxAge {
			_ = os.Remove(filepath.Join(l.Dir, string(file.run))) // the next one tries again
			continue
		}
		if o, ok := l.Options(ctx, file.run); ok && !deliver(ctx, l, o) {
			return
		}
	}
}

// deliver sends what one run has left, and reports whether all of it was taken.
func deliver(ctx context.Context, l Later, o Options) bool {
	o.Grace, o.Lines, o.Notify = exportTimeout, nil, nil
	r, err := New(ctx, o)
	if r == nil || err != nil {
		return true // another process does, or nothing can be told now
	}
	stop := context.AfterFunc(ctx, r.cancel)
	defer stop()
	if l.Read(ctx, o.Spec, r.Replay) != nil {
		r.over = false // the log cannot be read now
	}
	r.Close()
	return r.Report().Left == 0
}

// leftover is the file of marks of a run.
type leftover struct {
	run task.ID
	at  time.Time
}

// left are the runs of which there are marks, the oldest first.
func left(dir string) []leftover {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // there never were any
	}
	var all []leftover
	for _, e := range entries {
		info, err := e.Info()
		if run := task.ID(e.Name()); err == nil && run.Valid() && len(all) < maxLater {
			all = append(all, leftover{run, info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b leftover) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	return all
}
