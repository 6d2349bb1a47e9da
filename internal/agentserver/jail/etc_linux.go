package jail

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
)

// copyLimit is the size up to which a file of /etc is copied instead of bound: a
// copy is faster than a mount, and belongs to somebody that the namespace knows
// (ssh refuses configuration of an owner that is neither root nor the user).
const copyLimit = 32 << 10

// etc fills /etc from the allow-list and with our own files.
func (b *rootBuilder) etc() error {
	if err := mkdir(newRoot + "/etc"); err != nil {
		return step(plan.StepFiles, err)
	}
	dir, err := os.Open(oldRoot + "/etc")
	if err != nil {
		return step(plan.StepFiles, err)
	}
	found, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return step(plan.StepFiles, err)
	}
	for _, name := range etcSelect(found) {
		if err := b.etcEntry(name); err != nil {
			return err
		}
	}
	// What is there is a copy, or nothing: this file is never bound.
	if err := keepPath(newRoot + "/etc/profile"); err != nil {
		return step(plan.StepFiles, err)
	}
	for name, text := range ownFiles(b.Hostname, b.Home, b.UID, b.GID) {
		if err := writeCopy(newRoot+"/etc/"+name, []byte(text), 0o644); err != nil {
			return step(plan.StepFiles, err)
		}
	}
	return step(plan.StepFiles, os.Symlink("/proc/mounts", newRoot+"/etc/mtab"))
}

// hidesCredential reports whether a file in the directory must not be shown; one that
// cannot be read is no danger, and one that is too large to look through, or too many,
// are left out.
func hidesCredential(dir string, guard func(data []byte) bool) bool {
	const most = 200
	files := 0
	errHidden := errors.New("hidden")
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // what cannot be read by us cannot be by the agent
		}
		info, err := os.Stat(file) // also of a link: the agent would follow it
		if err != nil || !info.Mode().IsRegular() {
			return nil //nolint:nilerr // the same
		}
		if files++; files > most || info.Size() > copyLimit {
			return errHidden
		}
		data, err := os.ReadFile(file)
		if err == nil && guard(data) {
			return errHidden
		}
		return nil
	})
	return err != nil
}

// etcEntry shows one allowed name, unless it carries a credential.
func (b *rootBuilder) etcEntry(name string) error {
	path := "/etc/" + name
	info, err := os.Lstat(oldRoot + path)
	if err != nil {
		return nil
	}
	guard := etcGuard(name)
	switch {
	case info.Mode().IsRegular() && info.Size() <= copyLimit:
		return b.etcCopy(path, info.Mode().Perm(), guard)
	case guard == nil:
		return b.showAs(path, info)
	case info.Mode().IsRegular(), hidesCredential(oldRoot+path, guard):
		return nil // too large to look through, or found
	}
	return b.showAs(path, info)
}

func (b *rootBuilder) etcCopy(path string, perm fs.FileMode, guard func(data []byte) bool) error {
	data, err := readSmall(oldRoot + path)
	switch {
	case errors.Is(err, fs.ErrPermission): // nobody's to read, so not the agent's either
		return nil
	case err != nil:
		return step(plan.StepFiles, err)
	case guard != nil && guard(data):
		return nil
	}
	target := newRoot + path
	return step(plan.StepFiles, within(target, func() error { return writeCopy(target, data, perm) }))
}

// readSmall reads a file of at most copyLimit bytes in few system calls.
func readSmall(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	defer unix.Close(fd)
	data := make([]byte, copyLimit+1)
	n, err := unix.Read(fd, data)
	if err != nil {
		return nil, pathError("read", path, err)
	}
	return data[:n], nil
}

// writeCopy writes a new file in few system calls: two dozen of them are on the way
// to the agent's first output.
func writeCopy(path string, data []byte, perm fs.FileMode) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, uint32(perm))
	if err != nil {
		return pathError("create", path, err)
	}
	if len(data) > 0 {
		_, err = unix.Write(fd, data)
	}
	return errors.Join(pathError("write", path, err), unix.Close(fd))
}
