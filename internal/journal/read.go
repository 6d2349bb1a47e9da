package journal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

const (
	// pollLog is how often a log that is followed is looked at for more.
	pollLog = 5 * time.Millisecond
	// pollState is how often it is asked whether the run is over.
	pollState = 500 * time.Millisecond
)

// Visit takes one event of a log: the stored line with its line feed, and what it
// says. Both are valid during the call only. An error ends the reading.
type Visit func(line []byte, ev task.Event) error

// ReadLog hands every event of a run whose number is higher than after to visit, in
// order, up to the end that the log has now. A log that does not exist yet has no
// events. Lines that cannot be read as events are passed over and counted in the
// error that ReadLog returns at the end.
func (s *Store) ReadLog(ctx context.Context, rec Record, after uint64, visit Visit) error {
	f, err := os.Open(s.LogPath(rec.Spec))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fileError("ReadLog", "read the log", err)
	}
	defer func() { _ = f.Close() }() // read only
	r := newReader(f, after)
	if err := r.drain(ctx, visit); err != nil {
		return err
	}
	return r.damage()
}

// CopyLog writes the lines of a run whose number is higher than after to w, as they are:
// those that [Store.ReadLog] would visit, without decoding them.
func (s *Store) CopyLog(ctx context.Context, rec Record, after uint64, w io.Writer) error {
	f, err := os.Open(s.LogPath(rec.Spec))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fileError("CopyLog", "read the log", err)
	}
	defer func() { _ = f.Close() }() // read only
	r := newReader(f, after)
	if err := r.copyTo(ctx, w); err != nil {
		return err
	}
	return r.damage()
}

// Tail is ReadLog that waits for more. It ends after the finished event, or when
// the run is over and its log has no more: a run whose owner died in the wrong
// moment may lack the event.
func (s *Store) Tail(ctx context.Context, rec Record, after uint64, visit Visit) error {
	f, err := s.waitForLog(ctx, rec)
	if err != nil || f == nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	r := newReader(f, after)
	poll := time.NewTicker(pollLog)
	defer poll.Stop()
	var asked time.Time
	for {
		if err := r.drain(ctx, visit); err != nil {
			return err
		}
		if r.finished {
			return r.damage()
		}
		if time.Since(asked) >= pollState {
			over, err := s.over(ctx, rec.Spec.Run)
			if err != nil {
				return err
			}
			if over { // the finished event is written before the state
				return errors.Join(r.drain(ctx, visit), r.damage())
			}
			asked = time.Now()
		}
		if err := wait(ctx, poll.C); err != nil {
			return err
		}
	}
}

// waitForLog opens the log of a run, which may not have begun. It returns no file
// when the run ended without one.
func (s *Store) waitForLog(ctx context.Context, rec Record) (*os.File, error) {
	poll := time.NewTicker(pollLog)
	defer poll.Stop()
	for {
		f, err := os.Open(s.LogPath(rec.Spec))
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fileError("Tail", "read the log", err)
		}
		if over, err := s.over(ctx, rec.Spec.Run); err != nil || over {
			return nil, err
		}
		if err := wait(ctx, poll.C); err != nil {
			return nil, err
		}
	}
}

func wait(ctx context.Context, c <-chan time.Time) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c:
		return nil
	}
}

func (s *Store) over(ctx context.Context, run task.ID) (bool, error) {
	rec, err := s.Run(ctx, run)
	if errors.Is(err, ErrNotFound) {
		return true, nil // pruned meanwhile
	}
	return rec.State.Terminal(), err
}

// FinishedInLog returns the result of a run whose finished event is the last line
// of its log, and whether it is.
func (s *Store) FinishedInLog(_ context.Context, rec Record) (task.Result, bool, error) {
	var res task.Result
	f, err := os.Open(s.LogPath(rec.Spec))
	if errors.Is(err, fs.ErrNotExist) {
		return res, false, nil
	}
	if err != nil {
		return res, false, fileError("FinishedInLog", "read the log", err)
	}
	defer func() { _ = f.Close() }() // read only
	line, err := lastLine(f)
	if err != nil {
		return res, false, fileError("FinishedInLog", "read the log", err)
	}
	ev, err := parseLine(line)
	if err != nil || ev.Kind != task.KindFinished {
		return res, false, nil
	}
	if json.Unmarshal(ev.Params, &res) != nil || !res.State.Terminal() {
		return task.Result{}, false, nil // not ours: the run has not ended by it
	}
	return res, true, nil
}

// lastLine returns the last whole line of a log, nothing if there is none or it is
// longer than a finished event can be.
func lastLine(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	t, err := readTail(f, info.Size())
	if err != nil || t.seq == 0 || t.end-t.last > maxLine {
		return nil, err
	}
	line := make([]byte, t.end-t.last)
	_, err = f.ReadAt(line, t.last)
	return line, err
}

// parseLine reads a stored line, by the short way if it is in our own form.
func parseLine(line []byte) (task.Event, error) {
	if h, ok := parseHeader(line); ok {
		if ev, ok := h.event(line, nil); ok {
			return ev, nil
		}
	}
	return task.ParseLine(line)
}

// damage is the error for lines that were passed over.
func (r *reader) damage() error {
	if r.bad == 0 {
		return nil
	}
	return errs.New("journal.ReadLog", errs.Incomplete, "the lines that could be read are complete",
		"%d damaged lines of the log were passed over", r.bad)
}
