// Command insights-agent-server is the sandbox's side of a run: PID 1, or the entry
// point, of every sandbox. It is static and small, and is started by the providers
// only.
package main

import (
	"context"
	"os"

	"github.com/Insights/insightscli/internal/agentserver/serverctl"
)

func main() {
	os.Exit(serverctl.Main(context.Background(), serverctl.Process{
		Args: os.Args, Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}))
}
