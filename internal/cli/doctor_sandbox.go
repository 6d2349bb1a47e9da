package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/doctor"
	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/sandbox/docker"
	"github.com/Insights/insightscli/internal/selftest"
	"github.com/Insights/insightscli/internal/task"
)

// lookInside makes sandboxes as a run would and tests them.
func (o *doctorOptions) lookInside(ctx context.Context) ([]doctor.Report, error) {
	c, err := o.app.config(o.settings)
	if err != nil {
		return doctor.Unreadable(err), nil
	}
	name, err := c.ChooseProvider()
	if err != nil {
		return nil, err
	}
	if name == config.ProviderModal || name == config.ProviderModalDocker {
		return nil, usageError("--sandbox tests sandboxes of this machine: use --provider=docker or --provider=local")
	}
	s, err := o.app.openState(ctx, c)
	if err != nil {
		return nil, err
	}
	me, err := owner.Acquire(ctx, s.dir)
	if err != nil {
		return nil, err
	}
	options, err := o.app.tested(ctx, s, name)
	if err == nil {
		options.Owner, options.State = me.Label(), s.db.ID
		var reports []doctor.Report
		reports, err = selftest.Run(ctx, options)
		return reports, errors.Join(err, me.Release())
	}
	return nil, errors.Join(err, me.Release())
}

// tested describes the sandboxes of a run that the settings would make.
func (a *app) tested(ctx context.Context, s *state, provider string) (selftest.Options, error) {
	c := s.config
	p := plan{config: c, spec: task.Spec{
		Template: c.Run.Template, Image: c.Run.Image, Runtime: c.Run.Runtime, Network: task.NetworkCustom, Env: map[string]string{},
	}}
	if err := a.place(ctx, &p, provider); err != nil {
		return selftest.Options{}, err
	}
	p.spec.AgentUID, p.spec.AgentGID = agentIDs(os.Getuid(), os.Getgid(), c.Machine)
	return s.testOf(ctx, p.spec)
}

// testOf describes the test of a sandbox like that of a Spec.
func (s *state) testOf(ctx context.Context, spec task.Spec) (selftest.Options, error) {
	box, err := s.providers.of(ctx, spec)
	if err != nil {
		return selftest.Options{}, err
	}
	server, err := s.agentServer(ctx)
	if err != nil {
		return selftest.Options{}, err
	}
	out := selftest.Options{
		Provider: box, Name: spec.Provider, Image: spec.Image, Runtime: spec.Runtime, AgentServer: server,
		UID: spec.AgentUID, GID: spec.AgentGID, ToolDirs: spec.ToolDirs, Path: spec.Env["PATH"], Dir: filepath.Join(s.dir, "run"),
	}
	if engine, is := box.(*docker.Provider); is {
		r, err := engine.Runtime(ctx, spec.Runtime)
		if err != nil {
			return out, err
		}
		out.Foreign = r.Foreign
	}
	return out, nil
}
