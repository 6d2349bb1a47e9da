package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
)

// Sandbox is one container.
type Sandbox struct {
	engine  *engine
	id      sandbox.ID
	run     string
	image   string
	agent   string   // "uid:gid" of the agent
	linkDir string   // on this machine; "" where the link is an exec
	volumes []string // overlay volumes
	unheld  []sandbox.Limit
}

var _ sandbox.Sandbox = (*Sandbox)(nil)

// ID implements [sandbox.Sandbox]: the id of the container.
func (s *Sandbox) ID() sandbox.ID { return s.id }

// Transport tells how [Sandbox.Link] reaches PID 1.
func (s *Sandbox) Transport() Transport {
	if s.linkDir == "" {
		return TransportExec
	}
	return TransportSocket
}

// Link implements [sandbox.Sandbox].
func (s *Sandbox) Link(ctx context.Context) (net.Conn, error) {
	if s.linkDir == "" {
		return s.execLink(ctx)
	}
	// PID 1 of a live sandbox listens, and of a new one does so within
	// milliseconds: the engine is asked only when the first try fails.
	conn, err := link.DialUnix(ctx, s.linkDir, wire.SocketName)
	if err == nil {
		return conn, nil
	}
	return s.awaitSocket(ctx)
}

// awaitSocket tries until the socket answers, or the container has ended.
func (s *Sandbox) awaitSocket(ctx context.Context) (net.Conn, error) {
	watch, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	var end sandbox.Exit
	var endErr error
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if end, endErr = s.Wait(watch); endErr == nil {
			close(gone)
		}
	}()
	conn, err := link.AwaitUnix(ctx, s.linkDir, wire.SocketName, gone)
	cancel()
	<-watched
	if err == nil {
		return conn, nil
	}
	if endErr == nil {
		return nil, endedError(end)
	}
	return nil, fmt.Errorf("link to sandbox %s: %w", short(s.id), err)
}

// endedError says that PID 1 is gone and what it said last.
func endedError(end sandbox.Exit) error {
	said := lastLines(end.Output)
	hint := "see the image's platform and whether it can run static programs"
	if said != "" {
		said = ": " + said
		hint = ""
	}
	return errs.New("docker.Link", errs.Internal, hint, "the sandbox ended with code %d%s", end.Code, said)
}

// lastLines puts the last lines of an output on one.
func lastLines(output string) string {
	lines := strings.FieldsFunc(output, func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) > 5 {
		lines = lines[len(lines)-5:]
	}
	return strings.Join(lines, "; ")
}

// Wait implements [sandbox.Sandbox].
func (s *Sandbox) Wait(ctx context.Context) (sandbox.Exit, error) {
	api, err := s.engine.connect(ctx)
	if err != nil {
		return sandbox.Exit{}, err
	}
	done, failed := api.ContainerWait(ctx, string(s.id), container.WaitConditionNotRunning)
	select {
	case end := <-done:
		switch {
		case end.Error == nil:
		case strings.Contains(end.Error.Message, "no such container"): // podman's word for one that was removed
			return sandbox.Exit{Code: -1}, nil
		default:
			return sandbox.Exit{}, fmt.Errorf("wait for sandbox %s: %s", short(s.id), end.Error.Message)
		}
		return sandbox.Exit{Code: int(end.StatusCode), Output: s.engine.lastOutput(ctx, s.id)}, nil
	case err := <-failed:
		switch {
		case cerrdefs.IsNotFound(err):
			return sandbox.Exit{Code: -1}, nil
		case ctx.Err() != nil:
			return sandbox.Exit{}, ctx.Err()
		}
		return sandbox.Exit{}, fmt.Errorf("wait for sandbox %s: %w", short(s.id), err)
	case <-ctx.Done():
		return sandbox.Exit{}, ctx.Err()
	}
}

// lastOutput returns the last output of a container, or "" where there is none to
// be had: it serves error messages only.
func (e *engine) lastOutput(ctx context.Context, id sandbox.ID) string {
	api, err := e.connect(ctx)
	if err != nil {
		return ""
	}
	logs, err := api.ContainerLogs(ctx, string(id), container.LogsOptions{ShowStdout: true, ShowStderr: true, Tail: "100"})
	if err != nil {
		return ""
	}
	defer func() { _ = logs.Close() }()
	var last tail
	_, _ = stdcopy.StdCopy(&last, &last, logs)
	return string(bytes.ToValidUTF8([]byte(last.String()), nil))
}

// Destroy implements [sandbox.Sandbox].
func (s *Sandbox) Destroy(ctx context.Context) error {
	if err := s.engine.removeContainer(ctx, s.id); err != nil {
		return fmt.Errorf("destroy sandbox: %w", err)
	}
	var all []error
	for _, name := range s.volumes {
		all = append(all, s.engine.removeVolume(ctx, name))
	}
	if s.linkDir != "" {
		removeBoot(s.linkDir)
	}
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("destroy sandbox: %w", err)
	}
	return nil
}
