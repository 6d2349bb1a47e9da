package owner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A socket's path holds 107 bytes, a state directory's may be longer. So sockets are
// bound and dialled through a handle of the directory.

func listen(dir, id string) (net.Listener, error) {
	d, err := os.Open(filepath.Join(dir, subDir))
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }() // read only
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: throughHandle(d, id)})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the handle's number may mean another directory by then
	if err := os.Chmod(sockPath(dir, id), 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func dial(ctx context.Context, dir, id string) (net.Conn, error) {
	d, err := os.Open(filepath.Join(dir, subDir))
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }() // read only
	var nd net.Dialer
	return nd.DialContext(ctx, "unix", throughHandle(d, id))
}

func throughHandle(d *os.File, id string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s%s", d.Fd(), id, sockSuffix)
}

// peerUID asks a socket who is on its other side.
func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
