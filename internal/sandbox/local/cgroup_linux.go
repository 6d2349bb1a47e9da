package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/sandbox"
)

// cgroup is a directory to be made, and what is written into its files.
type cgroup struct {
	dir   string
	files map[string]string
}

// planCgroups says which directories give the Spec's limits here. There are none
// where no limit is asked for; whether they can be made shows in joinCgroups.
func planCgroups(spec sandbox.Spec) []cgroup {
	limits := limitsOf(spec)
	if len(limits) == 0 {
		return nil
	}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	hierarchies := parseHierarchies(string(mountinfo), string(own))
	name := "insightscli-" + filepath.Base(spec.Dir)
	var groups []cgroup
	for _, h := range hierarchies {
		groups = append(groups, h.plan(name, limits)...)
	}
	return groups
}

// limitsOf returns the wanted limits by controller, in each version's files.
func limitsOf(spec sandbox.Spec) map[string][2]map[string]string {
	limits := map[string][2]map[string]string{}
	if spec.MemoryMiB > 0 {
		bytes := strconv.FormatInt(spec.MemoryMiB<<20, 10)
		limits["memory"] = [2]map[string]string{{"memory.limit_in_bytes": bytes}, {"memory.max": bytes}}
	}
	if spec.PIDs > 0 {
		// Each started command has the limit to itself (RLIMIT_NPROC counts by user
		// namespace); this is the sum, with room for PID 1's threads and for the
		// commands that the host runs beside an agent that has used up its own.
		const reserve = 128
		pids := map[string]string{"pids.max": strconv.FormatInt(spec.PIDs+reserve, 10)}
		limits["pids"] = [2]map[string]string{pids, pids}
	}
	if spec.CPUs > 0 {
		const period = 100_000 // microseconds
		quota := strconv.FormatInt(max(1000, int64(spec.CPUs*period)), 10)
		limits["cpu"] = [2]map[string]string{
			{"cpu.cfs_period_us": strconv.Itoa(period), "cpu.cfs_quota_us": quota},
			{"cpu.max": fmt.Sprintf("%s %d", quota, period)},
		}
	}
	return limits
}

// hierarchy is one mounted cgroup tree and where this process is in it.
type hierarchy struct {
	v2          bool
	controllers []string // v1
	root        string   // mount point
	own         string   // directory of this process, below root
}

// parseHierarchies reads /proc/self/mountinfo and /proc/self/cgroup.
func parseHierarchies(mountinfo, own string) []hierarchy {
	var list []hierarchy
	for line := range strings.Lines(mountinfo) {
		left, right, ok := strings.Cut(line, " - ")
		place, kind := strings.Fields(left), strings.Fields(right)
		if !ok || len(place) < 5 || len(kind) < 3 || !strings.HasPrefix(kind[0], "cgroup") {
			continue
		}
		h := hierarchy{v2: kind[0] == "cgroup2", root: place[4], controllers: strings.Split(kind[2], ",")}
		path, ok := ownPath(own, h)
		if !ok {
			continue
		}
		h.own = filepath.Join(h.root, strings.TrimPrefix(path, place[3]))
		if _, err := os.Stat(h.own); err != nil {
			h.own = h.root // the path is that of another cgroup namespace
		}
		list = append(list, h)
	}
	return list
}

func ownPath(own string, h hierarchy) (string, bool) {
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		names := strings.Split(f[1], ",")
		if h.v2 && f[0] == "0" || !h.v2 && f[1] != "" && slices.Contains(h.controllers, names[0]) {
			return f[2], true
		}
	}
	return "", false
}

// plan returns the directories of this hierarchy.
func (h hierarchy) plan(name string, limits map[string][2]map[string]string) []cgroup {
	if h.v2 {
		return h.planV2(name, limits)
	}
	files := map[string]string{}
	for _, c := range h.controllers {
		for file, value := range limits[c][0] {
			files[file] = value
		}
	}
	if len(files) == 0 {
		return nil
	}
	return []cgroup{{dir: filepath.Join(h.own, name), files: files}}
}

// planV2 looks upward for a directory that hands its controllers to children, and
// that is this user's to make one in.
func (h hierarchy) planV2(name string, limits map[string][2]map[string]string) []cgroup {
	for dir := h.own; below(dir, h.root); dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil || unix.Access(dir, unix.W_OK) != nil {
			continue
		}
		files := map[string]string{}
		for _, c := range strings.Fields(string(data)) {
			for file, value := range limits[c][1] {
				files[file] = value
			}
		}
		if len(files) > 0 {
			return []cgroup{{dir: filepath.Join(dir, name), files: files}}
		}
	}
	return nil
}

// joinCgroups makes the directories and puts the process into them. It returns the
// controllers whose limits hold: where a directory or a file is not ours to make or
// write, they do not.
func joinCgroups(groups []cgroup, pid int) (held []string, err error) {
	for _, g := range groups {
		controllers, err := g.join(pid)
		if err != nil && !notAllowed(err) {
			return held, fmt.Errorf("set limits: %w", err)
		}
		held = append(held, controllers...)
	}
	return held, nil
}

func notAllowed(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, unix.EOPNOTSUPP) // a directory of threads
}

func (g cgroup) join(pid int) (held []string, err error) {
	if err := os.Mkdir(g.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	failed := map[string]bool{}
	for name, value := range g.files {
		if err := writeFile(filepath.Join(g.dir, name), value); err != nil {
			if !notAllowed(err) {
				return nil, err
			}
			failed[controllerOf(name)] = true
		}
	}
	if err := writeFile(filepath.Join(g.dir, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
		return nil, err
	}
	for name := range g.files {
		if c := controllerOf(name); !failed[c] && !slices.Contains(held, c) {
			held = append(held, c)
		}
	}
	return held, nil
}

// controllerOf is the controller that a file of a cgroup belongs to.
func controllerOf(file string) string {
	c, _, _ := strings.Cut(file, ".")
	return c
}

// unheld returns the limits of spec that no cgroup holds. Processes are counted
// without one, too.
func unheld(spec sandbox.Spec, held []string) []sandbox.Limit {
	var list []sandbox.Limit
	if spec.MemoryMiB > 0 && !slices.Contains(held, "memory") {
		list = append(list, sandbox.LimitMemory)
	}
	if spec.CPUs > 0 && !slices.Contains(held, "cpu") {
		list = append(list, sandbox.LimitCPUs)
	}
	return list
}

// writeFile writes to a file that the kernel made: never creating one.
func writeFile(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// removeCgroups removes the directories. The last process may be counted for a
// moment after it is gone.
func removeCgroups(ctx context.Context, dirs []string) error {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var errList error
	for _, dir := range dirs {
		for pause := time.Millisecond; ; pause *= 2 {
			err := unix.Rmdir(dir)
			if err == nil || errors.Is(err, unix.ENOENT) {
				break
			}
			if !errors.Is(err, unix.EBUSY) || ctx.Err() != nil {
				errList = errors.Join(errList, &os.PathError{Op: "rmdir", Path: dir, Err: err})
				break
			}
			sleep(ctx, pause)
		}
	}
	return errList
}

// sleep waits for d or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
