//go:build !linux

package link

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// maxPath is how long the path of a socket may be on the systems at hand.
const maxPath = 103

// DialUnix connects to the socket name in dir. It refuses anything but a socket.
// A directory with a long name is reached through a short one.
func DialUnix(ctx context.Context, dir, name string) (net.Conn, error) {
	path, done, err := shortPath(dir, name)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", name, err)
	}
	defer done()
	info, err := os.Lstat(filepath.Join(dir, name))
	switch {
	case err != nil:
		return nil, fmt.Errorf("connect to %s: %w", name, err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("connect to %s: %w", name, ErrNotSocket)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", name, err)
	}
	return conn, nil
}

// ListenUnix listens on the socket name in dir, mode 0600, in place of whatever has
// that name.
func ListenUnix(dir, name string) (net.Listener, error) {
	path, done, err := shortPath(dir, name)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	defer done()
	full := filepath.Join(dir, name)
	if err := os.Remove(full); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	ln.SetUnlinkOnClose(false) // the short path is gone by then
	if err := os.Chmod(full, 0o600); err != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	return &listener{ln, full}, nil
}

type listener struct {
	net.Listener
	path string
}

// Close implements net.Listener.
func (l *listener) Close() error {
	err := l.Listener.Close()
	if err == nil {
		_ = os.Remove(l.path)
	}
	return err
}

// shortPath returns a path of the socket that fits into an address. Where the real
// one does not, it leads through a private directory until done is called.
func shortPath(dir, name string) (path string, done func(), err error) {
	path = filepath.Join(dir, name)
	if len(path) <= maxPath {
		return path, func() {}, nil
	}
	short, err := os.MkdirTemp("", "il")
	if err != nil {
		return "", nil, err
	}
	if err := os.Symlink(dir, filepath.Join(short, "d")); err != nil {
		_ = os.RemoveAll(short)
		return "", nil, err
	}
	return filepath.Join(short, "d", name), func() { _ = os.RemoveAll(short) }, nil
}
