package ghapp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/errs"
)

// Session waits on this machine for a person to create an app. Close it.
type Session struct {
	*trade
	h      *handler
	port   string
	close  func()
	served chan error
}

const (
	// readTimeout bounds how long a connection may take for its request.
	readTimeout = 10 * time.Second
	// grace is how long Close lets tabs load the page they asked for.
	grace = 500 * time.Millisecond
	// maxHeader bounds a request; GitHub's has a code and a state.
	maxHeader = 16 << 10
)

// Start checks the options and listens. It talks to nobody yet.
func Start(ctx context.Context, o Options) (*Session, error) {
	t, err := newTrade(o)
	if err != nil {
		return nil, err
	}
	ln, err := listen(ctx, t.o.Port, t.o.Notify)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	s := &Session{trade: t, h: newHandler(t, port), port: port, served: make(chan error, 1)}
	srv := &http.Server{
		Handler: s.h, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, IdleTimeout: readTimeout,
		MaxHeaderBytes: maxHeader,
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.served <- srv.Serve(ln)
	}()
	s.close = sync.OnceFunc(func() {
		s.h.finish(Result{}, errors.New("the session has ended"))
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			_ = srv.Close() // a browser that holds a connection open, just in case
		}
		<-ended
	})
	return s, nil
}

// listen takes the port that is wanted, or any.
func listen(ctx context.Context, port int, notify func(error)) (net.Listener, error) {
	const op = "ghapp.Start"
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err == nil || ctx.Err() != nil {
		return ln, err
	}
	if port != 0 {
		notify(errs.New(op, errs.Conflict, "forward the new port, or end what holds the old one", "port %d is taken; using another: %w", port, err))
		ln, err = lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	}
	if err != nil {
		return nil, errs.New(op, errs.Unavailable, "use --manual, which needs no port", "listen on 127.0.0.1: %w", err)
	}
	return ln, nil
}

// URL is the page to open in a browser.
func (s *Session) URL() string { return "http://localhost:" + s.port + s.h.path }

// Forward is the command that lets a browser on another machine open URL, where host
// is this machine as seen from there.
func (s *Session) Forward(host string) string {
	return "ssh -N -L " + s.port + ":127.0.0.1:" + s.port + " " + host
}

// Wait opens a browser, unless Options.Headless, and returns the app that a person
// creates. It can be called once. The page goes on answering until Close, with the
// outcome. When ctx ends, the listener ends at once.
func (s *Session) Wait(ctx context.Context) (Result, error) {
	const op = "ghapp.Wait"
	timer := time.NewTimer(s.o.Timeout)
	defer timer.Stop()
	opened := s.open()
	for {
		select {
		case code := <-s.h.codes:
			r, err := s.convert(ctx, code)
			s.h.finish(r, err)
			return r, err
		case err := <-opened:
			if opened = nil; err != nil {
				s.o.Notify(err)
			}
		case err := <-s.served:
			return Result{}, errs.New(op, errs.Unavailable, "try again", "serve the page: %w", err)
		case <-timer.C:
			s.Close()
			return Result{}, errs.New(op, errs.Timeout, "create the app again, and click within the time",
				"nobody created the app within %s", s.o.Timeout)
		case <-ctx.Done():
			s.Close()
			return Result{}, interrupted(ctx, op, "", "before the app was created")
		}
	}
}

// open opens a browser. The command may last as long as the browser, so nobody waits
// for it.
func (s *Session) open() <-chan error {
	if s.o.Headless {
		return nil
	}
	opened := make(chan error, 1)
	go func() { opened <- s.o.Open(s.URL()) }()
	return opened
}

// Close ends the listener and waits until it has ended. It may be called more than
// once.
func (s *Session) Close() { s.close() }
