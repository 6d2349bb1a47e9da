package agentserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/secret"
)

const (
	// flushTime is how long a server that ends waits for the host to take the rest
	// of the journal.
	flushTime = 5 * time.Second
	// absentTime is how long it waits for a host that is not even listening.
	absentTime = 500 * time.Millisecond
	// orphanTime is between two looks for a host when a sandbox has had its time.
	orphanTime = time.Minute
	// lookTime is between two looks for the way in.
	lookTime = 10 * time.Second
	// recentEvents is how much of what the host has already is kept for outside
	// clients that connect late.
	recentEvents = 4 << 20
)

// Config is what a server needs. Boot, Starter and Drivers must be set.
type Config struct {
	Boot    wire.Boot
	Starter proc.Starter
	Drivers map[string]NewDriver // by agent; "acp:" is every agent that begins so
	Log     *slog.Logger         // nil: nothing is logged
	// Self begins the command line that runs this program as the agent, for
	// transfers. nil: transfers are done by the server itself.
	Self []string
	// Began is when the process began, for Health.BootMs; zero is now.
	Began time.Time
	// OnlyFromOutside turns away peers from within the PID namespace
	// ([link.Server.OnlyFromOutside]).
	OnlyFromOutside bool
	// Unreachable reports that no host can come any more; nil: one always can.
	Unreachable func() bool
	// LookEvery is between two questions to it; zero is ten seconds.
	LookEvery time.Duration
	// GitHub is where programs of the agent ask for the credential of wire.MethodGitHub;
	// nil: nowhere. The server closes it.
	GitHub net.Listener
	// LogTail returns the last lines of Log, for a host whose session does not start.
	LogTail func() []string
	// Beside, where it is set, runs for as long as the server serves, and ends with its
	// context: what else PID 1 does for the agent by streams of the host.
	Beside func(ctx context.Context, s *Server)
	// Notices are told to the people who follow the run, before everything else.
	Notices []string
}

// Server is the agent server of one sandbox.
type Server struct {
	boot      wire.Boot
	starter   proc.Starter
	self      []string
	env       []string
	log       *slog.Logger
	mask      func() *secret.Masker // of what others than the host are shown
	journal   *journal
	session   *session
	link      *link.Server
	reading   reading
	forGH     net.Listener // may be nil
	http      *surface
	follower  newest // of the events service
	following atomic.Int32
	began     time.Time
	upMs      float64 // from the beginning to New

	life context.Context // of the session, which outlives the call that starts it; set by Serve
	kill context.CancelFunc
	stop chan struct{}
	once sync.Once

	killed   chan struct{}
	killOnce sync.Once

	unreachable func() bool
	lookEvery   time.Duration

	bootID  string
	logTail func() []string
	beside  func(ctx context.Context, s *Server)
	notices []string
}

// New returns a server that serves nobody yet.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Began.IsZero() {
		c.Began = time.Now()
	}
	limit, keep := c.Boot.JournalMiB<<20, 0
	if limit <= 0 {
		limit = defaultJournal
	}
	if len(c.Boot.JWTKey) > 0 {
		keep = min(recentEvents, limit/8)
	}
	env, withheld := environ(c.Boot)
	if len(withheld) > 0 {
		c.Log.Warn("the agent does not get", "variables", withheld)
	}
	s := &Server{
		boot: c.Boot, starter: c.Starter, self: c.Self, env: env, log: c.Log, mask: newMask(c.Boot),
		journal: newJournal(limit, keep), began: c.Began, stop: make(chan struct{}), killed: make(chan struct{}),
		unreachable: c.Unreachable, lookEvery: cmp.Or(c.LookEvery, lookTime),
		bootID: rand.Text(), logTail: c.LogTail, beside: c.Beside, notices: c.Notices,
	}
	host := &Host{Starter: c.Starter, Env: s.env, Dir: c.Boot.Dir, Log: c.Log, uid: c.Boot.UID, gid: c.Boot.GID, journal: s.journal, mask: s.mask}
	s.session = newSession(host, c.Drivers)
	s.session.masked = func(text string) string { return s.mask().MaskString(text) }
	s.http, s.forGH = newSurface(s), c.GitHub
	s.link = link.NewServer(c.Boot, map[string]link.Handler{
		wire.ServiceRPC:     s.serveRPC,
		wire.ServiceEvents:  s.serveEvents,
		wire.ServiceExec:    s.serveExec,
		wire.ServiceArchive: s.serveArchive,
		wire.ServiceHTTP:    s.http.serveConn,
	})
	if c.OnlyFromOutside {
		s.link.OnlyFromOutside()
	}
	return s
}

// Open asks the host for one of its services (wire.ServiceLLM, ...). While there is
// no host it waits up to Boot.HostGrace.
func (s *Server) Open(ctx context.Context, service string) (net.Conn, error) {
	return s.link.Open(ctx, service, s.boot.HostGrace)
}

// OpenNow is Open that waits for no host.
func (s *Server) OpenNow(ctx context.Context, service string) (net.Conn, error) {
	return s.link.Open(ctx, service, 0)
}

// Stop makes Serve return. It may be called again.
func (s *Server) Stop() { s.once.Do(func() { close(s.stop) }) }

// Kill makes Serve return without its courtesies: what the host has not taken yet is
// lost, as when a sandbox is destroyed around its server.
func (s *Server) Kill() {
	s.killOnce.Do(func() { close(s.killed) })
	s.Stop()
}

// Serve lets the host in from ln until ctx ends, Stop is called or the host asks for
// it; then it ends the agent, gives the host a moment to take what is in the
// journal, and returns when nothing of it is left running. It is called once.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	ports, err := s.listenPorts(ctx)
	if err != nil {
		return err
	}
	public, err := s.listenHTTP(ctx)
	if err != nil {
		closePorts(ports)
		return err
	}
	inner, hangUp := context.WithCancel(context.WithoutCancel(ctx)) // the host is heard to the end
	defer hangUp()
	s.life, s.kill = context.WithCancel(inner)
	defer s.kill()
	s.upMs = ms(time.Since(s.began)) // before anybody can ask for it
	s.log.Info("serving", "boot_ms", s.upMs, "port", s.boot.HTTPPort)
	var serving sync.WaitGroup
	var failed error
	serving.Go(func() {
		select {
		case <-s.killed:
			s.kill()
		case <-inner.Done():
		}
	})
	serving.Go(func() {
		if err := s.link.Serve(inner, ln); inner.Err() == nil {
			failed = fmt.Errorf("serve the link: %w", err)
			s.Stop()
		}
	})
	serving.Go(func() { s.http.serve(inner, public) })
	if s.forGH != nil {
		serving.Go(func() { s.reading.serve(inner, s.forGH, s.boot.UID) })
	}
	for _, p := range ports {
		serving.Go(func() { p.serve(inner) })
	}
	if s.beside != nil {
		serving.Go(func() { s.beside(inner, s) })
	}
	for _, text := range s.notices {
		_ = s.session.host.Notice(inner, "warn", text) // its error is that of the context
	}
	serving.Go(func() { s.expire(inner) })
	serving.Go(func() { s.giveUp(inner) })

	select {
	case <-ctx.Done():
	case <-s.stop:
	}
	s.log.Info("stopping")
	s.drain(inner)
	s.kill()
	s.session.running.Wait()
	hangUp()
	serving.Wait()
	return failed
}

// expire ends the agent when the sandbox has had its time and no host is there to end
// the run: one whose runner died and that nobody adopts would work on for ever. The
// journal stays, for a host that comes after all.
func (s *Server) expire(ctx context.Context) {
	if s.boot.Lifetime <= 0 {
		return
	}
	t := time.NewTimer(s.boot.Lifetime)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		if host, _ := s.link.Host(); host == nil {
			break
		}
		t.Reset(min(s.boot.Lifetime, orphanTime)) // the host has a clock of its own
	}
	s.log.Warn("the time of the sandbox is over and there is no host")
	s.session.close(ctx)
}

// giveUp ends the server when there is no host and none can come any more: somebody
// has removed the state directory around the sandbox, and nobody knows of it.
func (s *Server) giveUp(ctx context.Context) {
	if s.unreachable == nil {
		return
	}
	t := time.NewTicker(s.lookEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		if host, _ := s.link.Host(); host == nil && s.unreachable() {
			s.log.Warn("no host can come any more")
			s.Kill()
			return
		}
	}
}

// drain ends the agent and waits until the host has everything, bounded.
func (s *Server) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	killed := context.AfterFunc(s.life, cancel)
	defer killed()
	s.session.close(ctx)
	if !s.flush(ctx, absentTime) && (s.following.Load() == 0 || !s.flush(ctx, flushTime)) {
		s.log.Warn("the host has not taken all events")
	}
}

// flush waits up to d for the host to take everything, and reports whether it did.
func (s *Server) flush(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return s.journal.flushed(ctx)
}

// current returns the driver, or nil before the session is ready.
func (s *session) current() Driver {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.driver
}

// errNoSession is the answer of /command before there is a session.
var errNoSession = errors.New("No active session for this run") // the protocol's words
