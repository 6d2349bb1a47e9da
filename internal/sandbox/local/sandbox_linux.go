package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
)

// destroyTimeout bounds the removal of a sandbox whose making failed.
const destroyTimeout = 30 * time.Second

// local is one sandbox.
type local struct {
	id     sandbox.ID
	dir    string
	record record
	pid1   *process // nil when it is gone

	reap sync.Once
	code int
}

var _ sandbox.Sandbox = (*local)(nil)

// Open implements sandbox.Provider.
func (p *Provider) Open(ctx context.Context, id sandbox.ID) (sandbox.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dir, err := p.dir(id)
	if err != nil {
		return nil, errs.New("local.Open", errs.NotFound, "", "open sandbox: %w", err)
	}
	s, err := p.open(dir)
	if errors.Is(err, sandbox.ErrNotFound) {
		return nil, errs.New("local.Open", errs.NotFound, "", "open sandbox: %w", err)
	}
	if err != nil {
		return nil, errs.New("local.Open", errs.Internal, "", "open sandbox: %w", err)
	}
	return s, nil
}

func (p *Provider) open(dir string) (*local, error) {
	r, err := readRecord(dir)
	if err != nil {
		return nil, err
	}
	pid1, err := findProcess(r)
	if err != nil {
		return nil, err
	}
	return &local{id: p.id(dir), dir: dir, record: r, pid1: pid1}, nil
}

// List implements sandbox.Provider.
func (p *Provider) List(ctx context.Context, labels map[string]string) ([]sandbox.Info, error) {
	dirs, err := p.find(labels)
	if err != nil {
		return nil, errs.New("local.List", errs.Internal, "", "list sandboxes: %w", err)
	}
	var infos []sandbox.Info
	for _, dir := range dirs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := p.open(dir)
		if err != nil {
			continue // removed meanwhile
		}
		infos = append(infos, sandbox.Info{ID: s.id, Labels: s.record.Labels, Created: s.record.Created, Running: s.running()})
		s.release()
	}
	return infos, nil
}

// find returns the directories in the root whose records carry all the labels. A record
// that cannot be read is not ours to list.
func (p *Provider) find(labels map[string]string) ([]string, error) {
	if p.root == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(p.root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		dir := filepath.Join(p.root, e.Name())
		if r, err := readRecord(dir); err == nil && r.has(labels) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// ID implements sandbox.Sandbox.
func (s *local) ID() sandbox.ID { return s.id }

func (s *local) running() bool { return s.pid1 != nil && !s.pid1.ended() }

// Link implements sandbox.Sandbox. PID 1 has listened since before it was PID 1, so
// there is nothing to wait for.
func (s *local) Link(ctx context.Context) (net.Conn, error) {
	const op = "local.Link"
	if !s.running() {
		return nil, errs.New(op, errs.Internal, "", "the sandbox has ended: %s", lastWords(s.dir))
	}
	conn, err := link.DialUnix(ctx, filepath.Join(s.dir, linkName), wire.SocketName)
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("link to the sandbox: %w", context.Cause(ctx))
	case !s.running():
		return nil, errs.New(op, errs.Internal, "", "the sandbox has ended: %s", lastWords(s.dir))
	}
	return nil, errs.New(op, errs.Internal, "", "link to the sandbox: %w", err)
}

var _ sandbox.Limiter = (*local)(nil)

// Unheld implements sandbox.Limiter.
func (s *local) Unheld() []sandbox.Limit { return s.record.Unheld }

// lastWords is the end of PID 1's output, for an error message.
func lastWords(dir string) string {
	if words := tail(dir); words != "" {
		return words
	}
	return "its first process left no message"
}

// Wait implements sandbox.Sandbox.
func (s *local) Wait(ctx context.Context) (sandbox.Exit, error) {
	if s.pid1 != nil {
		if err := s.pid1.wait(ctx); err != nil {
			return sandbox.Exit{}, err
		}
	}
	return sandbox.Exit{Code: s.collect(), Output: tail(s.dir)}, nil
}

// collect reaps PID 1, which has ended, if it is a child of this process, and
// returns its code. Only a child's is known: -1 is the answer of everybody else,
// and of whoever asks a second time.
func (s *local) collect() int {
	s.reap.Do(func() {
		s.code = -1
		if s.pid1 != nil {
			s.code = s.pid1.reap()
		}
	})
	return s.code
}

// Destroy implements sandbox.Sandbox.
func (s *local) Destroy(ctx context.Context) error {
	if err := s.destroy(ctx); err != nil {
		return errs.New("local.Destroy", errs.Incomplete, "run 'insightscli prune' later", "remove sandbox %s: %w", s.id, err)
	}
	return nil
}

// destroy kills PID 1, which ends every process of its namespace before it is gone
// itself, and then removes what is ours: the record last, so that an interrupted
// removal can be done again.
func (s *local) destroy(ctx context.Context) error {
	if s.pid1 != nil {
		if err := s.pid1.kill(); err != nil {
			return err
		}
		if err := s.pid1.wait(ctx); err != nil {
			return err
		}
		s.collect()
	}
	err := removeCgroups(ctx, s.record.Cgroups)
	for _, work := range s.record.Work {
		err = errors.Join(err, removeTree(work))
	}
	err = errors.Join(err, removeTree(filepath.Join(s.dir, linkName)))
	if err != nil {
		return err
	}
	for _, name := range []string{logName, recordName + ".new", recordName} {
		if e := os.Remove(filepath.Join(s.dir, name)); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// release lets go of the process.
func (s *local) release() {
	if s.pid1 != nil {
		_ = s.pid1.fd.Close()
	}
}
