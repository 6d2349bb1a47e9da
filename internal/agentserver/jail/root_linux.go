package jail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
	"github.com/Insights/insightscli/internal/link/wire"
)

// rootBuilder makes the new root. Its methods run in the order of build.
type rootBuilder struct {
	plan.Plan

	mu   sync.Mutex // guards made
	made []string   // where the host's files are mounted so far: nothing is created below
}

// build replaces the root of this mount namespace. Meanwhile the network is set up:
// that, /etc and the rest of the system know nothing of each other, and /etc alone
// takes as long as the two others.
func (b *rootBuilder) build() error {
	phases := []func() error{b.base, b.parts, b.early, b.seal, b.proc}
	if !b.Probe {
		phases = append(phases, b.dev, b.private, b.late, b.link, b.leave)
	}
	for _, phase := range phases {
		if err := phase(); err != nil {
			return err
		}
	}
	return nil
}

// parts runs what is independent at the same time.
func (b *rootBuilder) parts() error {
	parts := []func() error{func() error { return network(oldRoot + "/proc/sys") }, b.system}
	if !b.Probe {
		parts = append(parts, b.etc)
	}
	failed := make([]error, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() { failed[i] = part() })
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return err // the first, alone: it is the one to be explained
		}
	}
	return nil
}

// base puts a tmpfs in the place of the root, with the host below oldRoot.
func (b *rootBuilder) base() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return step(plan.StepTmpfs, pathError("make slave", "/", err))
	}
	const at = "/tmp" // any directory that exists; what the host has in it stays reachable
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=16m"); err != nil {
		return step(plan.StepTmpfs, pathError("mount tmpfs", at, err))
	}
	if err := errors.Join(os.Mkdir(at+newRoot, 0o755), os.Mkdir(at+oldRoot, 0o755)); err != nil {
		return step(plan.StepFiles, err)
	}
	if err := unix.PivotRoot(at, at+oldRoot); err != nil {
		return step(plan.StepPivot, os.NewSyscallError("pivot_root", err))
	}
	if err := unix.Chdir("/"); err != nil {
		return step(plan.StepPivot, err)
	}
	err := unix.Mount(newRoot, newRoot, "", unix.MS_BIND, "")
	return step(plan.StepBind, pathError("bind", newRoot, err))
}

// system shows the host's programs: /usr whole, /opt entry by entry (/opt/insights
// is ours), and what /bin, /lib and /sbin are, links or directories.
func (b *rootBuilder) system() error {
	if err := mkdir(newRoot + "/usr"); err != nil {
		return step(plan.StepFiles, err)
	}
	if err := b.bind("/usr", "/usr"); err != nil {
		return step(plan.StepBind, err)
	}
	for _, name := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if err := b.show(name); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(oldRoot + "/opt")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return step(plan.StepFiles, err)
	}
	for _, e := range entries {
		if e.Name() == "insights" {
			continue
		}
		if err := b.show("/opt/" + e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// show makes path of the host appear at the same place: links as they are, files
// and directories as binds, anything else and what is missing not at all.
func (b *rootBuilder) show(path string) error {
	info, err := os.Lstat(oldRoot + path)
	if err != nil {
		return nil
	}
	target := newRoot + path
	if err := mkdir(filepath.Dir(target)); err != nil {
		return step(plan.StepFiles, err)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(oldRoot + path)
		if err == nil {
			err = os.Symlink(to, target)
		}
		return step(plan.StepFiles, err)
	case info.IsDir(), info.Mode().IsRegular():
		if err := mountPoint(oldRoot+path, target); err != nil {
			return step(plan.StepFiles, err)
		}
		return step(plan.StepBind, b.bind(path, path))
	}
	return nil
}

// writableDirs are the directories inside that get a file system of their own
// after the root has been made read-only.
func (b *rootBuilder) writableDirs() []string {
	return []string{"/proc", "/dev", "/tmp", "/run", b.Home}
}

func (b *rootBuilder) isLate(target string) bool {
	for _, dir := range b.writableDirs() {
		if below(target, dir) {
			return true
		}
	}
	return false
}

// early makes every mount point that lies in the root itself, and the mounts that
// stay read-only.
func (b *rootBuilder) early() error {
	if b.Probe {
		return step(plan.StepFiles, mkdir(newRoot+"/proc"))
	}
	var err error
	for _, dir := range append(b.writableDirs(), "/var", "/root", "/mnt", wire.ObjectsDir) {
		err = errors.Join(err, mkdir(newRoot+dir))
	}
	err = errors.Join(err, os.Symlink("/tmp", newRoot+"/var/tmp"), os.Symlink("/run", newRoot+"/var/run"))
	if err != nil {
		return step(plan.StepFiles, err)
	}
	if err := b.mount(plan.Mount{Source: b.Server, Target: wire.ServerPath, ReadOnly: true}); err != nil {
		return err
	}
	for _, m := range b.Mounts {
		if b.isLate(m.Target) {
			continue
		}
		if !m.ReadOnly {
			if err := b.point(m); err != nil {
				return err
			}
			continue
		}
		if err := b.mount(m); err != nil {
			return err
		}
	}
	return nil
}

// seal makes everything so far read-only, in one call instead of a remount each.
func (b *rootBuilder) seal() error { return step(plan.StepSeal, setAttr(newRoot, sealed)) }

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

// late makes the mounts that can be written, and those below what can.
func (b *rootBuilder) late() error {
	for _, m := range b.Mounts {
		if m.ReadOnly && !b.isLate(m.Target) {
			continue
		}
		if err := b.mount(m); err != nil {
			return err
		}
		attr := uint64(writable)
		if m.ReadOnly {
			attr = sealed
		}
		if err := setAttr(newRoot+m.Target, attr); err != nil {
			return step(plan.StepMount, err)
		}
	}
	return nil
}

// point makes the mount point of m. Inside an earlier mount nothing is made: that
// would be a change of the host's files.
func (b *rootBuilder) point(m plan.Mount) error {
	for _, dir := range b.made {
		if !below(m.Target, dir) {
			continue
		}
		return step(plan.StepMount, plainPath(m.Target, dir))
	}
	source := oldRoot + m.Source
	if m.Source == "" {
		source = oldRoot // a detached mount is a directory
	}
	if b.isLate(m.Target) {
		if err := b.ownDir(filepath.Dir(m.Target)); err != nil {
			return step(plan.StepMount, err)
		}
	}
	return step(plan.StepMount, mountPoint(source, newRoot+m.Target))
}

// plainPath makes sure that target is there, and there itself: a link in what is
// mounted at dir would take the mount to another place.
func plainPath(target, dir string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, newRoot+target, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	switch {
	case errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%s is or leads through a symbolic link in the mounted %s: %w", target, dir, err)
	case err != nil:
		return fmt.Errorf("%s does not exist in the mounted %s: %w", target, dir, err)
	}
	return unix.Close(fd)
}

func (b *rootBuilder) mount(m plan.Mount) error {
	if err := b.point(m); err != nil {
		return err
	}
	var err error
	if m.Source == "" {
		fd := plan.FirstFD + m.FD
		err = unix.MoveMount(fd, "", unix.AT_FDCWD, newRoot+m.Target, unix.MOVE_MOUNT_F_EMPTY_PATH)
		err = errors.Join(pathError("move_mount", m.Target, err), unix.Close(fd))
		b.made = append(b.made, m.Target)
	} else {
		err = b.bind(m.Source, m.Target)
	}
	return step(plan.StepMount, err)
}

// bind shows the host's source at target inside.
func (b *rootBuilder) bind(source, target string) error {
	if err := bind(source, newRoot+target); err != nil {
		return err
	}
	b.mu.Lock()
	b.made = append(b.made, target)
	b.mu.Unlock()
	return nil
}

// link binds the directory that the host and PID 1 share.
func (b *rootBuilder) link() error {
	target := newRoot + wire.LinkDir
	if err := mkdir(target); err != nil {
		return step(plan.StepFiles, err)
	}
	if err := bind(b.LinkDir, target); err != nil {
		return step(plan.StepBind, err)
	}
	return step(plan.StepBind, setAttr(target, writable|unix.MOUNT_ATTR_NOEXEC))
}

// leave makes the new root the root and lets go of the host's.
func (b *rootBuilder) leave() error {
	err := unix.Chdir(newRoot)
	if err == nil {
		err = unix.PivotRoot(".", ".")
	}
	if err == nil {
		err = unix.Unmount(".", unix.MNT_DETACH)
	}
	if err == nil {
		err = unix.Chdir("/")
	}
	return step(plan.StepPivot, os.NewSyscallError("pivot_root", err))
}
