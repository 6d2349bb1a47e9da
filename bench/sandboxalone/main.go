//go:build linux

// Command sandboxalone makes one sandbox of the provider local, runs `true` in it and
// removes it, with nothing else around: no settings, no journal, no events. It is
// what the benchmark compares with bwrap.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/local"
	"github.com/Insights/insightscli/internal/task"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sandboxalone AGENT-SERVER DIR")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sandboxalone:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, server, root string) (err error) {
	id := task.NewID()
	key, err := link.NewKeys(string(id))
	if err != nil {
		return err
	}
	uid := os.Getuid()
	if uid == 0 {
		uid = 1000
	}
	boot, err := json.Marshal(wire.Boot{
		V: wire.Version, Run: string(id), Task: string(id), HostKey: key.Public(), Secret: key.Secret,
		UID: uid, GID: uid, Home: "/home/agent", Dir: task.WorkspaceDir, Network: "link",
	})
	if err != nil {
		return err
	}
	dir := filepath.Join(root, string(id))
	if err := os.MkdirAll(filepath.Join(dir, "link"), 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	box, err := local.New(local.Options{Root: root}).Create(ctx, sandbox.Spec{
		Name: "bench", Labels: map[string]string{sandbox.LabelRun: string(id), sandbox.LabelTask: string(id), sandbox.LabelOwner: "bench", sandbox.LabelState: "bench"},
		Network: "link", AgentUID: uid, AgentGID: uid, Boot: boot, AgentServer: server, Dir: dir,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Destroy(ctx)) }()
	return runTrue(ctx, box, key)
}

func runTrue(ctx context.Context, box sandbox.Sandbox, key link.HostKey) error {
	conn, err := box.Link(ctx)
	if err != nil {
		return err
	}
	c, err := agent.Connect(ctx, conn, key, nil)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	code, err := c.Exec(ctx, wire.Command{Argv: []string{"true"}}, agent.Stdio{})
	if err == nil && code != 0 {
		err = fmt.Errorf("true exited with %d", code)
	}
	return err
}
