package jail

import (
	"fmt"
	"net"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
	"github.com/Insights/insightscli/internal/link/wire"
)

// Jail is the finished place: what PID 1 serves from. Its Starter method gives the
// way in which every process of the agent is begun.
type Jail struct {
	Boot wire.Boot
	// Listener accepts the host's connections for the link.
	Listener net.Listener
	// Capture is nil unless Boot asks for it.
	Capture *Capture

	walls walls
}

// Capture is where every connection of a sandbox without a network ends, and where its
// names are asked for. The listeners exist before any process of the agent does, so that
// none can take their place.
type Capture struct {
	// TCP are the listeners of connections to other addresses. The first one is that of
	// clients that take it for a proxy, too.
	TCP []*net.TCPListener
	// Local: a connection's own local address is the one that was dialled. Otherwise the
	// kernel has rewritten it, and is asked (SO_ORIGINAL_DST).
	Local bool
	// Cost is what this sandbox does without because its kernel lacks nf_tables, in one
	// line; empty where it does not.
	Cost string

	UDP *net.UDPConn     // names
	DNS *net.TCPListener // names, over TCP
}

// StepError is a failed step of the set-up.
type StepError struct {
	Step plan.Step
	Err  error
}

// Error implements error.
func (e *StepError) Error() string { return fmt.Sprintf("%s: %v", e.Step, e.Err) }

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }

// step wraps err, if any, with the step that it ended.
func step(s plan.Step, err error) error {
	if err == nil {
		return nil
	}
	return &StepError{Step: s, Err: err}
}

// pathError names the path that a system call failed on.
func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", op, path, err)
}
