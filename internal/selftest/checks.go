package selftest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/doctor"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/repo"
)

// elsewhere is what there is to do about a wall that does not stand.
const elsewhere = "run nothing there that you do not trust; take another --provider or --runtime"

// checks asks everything. What cannot be asked is a problem of its own row.
func (t *test) checks(ctx context.Context) []doctor.Report {
	seen, err := t.look(ctx)
	if err != nil {
		return []doctor.Report{broken(row{code: "sandbox-look", title: "The sandbox can be looked at", fix: elsewhere}, err)}
	}
	var reports []doctor.Report
	for _, r := range []row{
		capabilities(seen, t.Foreign), filters(seen, t.Foreign), dockerSocket(seen), t.hostPaths(seen), interfacesOf(seen), pid1(seen), tmp(seen),
	} {
		reports = append(reports, r.report())
	}
	for _, check := range []func(context.Context) (row, error){
		t.others, t.metadata, t.owner, t.cpus, t.processes, t.memory,
	} {
		r, err := check(ctx)
		if err != nil {
			reports = append(reports, broken(r, err))
			continue
		}
		reports = append(reports, r.report())
	}
	return append(reports, t.tools(ctx)...)
}

// seen is what there is to see in the tight sandbox.
type seen struct {
	wire.Look
	wire.Inspection
}

// look asks PID 1 while the probe, a process of the service for commands, is there.
func (t *test) look(ctx context.Context) (seen, error) {
	var s seen
	if err := t.tight.probe.ask(ctx, wire.ProbeLook, nil, &s.Look); err != nil {
		return s, err
	}
	var err error
	s.Inspection, err = t.tight.client.Inspect(ctx)
	return s, err
}

// capabilities: of every thread of every process.
func capabilities(s seen, foreign bool) row {
	r := row{code: "sandbox-capabilities", title: "No thread has a privilege", fix: elsewhere}
	processes, others, root := map[int]bool{}, false, false
	for _, thread := range s.Threads {
		processes[thread.PID] = true
		root = root || thread.PID != 1 && thread.UID == 0 // that of a user's own engine: the user
		others = others || thread.PID != 1 && thread.Parent != 0
		if foreign { // kernels that do not show these two in /proc say them to the process itself
			thread.NoNewPrivs = thread.NoNewPrivs || s.Look.NoNewPrivs
			thread.Seccomp = max(thread.Seccomp, 1)
		}
		if why := thread.Wrong(); why != "" {
			r.wrong(why)
		}
	}
	if !others {
		r.wrong("PID 1 does not see the process that was started")
	}
	if !s.Look.NoNewPrivs {
		r.wrong("a process may gain privileges")
	}
	for _, call := range []string{"setuid 0", "setgroups", "capset"} {
		if root && call == "setuid 0" {
			continue
		}
		if !refused(s.Calls[call]) && s.Calls[call] != "EINVAL" { // an id that does not exist here
			r.wrong(call + " is not refused: " + word(s.Calls[call]))
		}
	}
	r.text = fmt.Sprintf("%d threads of %d processes have none and gain none", len(s.Threads), len(processes))
	return r
}

// filters: the filter of system calls is in force, in every thread but those of PID 1 where
// that starts processes itself.
func filters(s seen, foreign bool) row {
	r := row{code: "sandbox-seccomp", title: "System calls are filtered", fix: elsewhere}
	var granted []string
	refusals := 0
	for _, name := range sorted(s.Calls) {
		if slices.Contains([]string{"setuid 0", "setgroups", "capset"}, name) {
			continue
		}
		switch {
		case refused(s.Calls[name]):
			refusals++
		case foreign && !strings.HasPrefix(name, "open ") && !strings.HasPrefix(name, "write "):
			granted = append(granted, name) // by a kernel that is the sandbox's own
		default:
			r.wrong(name + " is not refused: " + word(s.Calls[name]))
		}
	}
	r.text = fmt.Sprintf("mode 2, and %d ways out are refused, io_uring and foreign socket families among them", refusals)
	if foreign {
		r.text = fmt.Sprintf("the runtime's own kernel answers, and refuses %d of them", refusals)
		if len(granted) > 0 {
			r.text += "; within itself it lets pass: " + strings.Join(granted, ", ")
		}
		return r
	}
	for _, thread := range s.Threads {
		if thread.PID != 1 && thread.Seccomp != 2 {
			r.wrong(fmt.Sprintf("%s: seccomp mode %d", thread, thread.Seccomp))
		}
	}
	if s.Look.Seccomp != 2 {
		r.wrong(fmt.Sprintf("the process that was started has seccomp mode %d", s.Look.Seccomp))
	}
	return r
}

// refused reports whether an errno is a no, and not what a call that is allowed makes of the
// nonsense that it was given.
func refused(errno string) bool {
	switch errno {
	case "EPERM", "EACCES", "ENOSYS", "ENOENT", "EROFS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EOPNOTSUPP":
		return true
	}
	return false
}

func word(errno string) string {
	if errno == "" {
		return "it worked"
	}
	return errno
}

func dockerSocket(s seen) row {
	r := row{code: "sandbox-docker-socket", title: "No socket of the host", fix: elsewhere, text: "nobody listens at any socket but the link's"}
	for _, path := range s.Sockets {
		r.wrong("somebody listens at " + path)
	}
	return r
}

func interfacesOf(s seen) row {
	r := row{code: "sandbox-interfaces", title: "No network interface but lo", fix: elsewhere, text: "lo is the only one that is up"}
	for _, i := range s.Interfaces {
		if !i.Loopback && (i.Up || len(i.Addresses) > 0) {
			r.wrong(fmt.Sprintf("%s is up: %s", i.Name, strings.Join(i.Addresses, " ")))
		}
	}
	if len(s.Interfaces) == 0 {
		r.wrong("there is not even lo")
	}
	return r
}

func pid1(s seen) row {
	r := row{code: "sandbox-pid1", title: "PID 1 is closed", fix: elsewhere, text: fmt.Sprintf("not dumpable, and %d ways into it are refused", len(s.PID1))}
	if s.Dumpable {
		r.wrong("PID 1 is dumpable")
	}
	for _, name := range sorted(s.PID1) {
		if s.PID1[name] == "" {
			r.wrong(name + " of PID 1 is not refused")
		}
	}
	return r
}

func tmp(s seen) row {
	r := row{code: "sandbox-tmp", title: "Programs run from /tmp", fix: elsewhere, text: "they do"}
	if s.Runs != "" {
		r.wrong("/tmp: " + s.Runs)
	}
	return r
}

// others: one sandbox finds nothing of another.
func (t *test) others(ctx context.Context) (row, error) {
	r := row{code: "sandbox-others", title: "No other sandbox is within reach", fix: elsewhere}
	const ways = 4 // at least: two files, its own address, the abstract socket
	m := wire.Marker{Name: string(t.other.run), Port: 41871}
	if err := t.other.probe.ask(ctx, wire.ProbeOccupy, m, nil); err != nil {
		return r, err
	}
	var look wire.Look
	if err := t.other.probe.ask(ctx, wire.ProbeLook, nil, &look); err != nil {
		return r, err
	}
	for _, i := range look.Interfaces {
		for _, a := range i.Addresses {
			address, _, _ := strings.Cut(a, "/")
			m.Addresses = append(m.Addresses, address)
		}
	}
	var own, found []string
	if err := t.other.probe.ask(ctx, wire.ProbeReach, m, &own); err != nil {
		return r, err
	}
	if err := t.tight.probe.ask(ctx, wire.ProbeReach, m, &found); err != nil {
		return r, err
	}
	if len(own) < ways { // the test itself does not work
		r.wrong("a sandbox finds itself in too few ways: " + strings.Join(own, ", "))
	}
	for _, where := range found {
		r.wrong("another sandbox is found at " + where)
	}
	r.text = fmt.Sprintf("%d ways to another one lead nowhere", len(own))
	return r, nil
}

// metadataServices are addresses of the services that hand out a machine's credentials.
func metadataServices() []string {
	return []string{"169.254.169.254:80", "169.254.170.2:80", "100.100.100.200:80", "168.63.129.16:80", "192.0.0.192:80", "[fd00:ec2::254]:80"}
}

func (t *test) metadata(ctx context.Context) (row, error) {
	r := row{code: "sandbox-metadata", title: "Metadata services are refused", fix: elsewhere}
	addresses := metadataServices()
	for _, address := range addresses {
		var d wire.Dialled
		if err := t.tight.probe.ask(ctx, wire.ProbeDial, wire.Dial{Address: address}, &d); err != nil {
			return r, err
		}
		if d.Bytes > 0 || d.Error == "" {
			r.wrong(fmt.Sprintf("%s answers: %d bytes", address, d.Bytes))
		}
	}
	r.text = fmt.Sprintf("%d addresses; the host was asked for %d and dialled none", len(addresses), len(t.tight.refusals()))
	return r, nil
}

// owner: what the agent makes in a mounted directory belongs to the user.
func (t *test) owner(ctx context.Context) (row, error) {
	r := row{code: "sandbox-owner", title: "Files in mounts belong to you", fix: "do not use --mount here"}
	const name = "probe-owner"
	if err := t.tight.probe.ask(ctx, wire.ProbeFile, repoDir+"/"+name, nil); err != nil {
		return r, err
	}
	path := t.tight.hostRepo() + "/" + name
	if _, err := os.Lstat(path); err != nil {
		r.wrong("a file that was made inside is not there on the host")
		return r, nil
	}
	uid, known := repo.Owner(path)
	r.text = fmt.Sprintf("user %d, inside and outside", uid)
	if !known {
		r.skipped = "cannot be told on this system"
	} else if uid != t.UID {
		r.wrong(fmt.Sprintf("a file of the agent belongs to user %d, not %d", uid, t.UID))
	}
	return r, nil
}

func sorted(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
