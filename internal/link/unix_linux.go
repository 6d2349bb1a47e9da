package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// DialUnix connects to the socket name in dir, which an agent may have replaced by
// anything. The file is opened as itself (O_PATH|O_NOFOLLOW), must be a socket, and
// is then connected to through /proc/self/fd: no path is resolved between the check
// and the connect, and the length of dir does not matter. A full queue is waited
// for until ctx is done.
func DialUnix(ctx context.Context, dir, name string) (net.Conn, error) {
	file, err := openSocket(dir, name)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", name, err)
	}
	defer func() { _ = file.Close() }()
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "unix", procPath(file))
		if err == nil {
			return conn, nil
		}
		if !errors.Is(err, unix.EAGAIN) {
			var op *net.OpError
			if errors.As(err, &op) {
				err = op.Err // without the path below /proc, which says nothing
			}
			return nil, fmt.Errorf("connect to %s: %w", name, err)
		}
		wait(ctx, queuePause)
	}
}

// queuePause is between two tries when a listener's queue is full.
const queuePause = time.Millisecond

func openSocket(dir, name string) (*os.File, error) {
	at, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = at.Close() }()
	fd, err := unix.Openat(int(at.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = file.Close()
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		_ = file.Close()
		return nil, ErrNotSocket
	}
	return file, nil
}

func openDir(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), dir), nil
}

func procPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// ListenUnix listens on the socket name in dir, of any length, mode 0600, in place
// of whatever has that name. Closing the listener removes it.
func ListenUnix(dir, name string) (net.Listener, error) {
	at, err := openDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	ln, err := listenAt(at, name)
	if err != nil {
		_ = at.Close()
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	return &listener{Listener: ln, dir: at, name: name}, nil
}

func listenAt(at *os.File, name string) (net.Listener, error) {
	if err := unix.Unlinkat(int(at.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return nil, err
	}
	path := procPath(at) + "/" + name
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false) // the number in the path may be another file's by then
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ln.Close()
		return nil, err
	}
	return ln, nil
}

type listener struct {
	net.Listener
	dir  *os.File
	name string
}

// Close implements net.Listener.
func (l *listener) Close() error {
	err := l.Listener.Close()
	if err == nil {
		_ = unix.Unlinkat(int(l.dir.Fd()), l.name, 0)
		_ = l.dir.Close()
	}
	return err
}
