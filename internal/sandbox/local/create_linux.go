package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
)

var _ sandbox.Provider = (*Provider)(nil)

// Create implements sandbox.Provider.
func (p *Provider) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	const op = "local.Create"
	if err := checkNetwork(spec.Network); err != nil {
		return nil, err
	}
	if spec.Runtime != "" {
		return nil, errs.New(op, errs.Usage, "leave the runtime out, or use --provider=docker", "the provider local has no OCI runtimes")
	}
	id, err := identityOf(spec)
	if err != nil {
		return nil, refuseIdentity(op, err)
	}
	if err := p.removeOlder(ctx, spec); err != nil {
		return nil, errs.New(op, errs.Incomplete, "", "remove the sandbox before: %w", err)
	}
	m := maker{spec: spec, identity: id}
	pid1, err := m.create(ctx)
	if err != nil {
		err = fmt.Errorf("create sandbox: %w", err)
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, errs.New(op, errs.KindOf(ctx.Err()), "", "%w", err)
	case err != nil:
		return nil, unavailable(op, err)
	}
	return &local{id: p.id(spec.Dir), dir: spec.Dir, record: m.record, pid1: pid1}, nil
}

// checkNetwork accepts the network levels. They are the same here: no sandbox has a network
// of its own, and PID 1 captures what its programs dial.
func checkNetwork(level sandbox.Network) error {
	switch task.Network(level) {
	case task.NetworkFull, task.NetworkTrusted, task.NetworkCustom, task.NetworkLink:
		return nil
	}
	return errs.New("local.Create", errs.Usage, "use full, trusted, custom or link", "the provider local has no network level %q", level)
}

// removeOlder removes what the same run has left behind.
func (p *Provider) removeOlder(ctx context.Context, spec sandbox.Spec) error {
	older, err := p.find(map[string]string{
		sandbox.LabelRun: spec.Labels[sandbox.LabelRun], sandbox.LabelState: spec.Labels[sandbox.LabelState],
	})
	if _, here := readRecord(spec.Dir); here == nil {
		older = append(older, spec.Dir)
	}
	for _, dir := range older {
		s, openErr := p.open(dir)
		if openErr == nil {
			openErr = s.Destroy(ctx)
		}
		if !errors.Is(openErr, sandbox.ErrNotFound) {
			err = errors.Join(err, openErr)
		}
	}
	return err
}

// maker makes one sandbox. What it has made by the time of an error it removes.
type maker struct {
	spec     sandbox.Spec
	identity identity
	record   record

	files   []*os.File // inherited from descriptor plan.JobFD on
	opened  []*os.File // all to be closed here
	cgroups []cgroup
}

func (m *maker) create(ctx context.Context) (pid1 *process, err error) {
	defer func() {
		for _, f := range m.opened {
			_ = f.Close()
		}
		if err != nil {
			err = errors.Join(err, m.undo(ctx, pid1))
			pid1 = nil
		}
	}()
	job, err := m.prepare()
	if err != nil {
		return nil, err
	}
	c, err := startInit(m.spec.AgentServer, m.spec.Dir, m.identity, m.files)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := m.adopt(c.pid1); err != nil {
		return c.pid1, err
	}
	return c.pid1, c.run(ctx, job)
}

// prepare writes the record and makes everything that PID 1 inherits.
func (m *maker) prepare() (plan.Job, error) {
	dir := m.spec.Dir
	m.cgroups = planCgroups(m.spec)
	m.record = record{V: recordVersion, Labels: m.spec.Labels, Created: time.Now().UTC(), BootID: bootID()}
	for _, c := range m.cgroups {
		m.record.Cgroups = append(m.record.Cgroups, c.dir)
	}
	for _, mount := range m.spec.Mounts {
		if mount.Kind == sandbox.MountOverlay {
			m.record.Work = append(m.record.Work, mount.Work)
		}
	}
	linkDir := filepath.Join(dir, linkName)
	if err := os.MkdirAll(linkDir, 0o700); err != nil {
		return plan.Job{}, err
	}
	if err := m.record.write(dir); err != nil {
		return plan.Job{}, err
	}
	listener, err := listen(linkDir, wire.SocketName)
	if err != nil {
		return plan.Job{}, fmt.Errorf("listen in %s: %w", linkDir, err)
	}
	m.inherit(listener)
	pl, err := m.plan()
	return plan.Job{Plan: pl, Boot: m.spec.Boot}, err
}

func (m *maker) inherit(f *os.File) {
	m.files, m.opened = append(m.files, f), append(m.opened, f)
}

// plan resolves every path of the host and makes the overlays.
func (m *maker) plan() (plan.Plan, error) {
	var boot wire.Boot
	if err := json.Unmarshal(m.spec.Boot, &boot); err != nil {
		return plan.Plan{}, fmt.Errorf("read the boot configuration: %w", err)
	}
	server, err := filepath.EvalSymlinks(m.spec.AgentServer)
	if err != nil {
		return plan.Plan{}, fmt.Errorf("agent server: %w", err)
	}
	linkDir, err := filepath.EvalSymlinks(filepath.Join(m.spec.Dir, linkName))
	if err != nil {
		return plan.Plan{}, err
	}
	pl := plan.Plan{
		UID: m.spec.AgentUID, GID: m.spec.AgentGID, OneUID: m.identity.oneUID,
		Hostname: "sandbox", Home: boot.Home, Dir: task.WorkspaceDir,
		Server: server, LinkDir: linkDir, NProc: defaultPIDs, ScratchMiB: (3*m.spec.MemoryMiB + 3) / 4, // full of files, there is still room to run
	}
	if pl.Home == "" {
		pl.Home = "/home/agent"
	}
	if m.spec.PIDs > 0 {
		pl.NProc = uint64(m.spec.PIDs)
	}
	for _, dir := range m.spec.ToolDirs {
		source, err := filepath.EvalSymlinks(dir)
		if err != nil || !showable(os.DirFS("/"), source) {
			// It was there, and could be shown, when the Spec was frozen; a tool that is
			// gone is no reason to fail.
			continue
		}
		pl.Mounts = append(pl.Mounts, plan.Mount{Source: source, Target: filepath.Clean(dir), ReadOnly: true})
	}
	for _, mount := range m.spec.Mounts {
		made, err := m.mount(mount)
		if err != nil {
			return plan.Plan{}, fmt.Errorf("mount %s: %w", mount.Target, err)
		}
		pl.Mounts = append(pl.Mounts, made)
	}
	return pl, nil
}

func (m *maker) mount(mount sandbox.Mount) (plan.Mount, error) {
	source, err := filepath.EvalSymlinks(mount.Source)
	if err != nil {
		return plan.Mount{}, err
	}
	if !filepath.IsAbs(source) || !filepath.IsAbs(mount.Target) {
		return plan.Mount{}, errors.New("not an absolute path")
	}
	made := plan.Mount{Target: filepath.Clean(mount.Target), ReadOnly: mount.ReadOnly}
	switch mount.Kind {
	case sandbox.MountBind:
		made.Source = source
	case sandbox.MountOverlay:
		if m.identity.oneUID {
			return plan.Mount{}, errors.New("an overlay needs root")
		}
		mount.Source = source
		f, err := overlay(mount)
		if err != nil {
			return plan.Mount{}, err
		}
		made.FD = len(m.files) - 1 // after the listener
		m.inherit(f)
	default:
		return plan.Mount{}, fmt.Errorf("unknown kind %q", mount.Kind)
	}
	return made, nil
}

// adopt puts PID 1, which waits for its job meanwhile, into the record and its
// cgroups.
func (m *maker) adopt(pid1 *process) error {
	start, err := startTime(pid1.pid)
	if err != nil {
		return err
	}
	m.record.PID, m.record.Start = pid1.pid, start
	if err := m.record.write(m.spec.Dir); err != nil {
		return err
	}
	held, err := joinCgroups(m.cgroups, pid1.pid)
	if m.record.Unheld = unheld(m.spec, held); err != nil || m.record.Unheld == nil {
		return err
	}
	return m.record.write(m.spec.Dir)
}

// undo removes everything that was made, also when ctx is done.
func (m *maker) undo(ctx context.Context, pid1 *process) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyTimeout)
	defer cancel()
	s := &local{dir: m.spec.Dir, record: m.record, pid1: pid1}
	return s.destroy(ctx)
}
