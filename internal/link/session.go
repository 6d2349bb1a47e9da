package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/Insights/insightscli/internal/link/lanes"
	"github.com/Insights/insightscli/internal/link/wire"
)

const (
	// The windows are how much of a stream a side takes before anybody reads it. What a
	// sandbox may put into the memory of the host is less.
	window       = 4 << 20
	hostWindow   = 1 << 20
	writeTimeout = 60 * time.Second
	// lineTime bounds how long the first line of an accepted stream may take.
	lineTime = 10 * time.Second
	// maxLine bounds the line that names a service, and its answer.
	maxLine = 512
	// maxOpening and maxStreams bound the streams that wait for an answer, and
	// those that the other side has open. The multiplexer's own bound of the
	// former blocks without a context.
	maxOpening = 128
	maxStreams = 256
	// maxEgress is how many more it may have open for the connections of a sandbox, each
	// of which has one; these are lanes.
	maxEgress = 4096
)

// Sentinels of a session.
var (
	// ErrClosed is wrapped when the link is gone.
	ErrClosed = errors.New("the link is closed")
	// ErrRefused is wrapped when the other side does not serve what was asked for.
	ErrRefused = errors.New("refused by the other side")
	// ErrNoHost is the error of a service that no host was there to give.
	ErrNoHost = errors.New("there is no host to ask")
)

// Handler serves one stream that the other side opened. It owns conn; Serve closes
// it when the handler returns. The other side is told "ok" at the handler's first
// Read or Write, or its end without an error; an error before that is told as the
// reason of the refusal. ctx ends with the session. The argument that follows the
// name of the service is [Arg] of conn.
type Handler func(ctx context.Context, conn net.Conn) error

// Session is one authenticated link. All methods may be called at the same time.
type Session struct {
	mux     *yamux.Session
	opening chan struct{} // a slot per stream that waits for its answer

	mu      sync.Mutex // guards carrier
	carrier *lanes.Mux // of the lanes that this side opens; nil before the first
}

// NewSession multiplexes conn, which it owns from now on. Exactly one side is the
// host.
func NewSession(conn net.Conn, host bool) (*Session, error) {
	config := yamux.DefaultConfig()
	config.MaxStreamWindowSize = window
	config.ConnectionWriteTimeout = writeTimeout
	config.LogOutput = io.Discard // a hostile peer could otherwise write to our terminal
	start := yamux.Server
	if host {
		start, config.MaxStreamWindowSize = yamux.Client, hostWindow
	}
	mux, err := start(conn, config)
	if err != nil {
		return nil, fmt.Errorf("start the link: %w", err)
	}
	return &Session{mux: mux, opening: make(chan struct{}, maxOpening)}, nil
}

// Done is closed when the link is gone.
func (s *Session) Done() <-chan struct{} { return s.mux.CloseChan() }

// Close ends the link and all its streams. It may be called again.
func (s *Session) Close() error {
	err := s.mux.Close()
	s.mu.Lock()
	carrier := s.carrier
	s.carrier = nil
	s.mu.Unlock()
	if carrier != nil {
		_ = carrier.Close()
	}
	return err
}

// Open asks the other side for a service: a name, or a name, a space and an
// argument. The stream is ready when Open returns; ctx does not bound it then.
func (s *Session) Open(ctx context.Context, service string) (net.Conn, error) {
	if len(service) >= maxLine || strings.ContainsAny(service, "\r\n") {
		return nil, fmt.Errorf("open a stream: bad service name %q", service)
	}
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return nil, fmt.Errorf("open %s: %w", service, context.Cause(ctx))
	case <-s.Done():
		return nil, fmt.Errorf("open %s: %w", service, ErrClosed)
	}
	conn, err := s.open(ctx, service)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", service, err)
	}
	if err := s.ask(ctx, conn, service); err != nil {
		Reset(conn)
		return nil, fmt.Errorf("open %s: %w", service, err)
	}
	return conn, nil
}

// ask writes the service's name and reads the answer.
func (s *Session) ask(ctx context.Context, conn net.Conn, service string) error {
	release := interruptible(ctx, conn)
	answer, err := exchange(conn, service)
	if release() {
		return context.Cause(ctx)
	}
	switch {
	case err != nil && s.mux.IsClosed():
		return ErrClosed
	case err != nil:
		return err
	case answer == "ok":
		return nil
	}
	reason, isErr := strings.CutPrefix(answer, "err ")
	if !isErr {
		reason = "malformed answer"
	}
	return fmt.Errorf("%w: %s", ErrRefused, printable(reason))
}

func exchange(conn net.Conn, service string) (string, error) {
	if _, err := io.WriteString(conn, service+"\n"); err != nil {
		return "", err
	}
	return readLine(conn)
}

// readLine reads byte by byte: what follows the line belongs to the service.
func readLine(r io.Reader) (string, error) {
	line := make([]byte, 0, 64)
	var b [1]byte
	for len(line) < maxLine {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return string(line), nil
		}
		line = append(line, b[0])
	}
	return "", errors.New("line too long")
}

// printable makes the other side's words safe for a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// Serve answers the streams that the other side opens, each in its own goroutine,
// until the link or ctx ends. It returns when all handlers have; an ended link is
// not an error. ctx ending closes the link, and only then ends the handlers: a stream
// that one of them closes because it has to end must not look whole to the other side.
func (s *Session) Serve(ctx context.Context, services map[string]Handler) error {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	var streams sync.WaitGroup
	defer func() {
		cancel()
		stop()
		streams.Wait()
	}()
	v := &serving{
		services: services, streams: &streams,
		// one more is the carrier's
		all: make(chan struct{}, maxStreams+maxEgress+1), ordinary: make(chan struct{}, maxStreams),
	}
	for {
		conn, err := s.mux.Accept()
		if err != nil {
			_ = s.Close()
			return context.Cause(ctx)
		}
		v.take(life, conn)
	}
}

// serving is what the streams that are served share.
type serving struct {
	services      map[string]Handler
	streams       *sync.WaitGroup
	all, ordinary chan struct{} // slots
	carries       atomic.Bool   // there is a carrier of lanes
}

// take serves a stream in its own goroutine, if there is a slot for it.
func (v *serving) take(ctx context.Context, conn net.Conn) {
	select {
	case v.all <- struct{}{}:
	default:
		Reset(conn)
		return
	}
	v.streams.Go(func() {
		defer func() { <-v.all }()
		v.stream(ctx, conn)
	})
}

// stream serves one stream. Those of services that are no connections of a sandbox take a
// slot of ordinary.
func (v *serving) stream(ctx context.Context, conn net.Conn) {
	defer finish(conn)
	_ = conn.SetReadDeadline(time.Now().Add(lineTime))
	line, err := readLine(conn)
	if err != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	name, arg, _ := strings.Cut(line, " ")
	st := &stream{Conn: conn, arg: arg}
	if name != wire.ServiceEgress && name != serviceLanes {
		select {
		case v.ordinary <- struct{}{}:
			defer func() { <-v.ordinary }()
		default:
			st.refuse("too many streams")
			return
		}
	}
	handle, known := v.services[name]
	switch {
	case name == serviceLanes:
		err = v.carry(ctx, st)
	case !known:
		st.refuse("unknown service " + name)
		return
	default:
		err = handle(ctx, st)
	}
	if err != nil {
		st.refuse(err.Error())
		return
	}
	_ = st.accept()
}

// stream is an accepted stream whose "ok" has perhaps not been said yet.
type stream struct {
	net.Conn
	arg      string
	answered atomic.Bool
	once     sync.Once
	err      error
}

// Arg returns what followed the name of the service on the stream's first line.
func Arg(conn net.Conn) string {
	if st, ok := conn.(*stream); ok {
		return st.arg
	}
	return ""
}

func (st *stream) accept() error { return st.answer("ok\n") }

func (st *stream) refuse(reason string) {
	reason = printable(reason)
	_ = st.answer("err " + reason[:min(len(reason), maxLine-8)] + "\n")
}

// answer says line if nothing has been said yet.
func (st *stream) answer(line string) error {
	if st.answered.Load() {
		return st.err
	}
	st.once.Do(func() {
		_, st.err = io.WriteString(st.Conn, line)
		st.answered.Store(true)
	})
	return st.err
}

// Read implements net.Conn.
func (st *stream) Read(p []byte) (int, error) {
	if err := st.accept(); err != nil {
		return 0, err
	}
	return st.Conn.Read(p)
}

// Write implements net.Conn.
func (st *stream) Write(p []byte) (int, error) {
	if err := st.accept(); err != nil {
		return 0, err
	}
	return st.Conn.Write(p)
}
