package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/egress"
	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
)

// box is one sandbox, its link, and the probe in it.
type box struct {
	name string
	run  task.ID
	key  link.HostKey
	boot wire.Boot
	spec sandbox.Spec

	sandbox sandbox.Sandbox
	client  *agent.Client
	gate    *egress.Gate
	probe   *probe
	// egress answers the connections of the sandbox; nil: the gate of an empty policy.
	egress link.Handler

	mu     sync.Mutex // guards denied
	denied []task.Denied
}

// newBox prepares a sandbox with one small repository.
func newBox(o Options, name string) (*box, error) {
	run := task.NewID()
	key, err := link.NewKeys(string(run))
	if err != nil {
		return nil, err
	}
	b := &box{name: name, run: run, key: key}
	b.boot = wire.Boot{
		V: wire.Version, Run: string(run), Task: string(task.NewID()), Team: 1, User: 1,
		HostKey: key.Public(), Secret: key.Secret, UID: o.UID, GID: o.GID,
		Home: "/home/agent", Dir: task.WorkspaceDir, Env: map[string]string{}, Network: string(task.NetworkCustom),
	}
	if o.Path != "" {
		b.boot.Env["PATH"] = o.Path
	}
	if c, able := o.Provider.(sandbox.Capturer); able {
		b.boot.Capture = c.Captures(sandbox.Network(task.NetworkCustom))
	}
	b.spec = sandbox.Spec{
		Name: "selftest-" + name, Image: o.Image, Runtime: o.Runtime, Network: sandbox.Network(task.NetworkCustom),
		AgentUID: o.UID, AgentGID: o.GID, AgentServer: o.AgentServer, ToolDirs: o.ToolDirs,
		Dir: filepath.Join(o.Dir, string(run)),
		Labels: map[string]string{
			sandbox.LabelRun: string(run), sandbox.LabelTask: b.boot.Task, sandbox.LabelOwner: o.Owner, sandbox.LabelState: o.State,
		},
	}
	b.spec.Mounts = []sandbox.Mount{{Kind: sandbox.MountBind, Source: b.hostRepo(), Target: repoDir}}
	return b, nil
}

// open makes the sandbox, and starts the probe in it through the service for commands.
func (b *box) open(ctx context.Context, p sandbox.Provider) error {
	if err := b.makeDirs(); err != nil {
		return err
	}
	boot, err := json.Marshal(b.boot)
	if err != nil {
		return err
	}
	spec := b.spec
	spec.Boot = boot
	if b.sandbox, err = p.Create(ctx, spec); err != nil {
		return err
	}
	conn, err := b.sandbox.Link(ctx)
	if err != nil {
		return err
	}
	if b.egress == nil {
		b.gate = egress.New(egress.Config{Set: rule.Set{}, Run: b.run, OnDenied: b.refused})
		b.egress = b.gate.ServeConn
	}
	if b.client, err = agent.Connect(ctx, conn, b.key, map[string]link.Handler{wire.ServiceEgress: b.egress}); err != nil {
		return err
	}
	b.probe = startProbe(ctx, b.client)
	return nil
}

// makeDirs makes the directories of the run. The repository is the agent's.
func (b *box) makeDirs() error {
	for _, dir := range []string{filepath.Join(b.spec.Dir, "link"), b.hostRepo()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make the run's directory: %w", err)
		}
	}
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(b.hostRepo(), b.spec.AgentUID, b.spec.AgentGID)
}

// close ends everything and removes it.
func (b *box) close(ctx context.Context) error {
	if b.probe != nil {
		b.probe.stop()
	}
	var all []error
	if b.client != nil {
		_ = b.client.Close() // the sandbox goes with or without it
	}
	if b.sandbox != nil {
		all = append(all, b.sandbox.Destroy(ctx))
	}
	if b.gate != nil {
		b.gate.Close()
	}
	return errors.Join(append(all, os.RemoveAll(b.spec.Dir))...)
}

func (b *box) refused(d task.Denied) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denied = append(b.denied, d)
}

// refusals are the addresses that the host has refused.
func (b *box) refusals() map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]bool{}
	for _, d := range b.denied {
		all[d.Host+":"+strconv.Itoa(d.Port)] = true
	}
	return all
}

// probe is a running probe.
type probe struct {
	in     *io.PipeWriter
	cancel context.CancelFunc
	ended  chan struct{}

	asking  sync.Mutex // one question at a time
	answers *json.Decoder
}

// startProbe starts a probe that lives until stop.
func startProbe(ctx context.Context, c *agent.Client) *probe {
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &probe{in: inWrite, cancel: cancel, ended: make(chan struct{}), answers: json.NewDecoder(outRead)}
	go func() {
		defer close(p.ended)
		code, err := c.Exec(ctx, wire.Command{Argv: []string{wire.ServerPath, wire.ProbeWord}}, agent.Stdio{In: inRead, Out: outWrite})
		if err == nil {
			err = fmt.Errorf("the probe ended with code %d", code)
		}
		outWrite.CloseWithError(err)
		inRead.CloseWithError(err)
	}()
	return p
}

// stop ends the probe, which takes back what it has done.
func (p *probe) stop() {
	_ = p.in.Close()
	p.cancel()
	<-p.ended
}

// ask puts one question to the probe.
func (p *probe) ask(ctx context.Context, op string, args, result any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	line, err := json.Marshal(wire.ProbeRequest{Op: op, Args: raw})
	if err != nil {
		return err
	}
	p.asking.Lock()
	defer p.asking.Unlock()
	stop := context.AfterFunc(ctx, p.cancel)
	defer stop()
	var answer wire.ProbeAnswer
	if _, err = p.in.Write(append(line, '\n')); err == nil {
		err = p.answers.Decode(&answer)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%s: %w", op, err)
	case answer.Error != "":
		return fmt.Errorf("%s: %s", op, answer.Error)
	case result == nil:
		return nil
	}
	return json.Unmarshal(answer.Result, result)
}
