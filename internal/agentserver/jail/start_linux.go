package jail

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/proc"
)

// walls say what stands between PID 1 and the agent.
type walls struct {
	uid, gid int
	nproc    uint64
	files    unix.Rlimit // RLIMIT_FSIZE of the agent; PID 1 has a lower one
	oneUID   bool        // PID 1 has the agent's uid
	staged   bool        // second user namespace and stage; else a container engine's own
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
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return nil, proc.ExecError(`""`, os.ErrNotExist)
	}
	st, err := newStage(s.walls, spec)
	if err != nil {
		return nil, err
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
	fds, err := descriptors(null, spec.Stdin, spec.Stdout, spec.Stderr, theirs)
	if err != nil {
		return nil, errors.Join(err, theirs.Close())
	}
	st.stdio, st.said = [3]uintptr(fds[:3]), fds[3]
	child, err := s.reaper.Start(func() (int, error) { return s.fork(st) })
	_ = theirs.Close()
	if err != nil {
		return nil, err
	}
	return started(child, ours, spec)
}

// fork runs while this process is dumpable: at 0 the child's uid_map would belong
// to root, and writing it be refused. The second user namespace of all that the
// agent runs keeps the moment from being of use to it. The reaper makes forks one
// at a time.
func (s *starter) fork(st *stage) (pid int, err error) {
	if err := setDumpable(1); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, setDumpable(0)) }()
	var mapped [2]int
	if err := unix.Pipe2(mapped[:], unix.O_CLOEXEC); err != nil {
		return 0, os.NewSyscallError("pipe2", err)
	}
	// Closing the writing end without a byte ends a child whose ids are not mapped.
	defer func() { err = errors.Join(err, unix.Close(mapped[0]), unix.Close(mapped[1])) }()
	st.mapped, st.mapper = uintptr(mapped[0]), uintptr(mapped[1])
	syscall.ForkLock.Lock()
	child, errno := st.clone()
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return 0, os.NewSyscallError("clone", errno)
	}
	if err := s.mapIDs(int(child)); err != nil {
		return 0, err
	}
	_, err = unix.Write(mapped[1], []byte{1})
	return int(child), err
}

// mapIDs shows the child the agent's uid and gid and no other.
func (s *starter) mapIDs(pid int) error {
	dir := "/proc/" + strconv.Itoa(pid)
	for _, f := range [][2]string{
		{"/setgroups", "deny"},
		{"/uid_map", fmt.Sprintf("%d %d 1\n", s.uid, s.uid)},
		{"/gid_map", fmt.Sprintf("%d %d 1\n", s.gid, s.gid)},
	} {
		fd, err := unix.Open(dir+f[0], unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return pathError("open", dir+f[0], err)
		}
		_, err = unix.Write(fd, []byte(f[1]))
		if err = errors.Join(err, unix.Close(fd)); err != nil {
			return pathError("write", dir+f[0], err)
		}
	}
	return nil
}

// started waits until the stage has become the program, or has said why not.
func started(child *proc.Child, said io.Reader, spec proc.Spec) (*proc.Child, error) {
	message := make([]byte, 8)
	_, err := io.ReadFull(said, message)
	if errors.Is(err, io.EOF) {
		return child, nil
	}
	<-child.Done()
	if err != nil {
		return nil, err
	}
	phase, errno := binary.NativeEndian.Uint32(message), syscall.Errno(binary.NativeEndian.Uint32(message[4:]))
	switch phase {
	case phaseProgram:
		return nil, proc.ExecError(spec.Argv[0], errno)
	case phaseDir:
		return nil, pathError("working directory", spec.Dir, errno)
	}
	return nil, os.NewSyscallError("set up the agent's process", errno)
}

// lastOnly returns env with the last of each variable: programs disagree about what
// counts when there are two.
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
