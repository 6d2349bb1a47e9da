// Command insightscli runs background agents in sandboxes.
package main

import (
	"context"
	"io"
	"log"
	"os"

	"github.com/Insights/insightscli/internal/agentserver/serverctl"
	"github.com/Insights/insightscli/internal/cli"
	_ "github.com/Insights/insightscli/internal/firstgc" // before everything else
	"github.com/Insights/insightscli/internal/term"
)

func main() {
	if serverctl.Acts(os.Args[0]) { // mounted into a sandbox in the agent server's place
		os.Exit(serverctl.Main(context.Background(), serverctl.Process{
			Args: os.Args, Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		}))
	}
	// net/http tells there what it thinks of a server's words; the terminal is not for that.
	log.SetOutput(io.Discard)
	ctx, force, stop := cli.Signals(context.Background())
	dir, _ := os.Getwd() // a directory that is gone is noticed by whoever needs one
	code := cli.Main(ctx, cli.Process{
		Streams: term.System(os.Stdin, os.Stdout, os.Stderr, os.Environ()),
		Args:    os.Args[1:], Environ: os.Environ(), Dir: dir, Force: force,
	})
	stop()
	os.Exit(code)
}
