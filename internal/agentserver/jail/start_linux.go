package jail

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/link/wire"
)

// walls say what stands between PID 1 and the agent.
type walls struct {
	uid, gid int
	nproc    uint64
	oneUID   bool // PID 1 has the agent's uid
	staged   bool // second user namespace and stage; else a container engine's own
}

// Starter returns the Starter of the agent's processes. It is the only one that may
// be used in this process, together with reaper.
func (j *Jail) Starter(reaper *proc.Reaper) proc.Starter {
	if !j.walls.staged {
		return &proc.Plain{Reaper: reaper, UID: j.walls.uid, GID: j.walls.gid}
	}
	return &starter{walls: j.walls, reaper: reaper}
}

// starter begins processes by way of the stage.
type starter struct {
	walls
	reaper *proc.Reaper
}

var _ proc.Starter = (*starter)(nil)

// Start implements proc.Starter. The program is looked up and executed by the
// stage, as the agent; what it says about a failure comes over a pipe that execve
// closes.
func (s *starter) Start(ctx context.Context, spec proc.Spec) (*proc.Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(spec.Argv) == 0 {
		return nil, proc.ExecError("", os.ErrNotExist)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = ours.Close() }()
	files, err := descriptors(null, spec.Stdin, spec.Stdout, spec.Stderr, theirs)
	if err != nil {
		return nil, errors.Join(err, theirs.Close())
	}
	argv := append([]string{"stage", plan.ArgStage, strconv.FormatUint(s.nproc, 10)}, spec.Argv...)
	attr := &syscall.ProcAttr{Env: lastOnly(spec.Env), Dir: spec.Dir, Files: files, Sys: s.attributes(spec.TTY)}
	child, err := s.reaper.Start(func() (int, error) { return s.fork(argv, attr) })
	_ = theirs.Close()
	if err != nil {
		return nil, s.forkError(spec, err)
	}
	return started(child, ours, spec.Argv[0])
}

func (s *starter) attributes(tty bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Setsid: true, Setctty: tty,
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: s.uid, HostID: s.uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: s.gid, HostID: s.gid, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SETPCAP}, // for the stage to empty the bounding set
	}
	if !s.oneUID {
		attr.Credential = &syscall.Credential{Uid: uint32(s.uid), Gid: uint32(s.gid), NoSetGroups: true}
	}
	return attr
}

// fork runs while this process is dumpable: at 0 the child's uid_map would belong
// to root, and writing it be refused. The second user namespace of all that the
// agent runs keeps the moment from being of use to it. The reaper makes forks one
// at a time.
func (s *starter) fork(argv []string, attr *syscall.ProcAttr) (int, error) {
	if err := setDumpable(1); err != nil {
		return 0, err
	}
	pid, err := syscall.ForkExec(wire.ServerPath, argv, attr)
	if again := setDumpable(0); again != nil {
		err = errors.Join(err, again)
	}
	return pid, err
}

// forkError tells a bad working directory from a fork that went wrong.
func (s *starter) forkError(spec proc.Spec, err error) error {
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EACCES) {
		return pathError("working directory", spec.Dir, err)
	}
	return err
}

// started waits until the stage has become the program, or has said why not: one
// line, the exit code and the reason.
func started(child *proc.Child, said *os.File, name string) (*proc.Child, error) {
	line, err := io.ReadAll(io.LimitReader(said, 4096))
	if len(line) == 0 && err == nil {
		return child, nil
	}
	<-child.Done()
	number, reason, _ := strings.Cut(string(line), " ")
	errno, _ := strconv.Atoi(number)
	switch {
	case err != nil:
		return nil, err
	case errno > 0:
		return nil, proc.ExecError(name, syscall.Errno(errno))
	case number == sayNotFound:
		return nil, proc.ExecError(name, os.ErrNotExist)
	}
	return nil, errors.New(reason)
}

// lastOnly returns env with the last of each variable: the stage is a Go program,
// and hands on the first of what is there twice.
func lastOnly(env []string) []string {
	seen := map[string]bool{}
	var kept []string
	for _, kv := range slices.Backward(env) {
		name, _, _ := strings.Cut(kv, "=")
		if !seen[name] {
			seen[name] = true
			kept = append(kept, kv)
		}
	}
	slices.Reverse(kept)
	return kept
}

// descriptors returns the descriptors of files, of null for those that are nil, all
// blocking: they are the child's ends, and programs expect that.
func descriptors(null *os.File, files ...*os.File) ([]uintptr, error) {
	fds := make([]uintptr, 0, len(files))
	for _, f := range files {
		if f == nil {
			f = null
		}
		raw, err := f.SyscallConn()
		if err != nil {
			return nil, err
		}
		var mode error
		err = raw.Control(func(fd uintptr) {
			mode = unix.SetNonblock(int(fd), false)
			fds = append(fds, fd)
		})
		if err = errors.Join(err, mode); err != nil {
			return nil, err
		}
	}
	return fds, nil
}
