package selftest

import (
	"errors"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/doctor"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
)

// well is a sandbox whose walls stand.
func well() seen {
	agent := wire.Thread{PID: 7, TID: 7, Name: "probe", UID: 1000, Parent: 1, NoNewPrivs: true, Seccomp: 2}
	first := wire.Thread{PID: 1, TID: 1, Permitted: wire.Kept, Effective: wire.Kept, NoNewPrivs: true, Seccomp: 2}
	return seen{
		Look: wire.Look{
			Calls: map[string]string{
				"setuid 0": "EPERM", "setgroups": "EPERM", "capset": "EPERM", "io_uring_setup": "ENOSYS", "socket AF_ALG": "EAFNOSUPPORT",
			},
			PID1:       map[string]string{"read mem": "EACCES"},
			Interfaces: []wire.Interface{{Name: "lo", Up: true, Loopback: true}, {Name: "tunl0"}},
			NoNewPrivs: true, Seccomp: 2,
		},
		Inspection: wire.Inspection{Threads: []wire.Thread{first, agent}},
	}
}

func TestEveryHoleIsSeen(t *testing.T) {
	tests := []struct {
		want string
		look func(s seen) row
		hole func(s *seen)
	}{
		{"capabilities 0x200000", capabilitiesOf, func(s *seen) { s.Threads[1].Effective = 1 << 21 }},
		{"capabilities 0x1000", capabilitiesOf, func(s *seen) { s.Threads[0].Effective |= 1 << 12 }},
		{"capabilities 0xe0", capabilitiesOf, func(s *seen) { s.Threads[1].Bounding = wire.Kept }},
		{"may gain privileges", capabilitiesOf, func(s *seen) { s.Threads[1].NoNewPrivs = false }},
		{"may gain privileges", capabilitiesOf, func(s *seen) { s.Look.NoNewPrivs = false }},
		{"does not see the process", capabilitiesOf, func(s *seen) { s.Threads = s.Threads[:1] }},
		{"setuid 0 is not refused: it worked", capabilitiesOf, func(s *seen) { s.Calls["setuid 0"] = "" }},
		{"io_uring_setup is not refused: EFAULT", filtersOf, func(s *seen) { s.Calls["io_uring_setup"] = "EFAULT" }},
		{"socket AF_ALG is not refused", filtersOf, func(s *seen) { s.Calls["socket AF_ALG"] = "" }},
		{"seccomp mode 1", filtersOf, func(s *seen) { s.Threads[1].Seccomp = 1 }},
		{"seccomp mode 0", filtersOf, func(s *seen) { s.Look.Seccomp = 0 }},
		{"/run/docker.sock", dockerSocket, func(s *seen) { s.Sockets = []string{"/run/docker.sock"} }},
		{"eth0 is up: 172.17.0.2/16", interfacesOf, func(s *seen) {
			s.Interfaces = append(s.Interfaces, wire.Interface{Name: "eth0", Up: true, Addresses: []string{"172.17.0.2/16"}})
		}},
		{"not even lo", interfacesOf, func(s *seen) { s.Interfaces = nil }},
		{"PID 1 is dumpable", pid1, func(s *seen) { s.Dumpable = true }},
		{"read mem of PID 1", pid1, func(s *seen) { s.PID1["read mem"] = "" }},
		{"/tmp: EPERM", tmp, func(s *seen) { s.Runs = "EPERM" }},
	}
	for _, tt := range tests {
		s := well()
		if r := tt.look(s).report(); r.State != doctor.OK || r.Finding == "" {
			t.Errorf("all is well, and %s says %s: %s", r.Code, r.State, r.Finding)
		}
		tt.hole(&s)
		r := tt.look(s).report()
		if r.State != doctor.Problem || r.Severity != doctor.Error || r.Fix == "" || !strings.Contains(r.Finding, tt.want) {
			t.Errorf("%s: %+v, want %q", r.Code, r, tt.want)
		}
	}
}

func capabilitiesOf(s seen) row { return capabilities(s, false) }
func filtersOf(s seen) row      { return filters(s, false) }

// A kernel that is the sandbox's own may let pass what stays within it, and what it does
// not show of a thread the thread is asked for; no more than that.
func TestForeignKernel(t *testing.T) {
	s := well()
	s.Threads[1].NoNewPrivs, s.Threads[1].Seccomp = false, 0
	s.Calls["unshare user"], s.Calls["open kcore"] = "", "EACCES"
	for _, r := range []row{capabilities(s, true), filters(s, true)} {
		if r.report().State != doctor.OK {
			t.Errorf("%+v", r.report())
		}
	}
	s.Threads[1].Effective, s.Calls["open kcore"] = 1, ""
	for _, r := range []row{capabilities(s, true), filters(s, true)} {
		if r.report().State != doctor.Problem {
			t.Errorf("%+v", r.report())
		}
	}
}

const dockerMounts = `1 0 0:50 / / rw,relatime - overlay overlay rw
2 1 0:51 / /proc rw,nosuid - proc proc rw
3 1 0:52 / /dev rw - tmpfs tmpfs rw
4 1 0:53 / /sys ro,nosuid - sysfs sysfs ro
5 1 254:0 /var/lib/docker/containers/1/hosts /etc/hosts rw - ext4 /dev/vda rw
6 1 254:0 /state/run/1/link /run/insights rw - ext4 /dev/vda rw
7 1 254:0 /state/bin/server /opt/insights/bin/insights-agent-server ro - ext4 /dev/vda rw
8 1 254:0 /state/run/1/copy/repo /tmp/workspace/repos/selftest/repo rw - ext4 /dev/vda rw
9 2 0:52 /null /proc/kcore rw - tmpfs tmpfs rw
`

func TestHostPaths(t *testing.T) {
	look := func(provider, mounts string) doctor.Report {
		run := &test{Options: Options{Name: provider, AgentServer: "/state/bin/server"}, tight: &box{spec: sandbox.Spec{
			Dir:    "/state/run/1",
			Mounts: []sandbox.Mount{{Source: "/state/run/1/copy/repo", Target: repoDir}},
		}}}
		return run.hostPaths(seen{Inspection: wire.Inspection{Mounts: mounts}}).report()
	}
	if r := look("docker", dockerMounts); r.State != doctor.OK || !strings.Contains(r.Finding, "9 mounts, 3 of them asked for") {
		t.Errorf("%+v", r)
	}
	for more, want := range map[string]string{
		"10 1 254:0 / /host rw - ext4 /dev/vda rw":                            "/ (ext4, writable) is mounted at /host",
		"10 1 0:25 /docker.sock /run/docker.sock rw - tmpfs tmpfs rw":         "/docker.sock (tmpfs, writable) is mounted at /run/docker.sock",
		"10 1 254:0 /etc/shadow /etc/shadow ro - ext4 /dev/vda rw":            "/etc/shadow",
		"10 1 254:0 /root /tmp/with\\040space ro - ext4 /dev/vda rw":          "/tmp/with space",
		"10 4 0:53 / /sys rw - sysfs sysfs rw":                                "/sys can be written to",
		"10 1 254:0 /other /run/insights rw - ext4 /dev/vda rw":               "/run/insights is /other",
		"10 1 254:0 /state/bin/server " + wire.ServerPath + " rw - ext4 x rw": "can be written to",
		"10 1 254:0 /usr /usr ro - ext4 /dev/vda rw":                          "/usr",
		"10 3 254:0 /dev/sda /dev/sda rw - ext4 x rw":                         "/dev/sda",
		"nonsense": "nonsense",
		"10 1 254:0 /home/me /home/agent rw - ext4 /dev/vda rw":                 "/home/me",
		"10 1 254:0 /proc-of-host /procfs rw,nosuid - proc proc rw":             "/procfs",
		"10 1 254:0 /sys/fs/cgroup/evil /etc/cgroup rw - cgroup2 cgroup2 rw,ns": "/etc/cgroup",
	} {
		if r := look("docker", dockerMounts+more+"\n"); r.State != doctor.Problem || !strings.Contains(r.Finding, want) {
			t.Errorf("%s: %s: %s", more, r.State, r.Finding)
		}
	}
	local := strings.ReplaceAll(strings.Replace(dockerMounts, "overlay overlay", "tmpfs tmpfs", 1), "5 1 254:0 /var/lib/docker/containers/1/hosts /etc/hosts rw", "5 1 254:0 /usr /usr ro")
	local += "10 1 0:50 /scratch0 /tmp rw - tmpfs tmpfs rw\n"
	if r := look("local", local); r.State != doctor.OK {
		t.Errorf("%+v", r)
	}
	for more, want := range map[string]string{
		"11 1 254:0 /opt/x /opt/x rw - ext4 x rw":           "/opt/x can be written to",
		"11 1 0:99 / /run rw - tmpfs tmpfs rw":              "mounted at /run",
		"11 1 254:0 /home /home/agent rw - ext4 x rw":       "/home",
		"11 1 254:0 / / rw - ext4 x rw":                     "/ is a file system of kind ext4",
		"11 1 254:0 /var/lib /var/lib ro - ext4 /dev/vd rw": "/var/lib",
	} {
		if r := look("local", local+more+"\n"); r.State != doctor.Problem || !strings.Contains(r.Finding, want) {
			t.Errorf("%s: %s: %s", more, r.State, r.Finding)
		}
	}
	if r := look("docker", ""); r.State != doctor.Problem {
		t.Errorf("no mounts at all: %+v", r)
	}
}

func TestRows(t *testing.T) {
	r := row{code: "c", title: "t", fix: "f", problems: []string{"1", "2", "3", "4", "5", "6"}}.report()
	if r.Finding != "1; 2; 3; 4; 5; and others" || r.Fix != "f" {
		t.Errorf("%+v", r)
	}
	r = broken(row{fix: "f"}, errs.New("x", errs.Unavailable, "start it", "no\nengine"))
	if r.State != doctor.Problem || !r.Away || r.Fix != "start it" || r.Finding != "no engine" {
		t.Errorf("%+v", r)
	}
	if r := broken(row{fix: "f"}, errors.New("x")); r.Away || r.Fix != "f" {
		t.Errorf("%+v", r)
	}
	warned := row{text: "fine"}
	warned.warn("impaired", "help")
	if r := warned.report(); r.Severity != doctor.Warning || r.Fix != "help" || doctor.Verdict([]doctor.Report{r}) != nil {
		t.Errorf("%+v", r)
	}
	if r := (row{text: "fine", skipped: "not here"}).report(); r.State != doctor.Skipped || r.Finding != "not here" {
		t.Errorf("%+v", r)
	}
}
