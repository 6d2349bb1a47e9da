package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/statedb/dberr"
	"github.com/Insights/insightscli/internal/task"
)

// bufferSize is how much of a log is gathered before it is written to the file.
const bufferSize = 1 << 20

// maxLog bounds the log of a run: a sandbox that never stops talking must not fill the
// disk of its host. What the host itself has to say about the run comes after it.
const maxLog = 8 << 30

// Log is the event log of a run, open for appending. There is one at a time: the
// run's owner has it. Its methods may be called at the same time.
//
// An event that Append took is durable after the next Sync that returned nil. When
// the disk is full both fail, nothing that was taken is forgotten, and the next call
// of either tries again. When the disk has failed to sync what it was given, nothing
// is taken any more: the kernel forgets what it could not write.
type Log struct {
	mu      sync.Mutex // guards everything but the syncing of f
	f       *os.File
	buf     []byte // whole lines that are not in the file yet
	size    int64  // bytes in the file, all of whole lines
	seq     uint64
	eventID uint64
	limit   int64 // of the file, for what comes from the sandbox
	closed  bool
	failed  bool  // the last write failed: Append tries it again first
	broken  error // of the first fsync that failed

	syncing sync.Mutex // held during fsync, so that Append goes on meanwhile; guards what follows
	durable int64      // bytes of the file that are on the disk
	entries []string   // directories that got an entry which is not on the disk yet
}

// OpenLog opens the log of a run for its owner, making it if it is missing and
// cutting what a kill or a power cut left torn at its end.
func (s *Store) OpenLog(_ context.Context, rec Record) (*Log, error) {
	f, entries, err := openLogFile(s.LogPath(rec.Spec))
	if err != nil {
		return nil, fileError("OpenLog", "open the log", err)
	}
	l := &Log{f: f, entries: entries, limit: maxLog, buf: make([]byte, 0, bufferSize+bufferSize/8)}
	if err := l.recover(); err != nil {
		_ = f.Close() // the first error says more
		return nil, fileError("OpenLog", "open the log", err)
	}
	return l, nil
}

// openLogFile opens or makes a log. It returns the directories that got a new entry,
// which [Log.Sync] makes durable before the first event.
func openLogFile(path string) (f *os.File, entries []string, err error) {
	f, err = os.OpenFile(path, os.O_RDWR, 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, nil, err
	}
	dir := filepath.Dir(path)
	entries = []string{dir}
	for missing(dir) {
		dir = filepath.Dir(dir)
		entries = append(entries, dir)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, err
	}
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	return f, entries, err
}

func missing(dir string) bool {
	_, err := os.Lstat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// recover finds the end of the log: the last whole line is kept, what follows is
// cut off.
func (l *Log) recover() error {
	info, err := l.f.Stat()
	if err != nil {
		return err
	}
	t, err := readTail(l.f, info.Size())
	if err != nil {
		return err
	}
	if t.end < info.Size() {
		if err := l.f.Truncate(t.end); err != nil {
			return err
		}
		if err := l.f.Sync(); err != nil {
			return err
		}
	}
	l.size, l.seq, l.eventID = t.end, t.seq, t.eventID
	return nil
}

// Last returns the number of the last event in the log, and the last number of the
// agent server's own that is in it; both are 0 when there is none.
func (l *Log) Last() (seq, eventID uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq, l.eventID
}

// Append takes an event, numbered one higher than the last. It is gathered in
// memory, at most about 1 MiB, and readers see it at the latest after the next
// [Log.Sync]. When Append fails it has not taken the event.
func (l *Log) Append(ev task.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return errs.New("journal.Append", errs.Internal, "", "append to the log: %w", os.ErrClosed)
	case l.broken != nil:
		return l.broken
	case ev.Seq != l.seq+1:
		return errs.New("journal.Append", errs.Internal, "", "append to the log: event %d after event %d", ev.Seq, l.seq)
	case ev.EventID != 0 && l.size+int64(len(l.buf)) >= l.limit:
		return errs.New("journal.Append", errs.TaskFailed, "have it write less, or into a file of the sandbox",
			"the run has told more than the %d MiB that its log may hold", l.limit>>20)
	}
	// Before rather than after: an event that was taken must not be refused.
	if len(l.buf) >= bufferSize || l.failed {
		if err := l.flush(); err != nil {
			return err
		}
	}
	l.buf = ev.AppendLine(l.buf)
	l.seq = ev.Seq
	if ev.EventID != 0 {
		l.eventID = ev.EventID
	}
	return nil
}

// flush writes what was gathered. A write that fails half-way is repeated at the
// same place, so that the file never has a hole or a line twice.
func (l *Log) flush() error {
	if len(l.buf) == 0 {
		return nil
	}
	_, err := l.f.WriteAt(l.buf, l.size)
	if l.failed = err != nil; l.failed {
		return fileError("Append", "write the log", err)
	}
	l.size += int64(len(l.buf))
	l.buf = l.buf[:0]
	if cap(l.buf) > 4*bufferSize { // one huge event must not be paid for ever after
		l.buf = make([]byte, 0, bufferSize+bufferSize/8)
	}
	return nil
}

// Flush hands what was gathered to the operating system, where readers see it. It
// is not durable yet.
func (l *Log) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	return l.flush()
}

// Sync makes everything durable that was appended before the call. Append may be
// called meanwhile.
func (l *Log) Sync() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	size, err := l.written()
	if err != nil || size == l.durable {
		return err
	}
	if err := l.commit(); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.broken = fileError("Sync", "write the log", err)
		return l.broken
	}
	l.durable = size
	return nil
}

func (l *Log) commit() error {
	for _, dir := range l.entries {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	l.entries = nil
	return syncData(l.f)
}

// written flushes and returns the size of the file. After Close there is nothing
// more to make durable.
func (l *Log) written() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return l.durable, nil
	case l.broken != nil:
		return 0, l.broken
	}
	err := l.flush()
	return l.size, err
}

// Close makes everything durable and closes the file. A second Close does nothing.
func (l *Log) Close() error {
	err := l.Sync()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return errors.Join(err, l.f.Close())
}

// fileError says what the file system refused about a log.
func fileError(op, doing string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.ENOSPC):
		hint = dberr.HintSpace
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EROFS):
		hint = dberr.HintStateDir
	}
	var known *errs.Error
	if errors.As(err, &known) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return errs.New("journal."+op, errs.Internal, hint, "%s: %w", doing, err)
}
