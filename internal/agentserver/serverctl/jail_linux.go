package serverctl

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/agentserver/capture"
	"github.com/Insights/insightscli/internal/agentserver/jail"
	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/link/wire"
)

// jailCommands adds the words of a process inside a sandbox.
func jailCommands(table map[string]command) {
	table["serve"] = serveContainer
	table[plan.ArgInit] = serveInit
}

// serveInit is PID 1 of a sandbox of provider `local`. It must not use os/signal: the
// jail has given every signal its default action, which the kernel keeps from PID 1.
func serveInit(ctx context.Context, p Process, _ []string) int { return serve(ctx, p, jail.Init) }

// serveContainer is the entry point of a container.
func serveContainer(ctx context.Context, p Process, _ []string) int {
	// Before the jail, which may take the handlers away again.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return serve(ctx, p, jail.Container)
}

// Memory of PID 1 beside the journal, and how lazily garbage is collected below it:
// output passes through as fresh garbage, so that the default would collect at every
// few megabytes.
const (
	workMemory     = 32 << 20
	captureMemory  = 96 << 20 // of a thousand connections
	defaultJournal = 64 << 20
	garbage        = 200
)

func serve(ctx context.Context, p Process, enter func() (*jail.Jail, error)) int {
	began := time.Now()
	j, err := enter()
	if err != nil {
		say(p.Stderr, "%v", err)
		return 1
	}
	if j == nil {
		return 0 // it was a probe
	}
	log := openLog(wire.ServerLog)
	defer log.close()
	log.Info("jail", "ms", time.Since(began).Milliseconds(), "pid", os.Getpid())
	debug.SetGCPercent(garbage)
	limit := max(j.Boot.JournalMiB<<20, defaultJournal) + workMemory
	if j.Capture != nil {
		limit += captureMemory
	}
	debug.SetMemoryLimit(int64(limit))

	config := agentserver.Config{
		Boot: j.Boot, Starter: j.Starter(newReaper()), Drivers: Drivers(), Log: log.Logger, LogTail: log.tail,
		Self: []string{wire.ServerPath}, Began: began, OnlyFromOutside: true, Unreachable: jail.LinkGone,
	}
	// Before any process of the agent, which could take the name.
	var listen net.ListenConfig
	if config.GitHub, err = listen.Listen(ctx, "unix", wire.GitHubSocket); err != nil {
		log.Warn("there is no credential for gh", "err", err)
	}
	if j.Capture != nil {
		withCapture(&config, j.Capture)
	}
	server := agentserver.New(config)
	if err := server.Serve(ctx, j.Listener); err != nil {
		log.Error("serve", "err", err)
		say(p.Stderr, "%v", err)
		return 1
	}
	return 0 // what the agent left running ends with PID 1's namespace
}

// withCapture adds what carries the connections of a sandbox without a network.
func withCapture(c *agentserver.Config, sockets *jail.Capture) {
	names, err := rule.Compile(c.Boot.Allow)
	if err != nil {
		// The host has compiled the same rules: it is of another mind only if it is of
		// another version. Then no name is there.
		c.Log.Error("rules", "err", err)
		names = rule.Set{}
	}
	if sockets.Cost != "" {
		c.Notices = append(c.Notices, sockets.Cost)
	}
	log := c.Log
	c.Beside = func(ctx context.Context, s *agentserver.Server) {
		capture.New(capture.Config{
			TCP: sockets.TCP, DNS: sockets.DNS, UDP: sockets.UDP, Local: sockets.Local, Names: names, Log: log,
			Open: func(ctx context.Context) (net.Conn, error) { return s.OpenNow(ctx, wire.ServiceEgress) },
		}).Serve(ctx)
	}
}

// newReaper reaps everything where this is PID 1, and only its own children where a
// container has another init.
func newReaper() *proc.Reaper {
	if os.Getpid() == 1 {
		return proc.NewInit()
	}
	return proc.NewReaper()
}

// seclude keeps processes of the same uid, the agent's among them, from tracing this
// one, reading its memory or taking its descriptors: what it carries is the host's. One
// that was quicker is seen.
func seclude() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	if !bytes.Contains(status, []byte("\nTracerPid:\t0\n")) {
		return errors.New("this process is being traced")
	}
	return nil
}
