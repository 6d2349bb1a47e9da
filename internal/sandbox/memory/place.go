package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
)

// agentHome is where every sandbox has the agent's home.
const agentHome = "/home/agent"

// place is the directory that stands for a sandbox's root.
type place struct {
	root    string
	moved   *strings.Replacer
	objects []string // git object directories that a sandbox finds below wire.ObjectsDir
}

// newPlace makes the directory with a symbolic link for every mount.
func newPlace(spec sandbox.Spec) (*place, error) {
	root := filepath.Join(spec.Dir, "root")
	var pairs []string
	for _, dir := range []string{task.WorkspaceDir, agentHome, wire.ObjectsDir} {
		// The first pair leaves alone what was moved already.
		pairs = append(pairs, root+dir, root+dir, dir, root+dir)
	}
	at := &place{root: root, moved: strings.NewReplacer(pairs...)}
	if err := at.mount(spec.Mounts); err != nil {
		return nil, errors.Join(err, at.remove())
	}
	return at, nil
}

func (at *place) mount(mounts []sandbox.Mount) error {
	for _, m := range mounts {
		if m.Kind != sandbox.MountBind {
			return fmt.Errorf("mount %s: this provider has no mounts of kind %s", m.Target, m.Kind)
		}
		if _, err := os.Stat(m.Source); err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
		target := at.root + filepath.Clean(m.Target)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		if err := os.Symlink(m.Source, target); err != nil {
			return err
		}
		if strings.HasPrefix(m.Target, wire.ObjectsDir+"/") {
			at.objects = append(at.objects, m.Source)
		}
	}
	return nil
}

func (at *place) makeDirs(dirs ...string) error {
	for _, dir := range append(dirs, at.root+task.WorkspaceDir) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// path moves the paths that a sandbox has and this machine has not.
func (at *place) path(s string) string { return at.moved.Replace(s) }

func (at *place) remove() error { return os.RemoveAll(at.root) }

// starter starts processes in a place, and can end them all.
type starter struct {
	proc.Starter
	at *place

	mu       sync.Mutex // guards the rest
	killed   bool
	children []*proc.Child
}

// Start implements proc.Starter.
func (s *starter) Start(ctx context.Context, spec proc.Spec) (*proc.Child, error) {
	argv := make([]string, len(spec.Argv))
	for i, arg := range spec.Argv {
		argv[i] = s.at.path(arg)
	}
	spec.Argv, spec.Dir = argv, s.at.path(spec.Dir)
	if len(s.at.objects) > 0 {
		spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)],
			"GIT_ALTERNATE_OBJECT_DIRECTORIES="+strings.Join(s.at.objects, string(os.PathListSeparator)))
	}
	s.mu.Lock()
	defer s.mu.Unlock() // a process that starts while all are killed would be left
	if s.killed {
		return nil, errors.New("the sandbox has been destroyed")
	}
	child, err := s.Starter.Start(ctx, spec)
	if err == nil {
		s.children = append(s.living(), child)
	}
	return child, err
}

// living returns the children that have not ended.
func (s *starter) living() []*proc.Child {
	living := s.children[:0]
	for _, c := range s.children {
		select {
		case <-c.Done():
		default:
			living = append(living, c)
		}
	}
	return living
}

// kill ends every process, and lets none start from now on.
func (s *starter) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = true
	for _, c := range s.living() {
		_ = c.Signal(syscall.SIGKILL)
	}
}
