package docker

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
)

// execPause is between two tries to reach a PID 1 that does not listen yet.
const execPause = 25 * time.Millisecond

// execLink makes the link out of the stdio of an exec in the container. PID 1
// speaks first, so the first byte tells that the way to it is open.
func (s *Sandbox) execLink(ctx context.Context) (net.Conn, error) {
	for {
		conn, err := s.tryExec(ctx)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("link to sandbox %s: %w (%w)", short(s.id), ctx.Err(), err)
		}
		running, stateErr := s.running(ctx)
		switch {
		case stateErr != nil:
			return nil, fmt.Errorf("link to sandbox %s: %w", short(s.id), stateErr)
		case !running:
			end, waitErr := s.Wait(ctx)
			if waitErr != nil {
				return nil, waitErr
			}
			return nil, endedError(end)
		}
		if pauseErr := pause(ctx, execPause); pauseErr != nil {
			return nil, fmt.Errorf("link to sandbox %s: %w (%w)", short(s.id), pauseErr, err)
		}
	}
}

// running asks the engine for the state of the container.
func (s *Sandbox) running(ctx context.Context) (bool, error) {
	api, err := s.engine.connect(ctx)
	if err != nil {
		return false, err
	}
	c, err := api.ContainerInspect(ctx, string(s.id))
	if cerrdefs.IsNotFound(err) {
		return false, sandbox.ErrNotFound
	}
	return err == nil && c.State.Running, err
}

func (s *Sandbox) tryExec(ctx context.Context) (net.Conn, error) {
	api, err := s.engine.connect(ctx)
	if err != nil {
		return nil, err
	}
	made, err := api.ContainerExecCreate(ctx, string(s.id), container.ExecOptions{
		User: s.agent, Cmd: []string{wire.ServerPath, "link"},
		AttachStdin: true, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return nil, err
	}
	hijacked, err := api.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return nil, err
	}
	conn := newExecConn(hijacked)
	if err := conn.awaitFirst(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// execConn is the stdio of an exec as a connection. The engine sends standard
// output and error in one stream of frames: a byte for the stream, three of
// padding, four for the length.
type execConn struct {
	net.Conn
	raw    *bufio.Reader
	out    *bufio.Reader // the standard output in raw
	left   uint32        // bytes of the current frame
	stderr tail
}

func newExecConn(h types.HijackedResponse) *execConn {
	c := &execConn{Conn: h.Conn, raw: h.Reader}
	c.out = bufio.NewReaderSize(stdoutOf{c}, 64<<10)
	return c
}

// awaitFirst waits for the first byte, which stays to be read. It is the first of
// the length of PID 1's hello, which is below [wire.MaxHello], and so 0: anything
// else is the engine, which reports an exec that failed as text in the stream.
func (c *execConn) awaitFirst(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	first, err := c.out.Peek(1)
	if !stop() {
		return ctx.Err()
	}
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s link: %s", wire.ServerPath, lastLines(c.stderr.String()))
	case err != nil:
		return err
	case first[0] != 0:
		text, _ := c.out.Peek(min(c.out.Buffered(), maxTail))
		return fmt.Errorf("%s link: %s", wire.ServerPath, lastLines(string(text)))
	}
	return nil
}

// Read implements net.Conn.
func (c *execConn) Read(p []byte) (int, error) { return c.out.Read(p) }

// stdoutOf reads the standard output out of the frames.
type stdoutOf struct{ c *execConn }

// Read implements io.Reader.
func (r stdoutOf) Read(p []byte) (int, error) {
	c := r.c
	for c.left == 0 {
		var header [8]byte
		if _, err := io.ReadFull(c.raw, header[:]); err != nil {
			return 0, err
		}
		size := binary.BigEndian.Uint32(header[4:])
		if header[0] == 1 {
			c.left = size
			continue
		}
		if _, err := io.CopyN(&c.stderr, c.raw, int64(size)); err != nil {
			return 0, err
		}
	}
	n, err := c.raw.Read(p[:min(len(p), int(c.left))])
	c.left -= uint32(n)
	return n, err
}

// copyIn puts the agent server and boot.json into a created container: what a bind
// does where the engine shares the file system. Like the bound directory, the one
// for the link belongs to the agent's uid and is open to nobody else.
func (e *engine) copyIn(ctx context.Context, id sandbox.ID, pl *plan) error {
	api, err := e.connect(ctx)
	if err != nil {
		return err
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := writeFiles(w, pl)
		w.CloseWithError(err) // nil is the end of the stream
		done <- err
	}()
	copyErr := api.CopyToContainer(ctx, string(id), "/", r, container.CopyToContainerOptions{})
	r.CloseWithError(io.ErrClosedPipe)
	if err := <-done; err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return fmt.Errorf("copy agent server: %w", err)
	}
	if copyErr != nil {
		return explain(e.ep, "copy agent server", copyErr)
	}
	return nil
}

func writeFiles(w io.Writer, pl *plan) error {
	tw := tar.NewWriter(w)
	server, err := os.Open(pl.spec.AgentServer)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	info, err := server.Stat()
	if err != nil {
		return err
	}
	dir := tar.Header{Typeflag: tar.TypeDir, Name: wire.LinkDir[1:] + "/", Mode: 0o700, Uid: pl.spec.AgentUID, Gid: pl.spec.AgentGID}
	boot := tar.Header{Typeflag: tar.TypeReg, Name: dir.Name + wire.BootName, Mode: 0o600, Uid: dir.Uid, Gid: dir.Gid, Size: int64(len(pl.boot))}
	// Not readable for the agent: so nobody may trace what it runs of it, from the start.
	program := tar.Header{Typeflag: tar.TypeReg, Name: wire.ServerPath[1:], Mode: 0o711, Size: info.Size()}
	if !pl.facts.shares(pl.spec.Runtime) {
		program.Mode = 0o755 // gVisor runs nothing that it may not read; the program sees to it itself, as it starts
	}
	if err := tw.WriteHeader(&dir); err != nil {
		return err
	}
	if err := tw.WriteHeader(&boot); err != nil {
		return err
	}
	if _, err := tw.Write(pl.boot); err != nil {
		return err
	}
	if err := tw.WriteHeader(&program); err != nil {
		return err
	}
	if _, err := io.Copy(tw, server); err != nil {
		return err
	}
	return tw.Close()
}
