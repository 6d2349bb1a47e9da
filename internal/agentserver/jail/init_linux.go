package jail

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
)

// Init is the first thing that PID 1 of a `local` sandbox does. It reads the job
// from the inherited pipe, builds the sandbox around the process, gives up every
// capability that is not needed any more and reports. In a probe it returns nil
// and no error, and the caller exits.
func Init() (*Jail, error) {
	keepDescriptors()
	report := os.NewFile(plan.ReportFD, "report")
	j, err := initialise()
	return j, errors.Join(err, sendReport(report, err))
}

// keepDescriptors keeps what this process has inherited from its own children: no
// descriptor that an engine or a creator has left open by mistake reaches the agent.
func keepDescriptors() {
	// Best effort: engines run on kernels that do not have it, and close their own.
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

func initialise() (*Jail, error) {
	unix.Umask(0)
	// First, while there are few threads: each capability stops them all.
	if err := emptyBounding(); err != nil {
		return nil, step(plan.StepCaps, err)
	}
	files, err := boundFiles()
	if err != nil {
		return nil, err
	}
	job, err := readJob(os.NewFile(plan.JobFD, "job"))
	if err != nil {
		return nil, step(plan.StepJob, err)
	}
	b := rootBuilder{Plan: job.Plan}
	if !job.Plan.Probe {
		if err := json.Unmarshal(job.Boot, &b.boot); err != nil {
			return nil, step(plan.StepJob, err)
		}
	}
	if err := b.build(); err != nil || job.Plan.Probe {
		return nil, err
	}
	unix.Umask(0o022)
	return b.finish(files)
}

// maxLog bounds every file that PID 1 itself writes to: its log on the host's disk,
// which a panic or an engine's bug could fill, and its own log inside.
const maxLog = 1 << 20

// boundFiles sets the bound, keeps the memory of PID 1 out of core files, and returns
// the former bound, for the agent.
func boundFiles() (unix.Rlimit, error) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		return old, os.NewSyscallError("getrlimit", err)
	}
	bound := unix.Rlimit{Cur: min(old.Cur, maxLog), Max: old.Max}
	err := errors.Join(unix.Setrlimit(unix.RLIMIT_FSIZE, &bound), unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}))
	return old, os.NewSyscallError("setrlimit", err)
}

// readJob reads the job and makes sure that no later process inherits the pipe. An
// empty pipe means that the creator died before it could say anything.
func readJob(pipe *os.File) (plan.Job, error) {
	var job plan.Job
	data, err := io.ReadAll(io.LimitReader(pipe, plan.MaxJob+1))
	if err = errors.Join(err, pipe.Close()); err != nil {
		return job, err
	}
	switch {
	case len(data) == 0:
		return job, errors.New("the creator is gone")
	case len(data) > plan.MaxJob:
		return job, errors.New("the job is too large")
	}
	return job, json.Unmarshal(data, &job)
}

func (b *rootBuilder) finish(files unix.Rlimit) (*Jail, error) {
	j := &Jail{Boot: b.boot, Capture: b.capture, walls: walls{
		uid: b.UID, gid: b.GID, nproc: b.NProc, files: files, oneUID: b.OneUID, staged: true,
	}}
	listener, err := inheritedListener()
	if err != nil {
		return nil, step(plan.StepJob, err)
	}
	j.Listener = listener
	if err := unix.Sethostname([]byte(b.Hostname)); err != nil {
		return nil, step(plan.StepFiles, os.NewSyscallError("sethostname", err))
	}
	return j, step(plan.StepCaps, surrender(b.Plan))
}

// surrender gives up what PID 1 needs no more. The bounding set is empty already; the stage
// empties it again, since a new user namespace starts with a full one.
func surrender(p plan.Plan) error {
	if err := noNewPrivs(); err != nil {
		return err
	}
	mask := uint32(kept)
	if p.OneUID {
		mask = 0
	}
	if err := setCaps(mask); err != nil {
		return err
	}
	if err := setDumpable(0); err != nil {
		return err
	}
	return defaultSignals()
}

func inheritedListener() (net.Listener, error) {
	f := os.NewFile(plan.ListenFD, "link")
	l, err := net.FileListener(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	return l, nil
}

func sendReport(f *os.File, err error) error {
	r := plan.Report{OK: err == nil}
	if err != nil {
		r.Text = err.Error()
		var failed *StepError
		if errors.As(err, &failed) {
			r.Step = failed.Step
		}
		var errno syscall.Errno
		if errors.As(err, &errno) {
			r.Errno = int(errno)
		}
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
