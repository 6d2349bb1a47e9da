package selftest

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
)

// mountpoint is one line of /proc/self/mountinfo.
type mountpoint struct {
	root, target, kind string
	device             string // major:minor of the file system
	readOnly           bool
}

func parseMounts(text string) []mountpoint {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var all []mountpoint
	for line := range strings.Lines(text) {
		left, right, ok := strings.Cut(line, " - ")
		place, kind := strings.Fields(left), strings.Fields(right)
		if !ok || len(place) < 6 || len(kind) < 1 {
			all = append(all, mountpoint{target: strings.TrimSpace(line)}) // and nothing is allowed there
			continue
		}
		all = append(all, mountpoint{
			root: unescape.Replace(place[3]), device: place[2], target: unescape.Replace(place[4]), kind: kind[0],
			readOnly: slices.Contains(strings.Split(place[5], ","), "ro"),
		})
	}
	return all
}

// kernelMounts are the mounts that hold nothing of the host's files, by where they may be.
func kernelMounts() map[string][]string {
	return map[string][]string{
		"/proc": {"proc", "tmpfs", "devtmpfs"}, // and what is masked in it
		"/sys":  {"sysfs", "tmpfs", "devtmpfs", "cgroup", "cgroup2"},
		"/dev":  {"tmpfs", "devtmpfs", "devpts", "mqueue", "dev"}, // the last one is gVisor's
	}
}

// engineFiles are files that engines make for each container.
func engineFiles() []string {
	return []string{"/etc/resolv.conf", "/etc/hosts", "/etc/hostname", "/run/.containerenv"}
}

// systemDirs hold the host's programs, which a sandbox without an image has instead of one.
func systemDirs() []string {
	return []string{"/usr", "/opt", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
}

// hostPaths: nothing of the host is inside but what was asked for.
func (t *test) hostPaths(s seen) row {
	r := row{code: "sandbox-host-paths", title: "No path of the host but those asked for", fix: elsewhere}
	expected := t.tight.spec.Mounts
	expected = append(slices.Clone(expected),
		sandbox.Mount{Source: t.tight.spec.Dir + "/link", Target: wire.LinkDir},
		sandbox.Mount{Source: t.AgentServer, Target: wire.ServerPath, ReadOnly: true})
	if t.Name == config.ProviderLocal {
		for _, dir := range t.ToolDirs {
			expected = append(expected, sandbox.Mount{Source: dir, Target: path.Clean(dir), ReadOnly: true})
		}
	}
	mounts := parseMounts(s.Mounts)
	own, device := 0, "" // of the root, where a sandbox without an image keeps all its own files
	for _, m := range mounts {
		if m.target == "/" {
			device = m.device
		}
	}
	for _, m := range mounts {
		why, ours := t.judgeMount(m, expected, device)
		if why != "" {
			r.wrong(why)
		}
		if ours {
			own++
		}
	}
	if len(mounts) == 0 {
		r.wrong("PID 1 does not tell")
	}
	r.text = fmt.Sprintf("%d mounts, %d of them asked for, the others hold nothing of the host", len(mounts), own)
	if t.Name == config.ProviderLocal {
		r.text = fmt.Sprintf("%d mounts: %d asked for, programs and settings of the host read-only, nothing else", len(mounts), own)
	}
	return r
}

// judgeMount says what is wrong with a mount, and whether it was asked for.
func (t *test) judgeMount(m mountpoint, expected []sandbox.Mount, device string) (why string, ours bool) {
	for _, e := range expected {
		if e.Target == m.target {
			return wrongSource(m, e), true
		}
	}
	if t.Name == config.ProviderLocal {
		return wrongLocal(m, device), false
	}
	if m.target == "/" || slices.Contains(engineFiles(), m.target) {
		return "", false
	}
	return wrongKernel(m), false
}

// wrongSource judges a mount that was asked for.
func wrongSource(m mountpoint, e sandbox.Mount) string {
	switch {
	case e.ReadOnly && !m.readOnly:
		return m.target + " can be written to"
	// Kernels that do not tell the root of a mount say "/".
	case m.root != "/" && !strings.HasSuffix(e.Source, m.root) && !strings.HasSuffix(m.root, e.Source):
		return fmt.Sprintf("%s is %s, not %s", m.target, m.root, e.Source)
	}
	return ""
}

// wrongLocal judges a mount of a sandbox that has no image: a part of its own root, one of
// the directories of the host's programs, or a device.
func wrongLocal(m mountpoint, device string) string {
	own := m.kind == "tmpfs" && m.device == device
	switch {
	case m.target == "/" && m.kind != "tmpfs":
		return "/ is a file system of kind " + m.kind
	case m.target == "/", own && slices.Contains([]string{"/tmp", "/run", "/home/agent"}, m.target):
		return ""
	case path.Dir(m.target) == "/dev":
		return ""
	case slices.ContainsFunc(systemDirs(), func(dir string) bool { return under(m.target, dir) }):
		if !m.readOnly {
			return m.target + " can be written to"
		}
		return ""
	}
	return wrongKernel(m)
}

// wrongKernel judges a mount that can only be one of what the kernel makes by itself.
func wrongKernel(m mountpoint) string {
	if m.kind == "sysfs" && !m.readOnly {
		return m.target + " can be written to"
	}
	for at, kinds := range kernelMounts() {
		if under(m.target, at) && slices.Contains(kinds, m.kind) {
			return ""
		}
	}
	mode := "writable"
	if m.readOnly {
		mode = "read-only"
	}
	return fmt.Sprintf("%s (%s, %s) is mounted at %s", m.root, m.kind, mode, m.target)
}

func under(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
