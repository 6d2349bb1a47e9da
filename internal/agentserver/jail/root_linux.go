package jail

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
	"github.com/Insights/insightscli/internal/link/wire"
)

// rootBuilder makes the new root. Its methods run in the order of build.
type rootBuilder struct {
	plan.Plan
	boot wire.Boot

	capture *Capture // made by wayOut

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
	parts := []func() error{b.wayOut, b.system}
	if !b.Probe {
		parts = append(parts, b.etc, func() error { return shareInotify(oldRoot + "/proc/sys") })
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

// wayOut makes the network of the sandbox: loopback, and what captures connections.
func (b *rootBuilder) wayOut() error {
	err := network(oldRoot + "/proc/sys")
	if err == nil && b.boot.Capture {
		b.capture, err = openCapture(b.boot.Allow, captureRules)
	}
	return err
}

// base puts a tmpfs in the place of the root, with the host below oldRoot.
func (b *rootBuilder) base() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return step(plan.StepTmpfs, pathError("make slave", "/", err))
	}
	const at = "/tmp" // any directory that exists; what the host has in it stays reachable
	size := "50%"     // of the machine's memory
	if b.ScratchMiB > 0 {
		size = strconv.FormatInt(b.ScratchMiB, 10) + "m"
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size="+size); err != nil {
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
	if err := b.bindSystem("/usr"); err != nil {
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
	return b.showAs(path, info)
}

// showAs is show for a path that has been looked at.
func (b *rootBuilder) showAs(path string, info fs.FileInfo) error {
	target := newRoot + path
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(oldRoot + path)
		if err == nil {
			err = within(target, func() error { return os.Symlink(to, target) })
		}
		return step(plan.StepFiles, err)
	case info.IsDir():
		if err := within(target, func() error { return unix.Mkdir(target, 0o755) }); err != nil {
			return step(plan.StepFiles, pathError("mkdir", path, err))
		}
	case info.Mode().IsRegular():
		if err := within(target, func() error { return writeCopy(target, nil, 0o644) }); err != nil {
			return step(plan.StepFiles, err)
		}
	default:
		return nil
	}
	return step(plan.StepBind, b.bindSystem(path))
}

// within makes something at target, and the directories that it lies in only where
// they are missing: most are not, and each look costs a system call.
func within(target string, make func() error) error {
	err := make()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := mkdir(filepath.Dir(target)); err != nil {
		return err
	}
	return make()
}

// writableDirs are the directories inside that are mounted after the root has been
// made read-only.
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
	err = errors.Join(err, b.devPoints(), os.Symlink("/tmp", newRoot+"/var/tmp"), os.Symlink("/run", newRoot+"/var/run"))
	if err != nil {
		return step(plan.StepFiles, err)
	}
	if err := b.mount(plan.Mount{Source: b.Server, Target: wire.ServerPath, ReadOnly: true}); err != nil {
		return err
	}
	if err := placeGuard(newRoot); err != nil {
		return step(plan.StepFiles, err)
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
