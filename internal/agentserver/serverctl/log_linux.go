package serverctl

import (
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
)

// maxLog bounds the server's own log; what exceeds it is not written.
const maxLog = 1 << 20

// openLog makes the server's own log. It is opened before any process of the agent
// exists, and never again by its name. A log that cannot be made is done without.
func openLog(path string) (*slog.Logger, func()) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL | os.O_APPEND | syscall.O_NOFOLLOW
	_ = os.Remove(path) // an image may hold that of the sandbox it was made of
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return slog.New(slog.DiscardHandler), func() {}
	}
	return slog.New(slog.NewTextHandler(&capped{w: f, left: maxLog}, nil)), func() { _ = f.Close() }
}

// capped is a writer that stops when it has written enough.
type capped struct {
	mu   sync.Mutex
	w    io.Writer
	left int
}

// Write implements io.Writer.
func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left -= len(p); c.left < 0 {
		return len(p), nil
	}
	return c.w.Write(p)
}
