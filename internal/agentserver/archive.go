package agentserver

import (
	"context"
	"io"
	"net"

	"github.com/Insights/insightscli/internal/agentserver/archive"
	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/link/wire"
)

// The subcommands of the agent server that do a transfer as the agent.
const (
	CommandArchive = "archive" // PATH: a tar stream on standard output
	CommandExtract = "extract" // PATH: a tar stream from standard input
)

// serveArchive moves a tar stream out of or into the sandbox. A process of the
// agent's uid does it; a server that has no program of its own (the memory provider,
// where there is nothing to protect) does it itself.
func (s *Server) serveArchive(ctx context.Context, conn net.Conn) error {
	p := newPiped(s.starter, conn)
	var req wire.Archive
	if err := p.r.Line(&req); err != nil {
		return err
	}
	s.log.Debug("archive", "extract", req.Extract)
	if s.self == nil {
		return p.runHere(ctx, req)
	}
	command := CommandArchive
	if req.Extract {
		command = CommandExtract
	}
	argv := append(append([]string(nil), s.self...), command, req.Path)
	said := &bounded{limit: wire.MaxHello}
	return p.run(ctx, proc.Spec{Argv: argv, Env: s.env}, said, said.String)
}

func (p *piped) runHere(ctx context.Context, req wire.Archive) error {
	ctx, cancel := context.WithCancel(ctx)
	p.work.Go(func() {
		defer cancel() // the host has hung up
		p.receive()
	})
	var err error
	if req.Extract {
		err = archive.Extract(ctx, p.input, req.Path, archive.DefaultLimits())
	} else {
		err = archive.Write(ctx, p.w.To(wire.StreamOutput), req.Path)
	}
	var exit wire.Exit
	if err != nil {
		exit = wire.Exit{Code: 1, Error: err.Error()}
	}
	_ = p.input.Close()
	p.work.Go(func() { _, _ = io.Copy(io.Discard, p.input) })
	return p.finish(exit)
}

// receive queues the host's input until the stream ends.
func (p *piped) receive() {
	defer func() { _ = p.input.Close() }()
	for {
		kind, data, err := p.r.Next()
		switch {
		case err != nil:
			return
		case kind == wire.StreamInput && p.input.Push(data) != nil:
			return
		case kind == wire.StreamEOF:
			_ = p.input.Close()
		}
	}
}
