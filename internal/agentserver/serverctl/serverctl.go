// Package serverctl is the command line of the agent server, and the place where its
// parts meet: the jail, the server, the drivers. It is a package rather than a main
// so that the CLI can act as the agent server where none is embedded in it.
//
// It decides nothing about a sandbox. Everything it is told comes from the boot file
// or the inherited pipe that the jail reads; its words on the command line are those
// that the providers and the server itself start it with.
package serverctl

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/agentserver/acp"
	"github.com/Insights/insightscli/internal/agentserver/archive"
	"github.com/Insights/insightscli/internal/agentserver/claude"
	"github.com/Insights/insightscli/internal/agentserver/codex"
	"github.com/Insights/insightscli/internal/agentserver/execdriver"
	"github.com/Insights/insightscli/internal/agentserver/probe"
	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/ghshim"
	"github.com/Insights/insightscli/internal/gitguard"
	"github.com/Insights/insightscli/internal/link/wire"
)

// Process is what a process is given.
type Process struct {
	Args                  []string // with the program's name first
	Environ               []string // of the git that it may become
	Stdin, Stdout, Stderr *os.File
}

// command is one word of the command line: what it does with what follows it, and its
// exit code.
type command func(ctx context.Context, p Process, args []string) int

// commands are the portable words; jailCommands adds those of a sandbox.
func commands() map[string]command {
	table := map[string]command{
		"version":                  version,
		"link":                     bridge,
		agentserver.CommandArchive: archiveOut,
		agentserver.CommandExtract: archiveIn,
		wire.ProbeWord:             tryOut,
		probe.HogWord:              useMemory,
	}
	jailCommands(table)
	return table
}

// Acts reports whether a program that was started under the name argv0 is to be the
// agent server, or the git or gh of a sandbox.
func Acts(argv0 string) bool {
	return filepath.Base(argv0) == filepath.Base(wire.ServerPath) || isGit(argv0) || isGH(argv0)
}

func isGH(argv0 string) bool { return filepath.Base(argv0) == filepath.Base(wire.GHPath) }

func isGit(argv0 string) bool { return filepath.Base(argv0) == filepath.Base(wire.GitPath) }

// Drivers are the agents that this build can drive.
func Drivers() map[string]agentserver.NewDriver {
	return map[string]agentserver.NewDriver{
		execdriver.Name: execdriver.New,
		claude.Name:     claude.New,
		codex.Name:      codex.New,
		acp.Prefix:      acp.New,
	}
}

// Main runs the agent server's command line and returns its exit code. Called as git it
// is the git guard, called as gh the gh with the sandbox's credential.
func Main(ctx context.Context, p Process) int {
	// A program that may not be read may not look at itself, but at its path.
	self := []string{"/proc/self/exe", wire.ServerPath}
	switch {
	case len(p.Args) > 0 && isGit(p.Args[0]):
		return gitguard.Run(ctx, gitguard.Process{Args: p.Args[1:], Environ: p.Environ, Stderr: p.Stderr, Self: self})
	case len(p.Args) > 0 && isGH(p.Args[0]):
		return ghshim.Run(ctx, ghshim.Process{Args: p.Args[1:], Environ: p.Environ, Stderr: p.Stderr, Self: self})
	}
	if len(p.Args) < 2 {
		return usage(p)
	}
	run, known := commands()[p.Args[1]]
	if !known {
		return usage(p)
	}
	return run(ctx, p, p.Args[2:])
}

func usage(p Process) int {
	say(p.Stderr, "usage: insights-agent-server serve | link | archive PATH | extract PATH | version")
	return 2
}

// say writes one line for whoever looks at the process's standard error.
func say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", args...)
}

func version(_ context.Context, p Process, _ []string) int {
	say(p.Stdout, "insights-agent-server %s (link %d)", build.Get().Version, wire.Version)
	return 0
}

func archiveOut(ctx context.Context, p Process, args []string) int {
	if len(args) != 1 {
		return usage(p)
	}
	return result(p, archive.Write(ctx, p.Stdout, args[0]))
}

func archiveIn(ctx context.Context, p Process, args []string) int {
	if len(args) != 1 {
		return usage(p)
	}
	return result(p, archive.Extract(ctx, p.Stdin, args[0], archive.DefaultLimits()))
}

// tryOut tries what an agent could, for the self-test of a sandbox.
func tryOut(ctx context.Context, p Process, args []string) int {
	if len(args) != 0 {
		return usage(p)
	}
	return result(p, probe.Run(ctx, probe.Config{In: p.Stdin, Out: p.Stdout, Self: p.Args[0]}))
}

func useMemory(_ context.Context, p Process, args []string) int {
	if len(args) != 1 {
		return usage(p)
	}
	return probe.Hog(args[0])
}

func result(p Process, err error) int {
	if err != nil {
		say(p.Stderr, "%v", err)
		return 1
	}
	return 0
}

// awaitTime bounds how long link waits for a PID 1 that is still starting.
const awaitTime = 10 * time.Second
