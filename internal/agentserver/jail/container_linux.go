package jail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
)

// Container is the first thing that PID 1 of a container does, as root with CHOWN,
// KILL, NET_ADMIN, SETGID, SETPCAP and SETUID and nothing else, or as the agent
// itself where the engine maps one uid only. It reads the boot file and removes it,
// listens for the host, refuses metadata addresses or captures every connection, makes the
// agent's passwd entry, git and directories, and gives up every capability but KILL, SETGID and SETUID, which
// no process of the agent inherits.
func Container() (*Jail, error) {
	keepDescriptors()
	owner, err := linkOwner()
	if err != nil {
		return nil, step(plan.StepJob, err)
	}
	j := &Jail{}
	err = proc.As(owner[0], owner[1], func() error {
		j.Boot, err = takeBoot(filepath.Join(wire.LinkDir, wire.BootName))
		if err == nil {
			j.Listener, err = link.ListenUnix(wire.LinkDir, wire.SocketName)
		}
		return err
	})
	if err != nil {
		return nil, step(plan.StepJob, err)
	}
	j.walls = walls{uid: j.Boot.UID, gid: j.Boot.GID, oneUID: os.Geteuid() == j.Boot.UID}
	if err := j.prepareContainer(); err != nil {
		return nil, errors.Join(err, j.Listener.Close())
	}
	return j, step(plan.StepCaps, surrenderContainer(j.walls))
}

// linkOwner returns the uid and gid that the link directory belongs to: those of
// the invoking user, whose mode 0700 keeps out even a root without DAC_OVERRIDE.
func linkOwner() ([2]int, error) {
	var st unix.Stat_t
	if err := unix.Stat(wire.LinkDir, &st); err != nil {
		return [2]int{}, pathError("stat", wire.LinkDir, err)
	}
	return [2]int{int(st.Uid), int(st.Gid)}, nil
}

// LinkGone reports whether the host's link directory has been removed: what is bound
// here has no name any more.
func LinkGone() bool {
	var st unix.Stat_t
	return unix.Stat(wire.LinkDir, &st) == nil && st.Nlink == 0
}

// takeBoot reads the boot file and removes it before it is looked at.
func takeBoot(path string) (wire.Boot, error) {
	var boot wire.Boot
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return boot, err
	}
	data, err := io.ReadAll(io.LimitReader(f, plan.MaxJob+1))
	if err = errors.Join(err, f.Close(), os.Remove(path)); err != nil {
		return boot, err
	}
	if len(data) > plan.MaxJob {
		return boot, fmt.Errorf("%s is too large", path)
	}
	return boot, json.Unmarshal(data, &boot)
}

func (j *Jail) prepareContainer() error {
	boot := j.Boot
	if os.Geteuid() != 0 {
		if boot.Capture {
			return step(plan.StepNetwork, errors.New("the capture of connections needs a PID 1 that is root in its container"))
		}
		return nil
	}
	if err := j.wayOut(); err != nil {
		return err
	}
	if err := nameAgent("/etc/passwd", passwdLine(boot.Home, boot.UID, boot.GID), boot.UID); err != nil {
		return step(plan.StepFiles, err)
	}
	if err := nameAgent("/etc/group", groupLine(boot.GID), boot.GID); err != nil {
		return step(plan.StepFiles, err)
	}
	if err := errors.Join(placeGuard(""), keepPath("/etc/profile")); err != nil {
		return step(plan.StepFiles, err)
	}
	for _, dir := range []string{boot.Home, boot.Dir} {
		if err := giveDir(dir, boot.UID, boot.GID); err != nil {
			return step(plan.StepFiles, err)
		}
	}
	return nil
}

// wayOut makes the network of the container: a bridge without metadata services, or the
// capture of all connections, which has no other interface than loopback.
func (j *Jail) wayOut() error {
	interfaces := hasInterfaces()
	switch {
	case !j.Boot.Capture && interfaces:
		return step(plan.StepNetwork, refuseMetadata())
	case !j.Boot.Capture:
		return nil
	case interfaces:
		return step(plan.StepNetwork, errors.New("a sandbox whose connections are captured has a network of its own"))
	}
	// The sysctls are the engine's to set: PID 1 sees them read-only.
	if err := loopbackUp(); err != nil {
		return step(plan.StepNetwork, err)
	}
	if err := ownResolver("/etc", j.Boot); err != nil {
		return step(plan.StepFiles, err)
	}
	var err error
	j.Capture, err = openCapture(j.Boot.Allow, captureRules)
	return err
}

// ownResolver replaces what an image or its engine says about how names are looked up. The
// engine has bound files over two of the three, so that they are written to, and not
// replaced; a link that an image has planted is.
func ownResolver(dir string, boot wire.Boot) error {
	hostname, err := os.Hostname()
	if err != nil {
		return err
	}
	own := ownFiles(hostname, boot.Home, boot.UID, boot.GID)
	for _, name := range []string{"hosts", "resolv.conf", "nsswitch.conf"} {
		if err := replace(filepath.Join(dir, name), own[name]); err != nil {
			return err
		}
	}
	return nil
}

func replace(path, text string) error {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC | unix.O_NOFOLLOW
	f, err := os.OpenFile(path, flags, 0o644)
	if errors.Is(err, unix.ELOOP) {
		if err := os.Remove(path); err != nil {
			return err
		}
		f, err = os.OpenFile(path, flags, 0o644)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// hasInterfaces reports whether there is another interface than loopback.
func hasInterfaces() bool {
	list, err := net.Interfaces()
	for _, i := range list {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			return true
		}
	}
	return err != nil // cannot tell: refuse, which fails loudly if it cannot be done
}

// nameAgent appends line to a file of names unless the id has a name already. An
// image without the file, or one that root may not write, goes without: programs
// then show the number.
func nameAgent(path, line string, id int) error {
	old, err := os.ReadFile(path)
	if err != nil || hasID(old, id) {
		return nil
	}
	if len(old) > 0 && !strings.HasSuffix(string(old), "\n") {
		line = "\n" + line
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS), errors.Is(err, unix.ELOOP):
		return nil
	case err != nil:
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// giveDir makes dir, with parents, and makes what it made the agent's, and what
// root owns below /tmp and /home: parents that the engine made for its mounts. A
// mounted directory itself is the host's and never changes hands.
func giveDir(dir string, uid, gid int) error {
	if dir == "" || dir == "/" {
		return nil
	}
	if err := giveDir(filepath.Dir(dir), uid, gid); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o755)
	switch {
	case err == nil:
		return os.Lchown(dir, uid, gid)
	case !errors.Is(err, fs.ErrExist):
		return err
	case !strings.HasPrefix(dir, "/tmp/") && !strings.HasPrefix(dir, "/home/"):
		return nil
	}
	var st unix.Statx_t
	const flags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_STATX_SYNC_AS_STAT
	if err := unix.Statx(unix.AT_FDCWD, dir, flags, unix.STATX_TYPE|unix.STATX_UID, &st); err != nil {
		return pathError("statx", dir, err)
	}
	isDir := uint32(st.Mode)&unix.S_IFMT == unix.S_IFDIR
	if !isDir || st.Uid != 0 || st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return nil
	}
	return os.Lchown(dir, uid, gid)
}

// surrenderContainer empties the bounding set here, because the agent's processes
// have no stage: the engine's filter and no_new_privs are on them already.
func surrenderContainer(w walls) error {
	if err := noNewPrivs(); err != nil {
		return err
	}
	mask := uint32(0)
	if os.Geteuid() == 0 {
		if err := emptyBounding(); err != nil {
			return err
		}
		mask = kept
	}
	if w.oneUID {
		mask = 0
		apart()
	}
	if err := setCaps(mask); err != nil {
		return err
	}
	if err := setDumpable(0); err != nil {
		return err
	}
	if !w.oneUID {
		return nil // the agent cannot signal PID 1, and the engine's SIGTERM is heard
	}
	return defaultSignals()
}

// apart gives PID 1 a saved gid that the agent has not. Where both have one uid the kernel
// otherwise lets the agent change PID 1's limits (prlimit), of files or of processor time,
// and so end it: it asks for the same ids, all six of them, and for nothing else. A PID 1
// that is not root, or whose engine maps one gid only, cannot do it.
func apart() {
	const saved = 1
	_ = syscall.Setresgid(-1, -1, saved)
}
