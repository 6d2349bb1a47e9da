package probe

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/link/wire"
)

// The places where one sandbox could find another, beside its addresses.
func files(m wire.Marker) []string {
	return []string{"/tmp/probe-" + m.Name, "/dev/shm/probe-" + m.Name}
}

func abstract(m wire.Marker) string { return "@probe-" + m.Name }

func shared(m wire.Marker) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(m.Name)) // it never fails
	return int(h.Sum32()&0x7fffffff | 1)
}

func check(m wire.Marker) error {
	if !isSandboxName(m.Name) || m.Port < 1 || m.Port > 65535 {
		return fmt.Errorf("marker %q, port %d", m.Name, m.Port)
	}
	return nil
}

// occupy puts a marker wherever another sandbox could find it.
func (p *prober) occupy(_ context.Context, m wire.Marker) (any, error) {
	if err := check(m); err != nil {
		return nil, err
	}
	for _, path := range files(m) {
		if err := os.WriteFile(path, []byte(m.Name), 0o666); err != nil {
			return nil, err
		}
		p.later(func() { _ = os.Remove(path) })
	}
	id, err := unix.SysvShmGet(shared(m), 4096, unix.IPC_CREAT|0o666)
	if err == nil {
		p.later(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	} else if !errors.Is(err, unix.ENOSYS) { // a kernel that has none
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	for _, at := range [][2]string{{"tcp", ":" + strconv.Itoa(m.Port)}, {"unix", abstract(m)}} {
		ln, err := net.Listen(at[0], at[1]) //nolint:noctx // it does not wait
		if err != nil {
			return nil, err
		}
		go greet(ln, m.Name)
		p.later(func() { _ = ln.Close() })
	}
	return nil, nil
}

// greet says the name to everybody, until the listener is closed.
func greet(ln net.Listener, name string) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(name)) // one who has gone misses nothing
		_ = conn.Close()
	}
}

// reach looks for the marker of another sandbox, and returns where it is.
func reach(ctx context.Context, m wire.Marker) (any, error) {
	if err := check(m); err != nil {
		return nil, err
	}
	found := []string{}
	for _, path := range files(m) {
		if text, err := os.ReadFile(path); err == nil && string(text) == m.Name {
			found = append(found, path)
		}
	}
	if _, err := unix.SysvShmGet(shared(m), 0, 0); err == nil {
		found = append(found, "shared memory")
	}
	if conn, err := (&net.Dialer{}).DialContext(ctx, "unix", abstract(m)); err == nil {
		_ = conn.Close()
		found = append(found, abstract(m))
	}
	for _, address := range append([]string{"127.0.0.1", "::1"}, m.Addresses...) {
		at := net.JoinHostPort(address, strconv.Itoa(m.Port))
		if said, _, _ := fetch(ctx, at, "", int64(len(m.Name))); string(said) == m.Name {
			found = append(found, at)
		}
	}
	return found, nil
}
