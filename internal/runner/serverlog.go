package runner

import (
	"bytes"
	"context"
	"os"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link/wire"
)

const (
	// maxServerLog bounds what is kept of an agent server's own log.
	maxServerLog = 1 << 20
	// serverLogBound is how long a sandbox in trouble may take to give it.
	serverLogBound = 5 * time.Second
)

// keepServerLog saves the agent server's own log beside the run's, before the
// sandbox goes. It is for the runs that need explaining; nothing depends on it.
func (x *execution) keepServerLog(ctx context.Context) {
	if x.client == nil {
		return
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverLogBound)
	defer cancel()
	out := &head{left: maxServerLog}
	code, err := x.client.Exec(bounded, wire.Command{Argv: []string{"cat", wire.ServerLog}, Dir: "/"}, agent.Stdio{Out: out})
	if err != nil || code != 0 {
		return // the link or the log is gone, which the run's error tells
	}
	path := x.runner.c.Store.ServerLogPath(x.spec)
	_ = os.WriteFile(path, x.story.mask().Mask(out.Bytes()), 0o600) // a help, not a record
}

// head keeps the first bytes written to it and drops the rest.
type head struct {
	bytes.Buffer
	left int
}

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	n := min(h.left, len(p))
	h.left -= n
	h.Buffer.Write(p[:n]) // never fails
	return len(p), nil
}
