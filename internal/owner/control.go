package owner

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

const (
	// maxLine bounds a request, a reply and what a lock file says.
	maxLine = 64 << 10
	// requestBound is how long a peer may take to say what it wants.
	requestBound = 10 * time.Second
	// acceptPause is the wait after a connection could not be accepted.
	acceptPause = 50 * time.Millisecond
)

// Request is the first line of a control connection.
type Request struct {
	Op      string          `json:"op"`
	Run     task.ID         `json:"run,omitempty"`
	Service string          `json:"service,omitempty"`
	Body    json.RawMessage `json:"body,omitempty"` // what else the operation needs
}

// reply is the line that answers a request.
type reply struct {
	OK    bool      `json:"ok"`
	Kind  errs.Kind `json:"kind,omitempty"`
	Error string    `json:"error,omitempty"`
	Hint  string    `json:"hint,omitempty"`
}

// Handler serves one request. The request is accepted when the handler first reads
// from or writes to the connection, or returns nil; an error before that refuses it,
// and the asker gets it with its kind and hint. The connection is closed afterwards.
type Handler func(ctx context.Context, req Request, conn net.Conn) error

// Serve answers control connections until ctx is done, then ends them and waits for
// their handlers. Peers of other users are refused. ready, if not nil, is called
// once others can connect.
func (o *Owner) Serve(ctx context.Context, handlers map[string]Handler, ready func()) error {
	l, err := listen(o.dir, o.ID)
	if err != nil {
		return fileError("Serve", "open the control socket", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait() // after cancel, which ends the handlers
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	if ready != nil {
		ready()
	}
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close() // came too late
			}
			return nil
		case err != nil && isTemporary(err):
			pause(ctx)
		case err != nil:
			_ = l.Close() // it is broken anyway
			return fileError("Serve", "accept a control connection", err)
		default:
			all.Go(func() { serve(ctx, handlers, conn) })
		}
	}
}

// isTemporary reports whether a later Accept may succeed: the peer went away before
// it was accepted, or this process has too many files open just now.
func isTemporary(err error) bool {
	return errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// pause waits a little, so that a fault that stays does not take a whole processor.
func pause(ctx context.Context) {
	t := time.NewTimer(acceptPause)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func serve(ctx context.Context, handlers map[string]Handler, conn net.Conn) {
	defer func() { _ = conn.Close() }() // the peer may be gone
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := samePeer(conn); err != nil {
		refuse(conn, err)
		return
	}
	_ = conn.SetDeadline(time.Now().Add(requestBound)) // a closed connection fails below
	r := bufio.NewReaderSize(conn, 4096)
	var req Request
	if err := readLine(r, &req); err != nil {
		refuse(conn, err)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	h, ok := handlers[req.Op]
	if !ok {
		refuse(conn, errs.New("owner.Serve", errs.Internal, "use the version of insightscli that started the run",
			"the owner does not know the operation %q", req.Op))
		return
	}
	a := &accepting{Conn: conn, r: r}
	err := h(ctx, req, a)
	if err != nil && !a.accepted() {
		refuse(conn, err)
		return
	}
	_ = a.accept() // the peer may be gone
}

// refuse tells the peer why it is not served; it may be gone already.
func refuse(w io.Writer, err error) {
	_ = writeLine(w, reply{Kind: errs.KindOf(err), Error: err.Error(), Hint: errs.HintOf(err)})
}

// accepting is a connection that accepts the request with its first use.
type accepting struct {
	net.Conn
	r *bufio.Reader

	mu   sync.Mutex
	done bool
	err  error
}

func (a *accepting) accept() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.done {
		a.done, a.err = true, writeLine(a.Conn, reply{OK: true})
	}
	return a.err
}

func (a *accepting) accepted() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.done
}

// Read implements net.Conn.
func (a *accepting) Read(b []byte) (int, error) {
	if err := a.accept(); err != nil {
		return 0, err
	}
	return a.r.Read(b)
}

// Write implements net.Conn.
func (a *accepting) Write(b []byte) (int, error) {
	if err := a.accept(); err != nil {
		return 0, err
	}
	return a.Conn.Write(b)
}

// CloseWrite tells the peer that nothing more will come.
func (a *accepting) CloseWrite() error {
	if err := a.accept(); err != nil {
		return err
	}
	return closeWrite(a.Conn)
}

// Dial connects to the owner of that id and asks for an operation. The connection is
// what follows once it was accepted; a refusal is an error with the kind and hint
// that the owner gave. The error is Unavailable when the owner does not listen.
func Dial(ctx context.Context, dir, id string, req Request) (net.Conn, error) {
	if !task.ID(id).Valid() {
		return nil, errs.New("owner.Dial", errs.NotFound, "", "no such owner: %q", id)
	}
	conn, err := dial(ctx, dir, id)
	if err != nil {
		return nil, errs.New("owner.Dial", errs.Unavailable, "run the command again", "reach the owner of the run: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	c, err := ask(conn, req)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close() // the first error says more
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return c, nil
}

func ask(conn net.Conn, req Request) (net.Conn, error) {
	// Who refuses everything from this user does not wait for what it wants: the
	// write may fail, and the answer is there nevertheless.
	errWrite := writeLine(conn, req)
	r := bufio.NewReaderSize(conn, 4096)
	var rep reply
	if err := readLine(r, &rep); err != nil {
		return nil, errs.New("owner.Dial", errs.Unavailable, "run the command again",
			"the owner of the run did not answer: %w", cmp.Or(errWrite, err))
	}
	if !rep.OK {
		return nil, errs.New("owner.Dial", rep.Kind, rep.Hint, "%s", rep.Error)
	}
	return &buffered{Conn: conn, r: r}, nil
}

// buffered is a connection of which a little was read ahead.
type buffered struct {
	net.Conn
	r *bufio.Reader
}

// Read implements net.Conn.
func (b *buffered) Read(p []byte) (int, error) { return b.r.Read(p) }

// CloseWrite tells the peer that nothing more will come.
func (b *buffered) CloseWrite() error { return closeWrite(b.Conn) }

func closeWrite(conn net.Conn) error {
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

func writeLine(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// readLine reads one bounded line of JSON.
func readLine(r *bufio.Reader, v any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return fmt.Errorf("control line is longer than %d bytes", maxLine)
		}
		if err == nil {
			return json.Unmarshal(line, v)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
