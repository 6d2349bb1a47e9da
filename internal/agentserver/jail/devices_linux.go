package jail

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
)

// proc must come while the host's /proc is still there: the kernel allows a new
// one only beside a fully visible one. hidepid hides PID 1 from the agent.
func (b *rootBuilder) proc() error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	err := unix.Mount("proc", newRoot+"/proc", "proc", flags, "hidepid=invisible")
	return step(plan.StepProc, os.NewSyscallError("mount", err))
}

func (b *rootBuilder) dev() error {
	dev := newRoot + "/dev"
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755,size=64k"); err != nil {
		return step(plan.StepDev, pathError("mount tmpfs", "/dev", err))
	}
	for _, name := range []string{"/null", "/zero", "/full", "/random", "/urandom", "/tty"} {
		err := os.WriteFile(dev+name, nil, 0o666)
		if err == nil {
			err = bind("/dev"+name, dev+name)
		}
		if err != nil {
			return step(plan.StepDev, err)
		}
	}
	links := [][2]string{
		{"pts/ptmx", "/ptmx"}, {"/proc/self/fd", "/fd"},
		{"/proc/self/fd/0", "/stdin"}, {"/proc/self/fd/1", "/stdout"}, {"/proc/self/fd/2", "/stderr"},
	}
	for _, l := range links {
		if err := os.Symlink(l[0], dev+l[1]); err != nil {
			return step(plan.StepDev, err)
		}
	}
	if err := errors.Join(mkdir(dev+"/pts"), mkdir(dev+"/shm")); err != nil {
		return step(plan.StepDev, err)
	}
	// No gid=5: where one uid is mapped, group tty is not.
	err := unix.Mount("devpts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	if err != nil {
		return step(plan.StepDev, pathError("mount devpts", "/dev/pts", err))
	}
	return step(plan.StepDev, tmpfs(dev+"/shm", 0, "mode=1777"))
}

// private mounts the directories that start empty, and makes the agent's own.
func (b *rootBuilder) private() error {
	err := tmpfs(newRoot+"/tmp", 0, "mode=1777")
	if err == nil {
		err = tmpfs(newRoot+"/run", 0, "mode=0755,size=16m")
	}
	if err == nil {
		err = tmpfs(newRoot+b.Home, 0, "mode=0755")
	}
	if err != nil {
		return step(plan.StepTmpfs, err)
	}
	if err := b.own(b.Home); err != nil {
		return step(plan.StepFiles, err)
	}
	return step(plan.StepFiles, b.ownDir(b.Dir))
}

// ownDir makes dir inside the sandbox, with parents, all the agent's.
func (b *rootBuilder) ownDir(dir string) error {
	if dir == "/" || dir == "/tmp" || dir == b.Home {
		return nil
	}
	if _, err := os.Lstat(newRoot + dir); err == nil {
		return nil
	}
	if err := b.ownDir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(newRoot+dir, 0o755); err != nil {
		return err
	}
	return b.own(dir)
}

func (b *rootBuilder) own(dir string) error {
	if b.OneUID {
		return nil
	}
	return os.Lchown(newRoot+dir, b.UID, b.GID)
}
