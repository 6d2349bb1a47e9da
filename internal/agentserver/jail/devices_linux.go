package jail

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

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

// devices are the host's that a sandbox has.
func devices() []string {
	return []string{"/null", "/zero", "/full", "/random", "/urandom", "/tty"}
}

// devPoints makes /dev, which is a directory of the root like any other, before that
// becomes read-only.
func (b *rootBuilder) devPoints() error {
	const dev = newRoot + "/dev"
	err := errors.Join(mkdir(dev+"/pts"), mkdir(dev+"/shm"))
	for _, name := range devices() {
		if err == nil {
			err = os.WriteFile(dev+name, nil, 0o666)
		}
	}
	links := [][2]string{
		{"pts/ptmx", "/ptmx"},
		{"/proc/self/fd", "/fd"},
		{"/proc/self/fd/0", "/stdin"},
		{"/proc/self/fd/1", "/stdout"},
		{"/proc/self/fd/2", "/stderr"},
	}
	for _, l := range links {
		if err == nil {
			err = os.Symlink(l[0], dev+l[1])
		}
	}
	return step(plan.StepDev, err)
}

// dev mounts the devices, after the root has lost its own.
func (b *rootBuilder) dev() error {
	const dev = newRoot + "/dev"
	for _, name := range devices() {
		if err := bind("/dev"+name, dev+name); err != nil {
			return step(plan.StepDev, err)
		}
	}
	// No gid=5: where one uid is mapped, group tty is not.
	err := unix.Mount("devpts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	return step(plan.StepDev, pathError("mount devpts", "/dev/pts", err))
}

// private shows the directories that start empty and can be written. They lie beside
// the new root in its own file system: one bound for all that the agent keeps in
// memory (a bound each would add up to more than the machine has), and no more mounts
// of tmpfs than one.
func (b *rootBuilder) private() error {
	for i, dir := range []struct {
		target string
		mode   uint32
	}{{"/tmp", 0o1777}, {"/run", 0o755}, {b.Home, 0o755}, {"/dev/shm", 0o1777}} {
		source := scratch + strconv.Itoa(i)
		if err := unix.Mkdir(source, dir.mode); err != nil {
			return step(plan.StepFiles, pathError("mkdir", source, err))
		}
		if err := unix.Mount(source, newRoot+dir.target, "", unix.MS_BIND, ""); err != nil {
			return step(plan.StepTmpfs, pathError("bind", dir.target, err))
		}
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
