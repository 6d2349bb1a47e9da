package link

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"time"
)

// ErrNotSocket is wrapped when something else lies where the socket of PID 1 must
// be: somebody in the sandbox put it there.
var ErrNotSocket = errors.New("not a socket")

// AwaitUnix is DialUnix for a PID 1 that perhaps does not listen yet: it tries
// until the socket answers, ctx is done, or gone is closed, which is how the caller
// tells that PID 1 has ended (nil: never).
func AwaitUnix(ctx context.Context, dir, name string, gone <-chan struct{}) (net.Conn, error) {
	pause := 500 * time.Microsecond // a local sandbox listens within milliseconds
	for {
		conn, err := DialUnix(ctx, dir, name)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			return conn, err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		case <-gone:
			t.Stop()
			return nil, fmt.Errorf("%w: PID 1 has ended", ErrClosed)
		}
		pause = min(2*pause, 20*time.Millisecond)
	}
}
