package serverctl

import (
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
)

// TestBridgeEndsWithItsInput: that is how an engine tells that its client has gone.
func TestBridgeEndsWithItsInput(t *testing.T) {
	dir := t.TempDir()
	ln, err := link.ListenUnix(dir, wire.SocketName)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	heard := make(chan string, 1)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "hello")
		b, _ := io.ReadAll(conn)
		heard <- string(b)
		_ = conn.Close()
	}()
	p := newProcess(t, "link")
	_, _ = io.WriteString(p.in, "question")
	_ = p.in.Close()
	if code := bridgeTo(t.Context(), p.Process, dir); code != 0 {
		t.Error(code)
	}
	if got := <-heard; got != "question" {
		t.Errorf("%q", got)
	}
}

func TestBridgeEndsWithPID1(t *testing.T) {
	dir := t.TempDir()
	ln, err := link.ListenUnix(dir, wire.SocketName)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "bye")
		_ = conn.Close()
	}()
	p := newProcess(t, "link")
	code := bridgeTo(t.Context(), p.Process, dir)
	if out, _ := p.output(); code != 0 || out != "bye" {
		t.Errorf("%d, %q", code, out)
	}
}

// TestSecludedProcessCannotBeRead: an agent of the same uid must not get at what the
// bridge carries. The kernel shows it by giving the process's files to root.
func TestSecludedProcessCannotBeRead(t *testing.T) {
	if err := seclude(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) })
	if on, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || on != 0 {
		t.Errorf("dumpable: %d, %v", on, err)
	}
}
