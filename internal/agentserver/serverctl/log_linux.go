package serverctl

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// maxLog bounds the server's own log; what exceeds it is not written.
const maxLog = 1 << 20

// maxLine bounds one line that is kept in memory.
const maxLine = 1 << 10

// tailLines is how many lines of it are kept in memory, for a host whose session does not
// start.
const tailLines = 20

// serverLog is the server's own log.
type serverLog struct {
	*slog.Logger
	out *capped
}

// openLog makes the log. It is opened before any process of the agent exists, and never
// again by its name. A file that cannot be made is done without.
func openLog(path string) *serverLog {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL | os.O_APPEND | syscall.O_NOFOLLOW
	_ = os.Remove(path) // an image may hold that of the sandbox it was made of
	out := &capped{left: maxLog}
	if f, err := os.OpenFile(path, flags, 0o644); err == nil {
		out.file = f
	}
	return &serverLog{Logger: slog.New(slog.NewTextHandler(out, nil)), out: out}
}

// close ends the log.
func (l *serverLog) close() {
	if l.out.file != nil {
		_ = l.out.file.Close()
	}
}

// tail returns the last lines.
func (l *serverLog) tail() []string {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	return slices.Clone(l.out.last)
}

// capped writes lines to a file until it has written enough, and keeps the last ones.
type capped struct {
	mu   sync.Mutex
	file *os.File // may be nil
	left int
	last []string
}

// Write implements io.Writer: one line, as a handler of package slog writes it.
func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.last) == tailLines {
		c.last = slices.Delete(c.last, 0, 1)
	}
	c.last = append(c.last, strings.TrimSpace(string(p[:min(len(p), maxLine)])))
	if c.left -= len(p); c.left < 0 || c.file == nil {
		return len(p), nil
	}
	return c.file.Write(p)
}
