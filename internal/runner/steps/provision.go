package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/Insights/insightscli/internal/egress/rule"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// AgentHome is the home directory of the agent in every sandbox.
const AgentHome = "/home/agent"

// envToken is the variable that holds the run's access token.
const envToken = "INSIGHTS_PERSONAL_API_KEY"

// ProvisionIn asks for a sandbox.
type ProvisionIn struct {
	Spec   task.Spec       `json:"spec"`
	Name   string          `json:"name"`
	Mounts []sandbox.Mount `json:"mounts"`
}

// ProvisionOut names the sandbox.
type ProvisionOut struct {
	Sandbox sandbox.ID `json:"sandbox"`
	Notices []string   `json:"notices,omitempty"` // what the user must be told
}

// Provision creates the sandbox, labelled with its run. One that an earlier,
// interrupted try left is removed first, by Create: no agent ever ran in it.
func (s *Steps) Provision(ctx context.Context, in ProvisionIn) (ProvisionOut, error) {
	out, _, err := s.Create(ctx, in)
	return out, err
}

// Create is Provision for a caller in this process, who goes on with the sandbox
// itself.
func (s *Steps) Create(ctx context.Context, in ProvisionIn) (ProvisionOut, sandbox.Sandbox, error) {
	p, err := s.Provider(ctx, in.Spec)
	if err != nil {
		return ProvisionOut{}, nil, err
	}
	spec, err := s.sandboxSpec(ctx, p, in)
	if err != nil {
		return ProvisionOut{}, nil, err
	}
	box, err := p.Create(ctx, spec)
	if err != nil {
		return ProvisionOut{}, nil, err
	}
	return ProvisionOut{Sandbox: box.ID(), Notices: unheld(box)}, box, nil
}

func (s *Steps) sandboxSpec(ctx context.Context, p sandbox.Provider, in ProvisionIn) (sandbox.Spec, error) {
	t := in.Spec
	server, err := s.AgentServer(ctx)
	if err != nil {
		return sandbox.Spec{}, err
	}
	boot, err := s.boot(ctx, t, captures(p, t.Network))
	if err != nil {
		return sandbox.Spec{}, err
	}
	dir := s.RunDir(t.Run)
	if err := os.MkdirAll(filepath.Join(dir, "link"), 0o700); err != nil {
		return sandbox.Spec{}, fmt.Errorf("make the run's directory: %w", err)
	}
	return sandbox.Spec{
		Name: in.Name,
		Labels: map[string]string{
			sandbox.LabelRun:   string(t.Run),
			sandbox.LabelTask:  string(t.Task),
			sandbox.LabelOwner: s.Owner,
			sandbox.LabelState: s.Domain,
		},
		Image:       t.Image,
		Runtime:     t.Runtime,
		Network:     sandbox.Network(t.Network),
		CPUs:        t.CPUs,
		MemoryMiB:   t.MemoryMiB,
		AgentUID:    t.AgentUID,
		AgentGID:    t.AgentGID,
		Boot:        boot,
		AgentServer: server,
		Dir:         dir,
		Mounts:      append(s.ownMounts(t), in.Mounts...),
		ToolDirs:    t.ToolDirs,
		Lifetime:    t.Timeout.Std(),
	}, nil
}

// captures reports whether PID 1 captures every connection of a sandbox.
func captures(p sandbox.Provider, level task.Network) bool {
	c, able := p.(sandbox.Capturer)
	return able && c.Captures(sandbox.Network(level))
}

// boot composes what PID 1 is told. The secrets of the run are read here and
// nowhere else on their way into a sandbox.
func (s *Steps) boot(ctx context.Context, t task.Spec, capture bool) ([]byte, error) {
	key, err := s.hostKey(ctx, t.Run)
	if err != nil {
		return nil, err
	}
	env, err := s.environment(ctx, t)
	if err != nil {
		return nil, err
	}
	if !capture {
		addProxies(env, s.Proxies)
	}
	b := wire.Boot{
		V: wire.Version, Run: string(t.Run), Task: string(t.Task), Team: t.Team, User: t.User,
		HostKey: key.Public(), Secret: key.Secret,
		UID: t.AgentUID, GID: t.AgentGID, Home: AgentHome, Dir: t.WorkDir(),
		Env: env, Secrets: append([]string{envToken}, t.Secrets...),
		Network: string(t.Network), Capture: capture, Allow: t.Allow, HostGrace: t.HostGrace.Std(), Lifetime: t.Timeout.Std(),
	}
	if t.Network == task.NetworkFull || t.Network == task.NetworkLink {
		b.Allow = []string{rule.All}
	}
	if s.Services != nil {
		b.Ports = map[string]int{wire.ServiceLLM: wire.PortLLM, wire.ServiceMCP: wire.PortMCP, wire.ServiceAPI: wire.PortAPI}
		if len(repo.Upstreams(t.Repos)) > 0 {
			b.Ports[wire.ServiceGit] = wire.PortGit
		}
	}
	if t.PublishAgent != "" {
		if b.JWTKey, b.JWTKeyID, err = s.JWTKey(ctx); err != nil {
			return nil, err
		}
		b.Env["JWT_PUBLIC_KEY"] = string(b.JWTKey)
	}
	return json.Marshal(b)
}

// environment is what the agent's processes see: who they work for, the run's
// access token, then what the user gave.
func (s *Steps) environment(ctx context.Context, t task.Spec) (map[string]string, error) {
	values, err := s.Secrets.All(ctx, t.Run)
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	shared := shareable(values, t.Secrets)
	for k, v := range t.Env {
		env[k] = secret.Unfold(v, shared)
	}
	for _, name := range t.Secrets {
		v, ok := values[name]
		if !ok {
			return nil, errs.New("steps.environment", errs.Conflict, "start the run again",
				"the value of secret %q is gone", name)
		}
		env[name] = v.Reveal()
	}
	s.ownEnvironment(env, t, values[SecretToken])
	return env, nil
}

// Open attaches to the sandbox of a run. The error wraps sandbox.ErrNotFound when
// it is gone.
func (s *Steps) Open(ctx context.Context, spec task.Spec, id sandbox.ID) (sandbox.Sandbox, error) {
	p, err := s.Provider(ctx, spec)
	if err != nil {
		return nil, err
	}
	return p.Open(ctx, id)
}
