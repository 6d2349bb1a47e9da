// Package probe tries, from inside a sandbox and as the agent, what an agent could try, and
// tells what came of it. It is the sandbox's half of package selftest: it judges nothing.
//
// It is a mode of the agent server's static binary and asks no program, library or file of
// the image for anything, so that it works in any image and an image cannot answer for it.
package probe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/Insights/insightscli/internal/link/wire"
)

// HogWord is the word of the agent server's command line that uses memory.
const HogWord = "probe-memory"

// maxLine bounds one request.
const maxLine = 64 << 10

// Config is what a probe is given.
type Config struct {
	In  io.Reader
	Out io.Writer
	// Self is the program itself, for children.
	Self string
}

// op does one thing; args are those of its request.
type op func(ctx context.Context, args json.RawMessage) (any, error)

// prober is one probe.
type prober struct {
	self  string
	undos []func()
}

// Run answers requests until there are no more, and takes back what it has done.
func Run(ctx context.Context, c Config) error {
	p := &prober{self: c.Self}
	defer p.undo()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ops := p.ops()
	in, out := bufio.NewReader(c.In), json.NewEncoder(c.Out)
	for {
		line, err := wire.ReadLine(in, maxLine)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := out.Encode(answer(ctx, ops, line)); err != nil {
			return err
		}
	}
}

func answer(ctx context.Context, ops map[string]op, line []byte) wire.ProbeAnswer {
	var req wire.ProbeRequest
	if err := json.Unmarshal(line, &req); err != nil {
		return wire.ProbeAnswer{Error: "not a request"}
	}
	do, known := ops[req.Op]
	if !known {
		return wire.ProbeAnswer{Error: fmt.Sprintf("unknown request %q", req.Op)}
	}
	result, err := do(ctx, req.Args)
	var raw json.RawMessage
	if err == nil {
		raw, err = json.Marshal(result)
	}
	if err != nil {
		return wire.ProbeAnswer{Error: err.Error()}
	}
	return wire.ProbeAnswer{Result: raw}
}

// later has something taken back at the end.
func (p *prober) later(f func()) { p.undos = append(p.undos, f) }

func (p *prober) undo() {
	for i := len(p.undos) - 1; i >= 0; i-- {
		p.undos[i]()
	}
}

// with is an op that takes arguments.
func with[T any](do func(ctx context.Context, args T) (any, error)) op {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var args T
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
		return do(ctx, args)
	}
}
