package link

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/testenv"
)

func listenUnix(t *testing.T, dir, name string) net.Listener {
	t.Helper()
	ln, err := ListenUnix(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}

// TestDialRefusesASymlink: an agent replaces its socket by a link to another
// listening one (docker.sock, say). The host must not talk to that.
func TestDialRefusesASymlink(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	listenUnix(t, elsewhere, "docker.sock")
	if err := os.Symlink(filepath.Join(elsewhere, "docker.sock"), filepath.Join(dir, wire.SocketName)); err != nil {
		t.Fatal(err)
	}
	if conn, err := DialUnix(t.Context(), dir, wire.SocketName); !errors.Is(err, ErrNotSocket) {
		t.Fatalf("%v, %v", conn, err)
	}
}

// TestDialRefusesASymlinkedDirectory: nor may the directory itself be one.
func TestDialRefusesASymlinkedDirectory(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	listenUnix(t, elsewhere, wire.SocketName)
	linked := filepath.Join(dir, "link")
	if err := os.Symlink(elsewhere, linked); err != nil {
		t.Fatal(err)
	}
	if conn, err := DialUnix(t.Context(), linked, wire.SocketName); err == nil {
		t.Fatal(conn)
	}
}

func TestDialRefusesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "dir"} {
		if _, err := DialUnix(t.Context(), dir, name); !errors.Is(err, ErrNotSocket) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := DialUnix(t.Context(), dir, "nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}

// TestLongDirectory: a socket address holds 107 bytes, a state directory may have
// more.
func TestLongDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 100), strings.Repeat("e", 100))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ln := listenUnix(t, dir, wire.SocketName)
	conn, err := DialUnix(t.Context(), dir, wire.SocketName)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	info, err := os.Stat(filepath.Join(dir, wire.SocketName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	_ = ln.Close()
	if _, err := os.Lstat(filepath.Join(dir, wire.SocketName)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the socket stayed: %v", err)
	}
}

// TestListenReplacesWhatIsThere: a link planted in its place is removed, not
// followed.
func TestListenReplacesWhatIsThere(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	target := filepath.Join(elsewhere, "file")
	if err := os.Symlink(target, filepath.Join(dir, wire.SocketName)); err != nil {
		t.Fatal(err)
	}
	listenUnix(t, dir, wire.SocketName)
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("bound through a symbolic link: %v", err)
	}
	conn, err := DialUnix(t.Context(), dir, wire.SocketName)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

func TestAwaitUnix(t *testing.T) {
	dir := t.TempDir()
	result := make(chan error, 1)
	go func() {
		conn, err := AwaitUnix(t.Context(), dir, wire.SocketName, nil)
		if err == nil {
			_ = conn.Close()
		}
		result <- err
	}()
	listenUnix(t, dir, wire.SocketName)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

func TestAwaitUnixEnds(t *testing.T) {
	dir := t.TempDir()
	gone := make(chan struct{})
	close(gone)
	if _, err := AwaitUnix(t.Context(), dir, "s", gone); !errors.Is(err, ErrClosed) {
		t.Errorf("PID 1 gone: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := AwaitUnix(ctx, dir, "s", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("context done: %v", err)
	}
}

// TestOnlyFromOutsideRefusesThisNamespace: this test's process is, as an agent's
// is, one of the server's own PID namespace.
func TestOnlyFromOutsideRefusesThisNamespace(t *testing.T) {
	testenv.Need(t, "a parent in the PID namespace of the test", os.Getppid() != 0)
	key, boot := testKeys(t)
	dir := t.TempDir()
	ln := listenUnix(t, dir, wire.SocketName)
	s := NewServer(boot, nil)
	s.OnlyFromOutside()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	if _, err := dial(t.Context(), dir, key); !errors.Is(err, ErrHandshake) {
		t.Errorf("let in: %v", err)
	}
	cancel()
	<-done
}
