package selftest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// captureTime bounds the test of one runtime.
const captureTime = time.Minute

// capturedName is allowed in the sandbox of Capture; nobody is asked for it.
const capturedName = "capture.example.com"

// Capture reports why sandboxes like o's cannot have a restricted network: it makes one,
// and sees whether what is dialled inside, by address and by name, arrives at the host over
// the link. Nothing is dialled outside.
func Capture(ctx context.Context, o Options) (err error) {
	work, cancel := context.WithTimeout(ctx, captureTime)
	defer cancel()
	b, err := newBox(o, "capture")
	if err != nil {
		return err
	}
	b.boot.Allow = []string{capturedName}
	var asked asked
	b.egress = asked.serve
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		err = errors.Join(err, b.close(clean))
	}()
	if err := b.open(work, o.Provider); err != nil {
		return err
	}
	const address = "192.0.2.1:443" // of no machine
	for _, at := range []string{address, capturedName + ":443"} {
		var d wire.Dialled
		if err := b.probe.ask(work, wire.ProbeDial, wire.Dial{Address: at}, &d); err != nil {
			return err
		}
		if d.Bytes > 0 || d.Error == "" {
			return fmt.Errorf("a connection to %s was made", at)
		}
	}
	switch {
	case !asked.saw(func(e wire.Egress) bool { return e.Addr == address && !e.Lookup }):
		return errors.New("a connection to an address does not arrive at the host")
	case !asked.saw(func(e wire.Egress) bool { return e.Name == capturedName && !e.Lookup }):
		return errors.New("a connection to a name does not arrive at the host")
	}
	return nil
}

// asked is a host that refuses everything and remembers it.
type asked struct {
	mu  sync.Mutex // guards all
	all []wire.Egress
}

func (a *asked) serve(_ context.Context, conn net.Conn) error {
	line, err := wire.ReadLine(bufio.NewReader(conn), wire.MaxEgressLine)
	if err != nil {
		return err
	}
	var e wire.Egress
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	a.mu.Lock()
	a.all = append(a.all, e)
	a.mu.Unlock()
	answer, err := json.Marshal(wire.EgressVerdict{Reason: "nothing is allowed"})
	if err != nil {
		return err
	}
	_, err = conn.Write(append(answer, '\n'))
	return err
}

func (a *asked) saw(like func(wire.Egress) bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.all {
		if like(e) {
			return true
		}
	}
	return false
}
