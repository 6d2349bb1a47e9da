//go:build !linux

package owner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// maxSockPath is what every platform takes; macOS has 104 bytes with the end mark.
const maxSockPath = 100

// shortPath is where the socket really lies: in the state directory if the path is
// short enough, else in a directory of this user's that is made from the state
// directory's name.
func shortPath(dir, id string) string {
	if p := sockPath(dir, id); len(p) <= maxSockPath {
		return p
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(shortRoot, fmt.Sprintf("insightscli-%d-%s", os.Geteuid(), hex.EncodeToString(sum[:6])), id[:8]+sockSuffix)
}

func listen(dir, id string) (net.Listener, error) {
	path := shortPath(dir, id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := private(filepath.Dir(path)); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func dial(ctx context.Context, dir, id string) (net.Conn, error) {
	path := shortPath(dir, id)
	if err := private(filepath.Dir(path)); err != nil {
		return nil, err
	}
	var nd net.Dialer
	return nd.DialContext(ctx, "unix", path)
}
