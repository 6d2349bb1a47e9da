package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/sandbox"
)

// identity is how ids are mapped into a sandbox.
type identity struct {
	uid, gid   int // of this process
	oneUID     bool
	uids, gids []syscall.SysProcIDMap
}

// identityOf decides the mapping. Root maps every id up to 65535 to itself, and
// the agent's where it is larger; everybody else the one uid and gid that he has.
func identityOf(spec sandbox.Spec) (identity, error) {
	id := identity{uid: os.Geteuid(), gid: os.Getegid()}
	if spec.AgentUID == 0 {
		return id, errors.New("the agent must not be root")
	}
	if id.uid != 0 {
		id.oneUID = true
		if spec.AgentUID != id.uid || spec.AgentGID != id.gid {
			return id, fmt.Errorf("the agent must be %d:%d, the invoking user, and not %d:%d", id.uid, id.gid, spec.AgentUID, spec.AgentGID)
		}
		id.uids, id.gids = same(id.uid, 1), same(id.gid, 1)
		return id, nil
	}
	var err error
	if id.uids, err = fullMap("/proc/self/uid_map", spec.AgentUID); err != nil {
		return id, err
	}
	id.gids, err = fullMap("/proc/self/gid_map", spec.AgentGID)
	return id, err
}

// refuseIdentity tells a machine that has no ids for a sandbox from a wrong Spec.
func refuseIdentity(op string, err error) error {
	if errs.KindOf(err) == errs.Unavailable {
		return errs.New(op, errs.Unavailable, errs.HintOf(err), "%s: %w", cannot, err)
	}
	return errs.New(op, errs.Config, "", "%w", err)
}

func same(id, size int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: size}}
}

// fullMap maps the ids that exist here, up to 65535, to themselves. A line may not
// span several extents of this namespace's own map, so each gives one line.
func fullMap(file string, agent int) ([]syscall.SysProcIDMap, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var maps []syscall.SysProcIDMap
	found := false
	for line := range strings.Lines(string(data)) {
		var first, outside, size int64
		if _, err := fmt.Sscan(line, &first, &outside, &size); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if end := min(first+size, 1<<16); first < end {
			maps = append(maps, same(int(first), int(end-first))...)
		}
		if a := int64(agent); a >= first && a < first+size {
			found = true
			if a >= 1<<16 {
				maps = append(maps, same(agent, 1)...)
			}
		}
	}
	if !found {
		return nil, errs.New("local.Create", errs.Unavailable, "map more ids into this container, or name mapped ones with SUDO_UID and SUDO_GID, or use --provider=docker",
			"the agent's id %d does not exist in this user namespace (%s)", agent, file)
	}
	return maps, nil
}

// initCaps is what PID 1 needs while it builds the sandbox, and to empty its bounding set; a
// uid that is not 0 would lose everything at exec without it.
func initCaps() []uintptr {
	return []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SYS_RESOURCE, unix.CAP_SETPCAP}
}

// clone is a started PID 1 that waits for its job.
type clone struct {
	pid1   *process
	job    *os.File // write end
	report *os.File // read end
	dir    string   // of its log; empty in a probe
}

// startInit starts the agent server as PID 1 of new namespaces, in a session of its
// own and without a tie to our life. files are inherited from plan.ListenFD on.
func startInit(server, dir string, id identity, files []*os.File) (_ *clone, err error) {
	// Told apart here from a refused clone, which gives the same errno.
	if err := unix.Access(server, unix.X_OK); err != nil {
		return nil, fmt.Errorf("agent server %s: %w", server, err)
	}
	// What a shell or a CI system has left open for this process must not go on into
	// the sandbox: a descriptor of a directory is a way back to the host's files.
	if err := unix.CloseRange(firstFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("close_range", err)
	}
	output, err := openOutput(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = output.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	jobIn, jobOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = jobIn.Close() }()
	reportIn, reportOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, jobOut.Close())
	}
	defer func() { _ = reportOut.Close() }()
	c := &clone{job: jobOut, report: reportIn, dir: dir}
	fds := []uintptr{null.Fd(), output.Fd(), output.Fd(), jobIn.Fd(), reportOut.Fd()}
	for _, f := range files {
		fds = append(fds, f.Fd())
	}
	if err := c.fork(server, id, fds); err != nil {
		c.close()
		return nil, &stepError{step: plan.StepClone, err: err}
	}
	return c, nil
}

// firstFD is the first descriptor that is not a standard one.
const firstFD = 3

// openOutput opens the log of PID 1, or nothing for a probe.
func openOutput(dir string) (*os.File, error) {
	if dir == "" {
		return os.OpenFile(os.DevNull, os.O_RDWR, 0)
	}
	return os.OpenFile(filepath.Join(dir, logName), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
}

func (c *clone) fork(server string, id identity, fds []uintptr) error {
	pidfd := -1
	attr := &syscall.ProcAttr{
		Dir: "/", Files: fds,
		// The agent could read PID 1's environment in some kernels' configurations.
		Env: []string{"GOTRACEBACK=single"},
		Sys: &syscall.SysProcAttr{
			Setsid: true, PidFD: &pidfd,
			Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
				unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
			UidMappings: id.uids, GidMappings: id.gids, GidMappingsEnableSetgroups: !id.oneUID,
		},
	}
	if id.oneUID {
		attr.Sys.AmbientCaps = initCaps()
	} else {
		// Without our supplementary groups (docker, disk), which the agent would get.
		attr.Sys.Credential = &syscall.Credential{}
	}
	pid, err := syscall.ForkExec(server, []string{"insights-agent-server", plan.ArgInit}, attr)
	if err != nil {
		return err
	}
	if pidfd < 0 { // a kernel without CLONE_PIDFD; the child is ours, so the number is too
		if pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
			return errors.Join(os.NewSyscallError("pidfd_open", err), syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	if err := unix.SetNonblock(pidfd, true); err != nil {
		return errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
	}
	c.pid1 = &process{pid: pid, fd: os.NewFile(uintptr(pidfd), "pidfd")}
	return nil
}

// run gives PID 1 its job and waits for its report.
func (c *clone) run(ctx context.Context, job plan.Job) error {
	data, err := json.Marshal(job)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		_ = c.job.SetWriteDeadline(time.Unix(1, 0))
		_ = c.report.SetReadDeadline(time.Unix(1, 0))
	})
	defer stop()
	// A PID 1 that died has said why in its report or its log, not in our EPIPE.
	_, writeErr := c.job.Write(data)
	writeErr = errors.Join(writeErr, c.job.Close())
	said, err := io.ReadAll(io.LimitReader(c.report, 64<<10))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case len(said) == 0:
		return errors.Join(c.died(), ignoreEPIPE(writeErr))
	}
	var report plan.Report
	if err := json.Unmarshal(said, &report); err != nil {
		return fmt.Errorf("report of PID 1: %w", err)
	}
	if !report.OK {
		return &stepError{step: report.Step, err: syscall.Errno(report.Errno), text: report.Text}
	}
	return nil
}

func ignoreEPIPE(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// died describes a PID 1 that ended without a word.
func (c *clone) died() error {
	if c.dir == "" {
		return errors.New("the sandbox's first process died at once")
	}
	return fmt.Errorf("the sandbox's first process died: %s", lastWords(c.dir))
}

func (c *clone) close() {
	_ = c.job.Close()
	_ = c.report.Close()
}

// stepError is a step of the set-up that failed, on this side or in PID 1.
type stepError struct {
	step plan.Step
	err  error
	text string // the other side's words, complete
}

func (e *stepError) Error() string {
	if e.text != "" {
		return e.text
	}
	return fmt.Sprintf("%s: %v", e.step, e.err)
}

func (e *stepError) Unwrap() error { return e.err }

// listen makes the listening socket of the link in dir, of any length.
func listen(dir, name string) (*os.File, error) {
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(at) }()
	if err := unix.Unlinkat(at, name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), name)
	path := "/proc/self/fd/" + strconv.Itoa(at) + "/" + name
	err = unix.Fchmod(fd, 0o600) // before it has a name; the umask cannot add to it
	if err == nil {
		err = os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	}
	if err == nil {
		err = os.NewSyscallError("listen", unix.Listen(fd, unix.SOMAXCONN))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
