package sandboxtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
)

var isolationTests = []test{
	{name: "binds", run: binds},
	{name: "runs as the agent", run: runsAsAgent},
	{name: "secrets of the boot leave no trace", run: noSecrets},
	{name: "no privileges", run: noPrivileges},
	{name: "walls", run: walls},
	{name: "agent cannot relay the host", run: relay},
	{name: "agent cannot flood the socket", run: flood},
}

func binds(l *lab) {
	r := l.newRun()
	source := filepath.Join(l.root, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		l.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "host"), []byte("from the host"), 0o644); err != nil {
		l.Fatal(err)
	}
	for _, path := range []string{source, filepath.Join(source, "host")} {
		if err := os.Lchown(path, l.UID, l.GID); err != nil && os.Geteuid() == 0 {
			l.Fatal(err)
		}
	}
	target := task.WorkspaceDir + "/repos/org/repo"
	r.boot.Dir = target
	r.spec.Mounts = []sandbox.Mount{{Kind: sandbox.MountBind, Source: source, Target: target}}
	if l.Isolated {
		r.spec.Mounts = append(r.spec.Mounts, sandbox.Mount{
			Kind: sandbox.MountBind, Source: source, Target: task.WorkspaceDir + "/fixed", ReadOnly: true,
		})
	}
	c := l.connect(l.create(r), r.key)
	l.want(c, "cat host; echo from the sandbox > box", "from the host")
	if b, err := os.ReadFile(filepath.Join(source, "box")); string(b) != "from the sandbox\n" {
		l.Errorf("the host reads %q, %v", b, err)
	}
	if l.Isolated {
		l.want(c, "cat "+task.WorkspaceDir+"/fixed/host", "from the host")
		if _, code := l.shell(c, "echo x > "+task.WorkspaceDir+"/fixed/box"); code == 0 {
			l.Error("a read-only bind was written to")
		}
	}
}

func runsAsAgent(l *lab) {
	if !l.Isolated {
		return
	}
	_, c, _ := l.start()
	l.want(c, "id -u", strconv.Itoa(l.UID))
	l.want(c, "id -g", strconv.Itoa(l.GID))
	l.want(c, "cd; pwd", "/home/agent")
	l.want(c, "pwd", task.WorkspaceDir)
	l.want(c, "touch /tmp/x && stat -c %u:%g /tmp/x", strconv.Itoa(l.UID)+":"+strconv.Itoa(l.GID))
}

// noSecrets: what PID 1 was told at start is nowhere that the agent can read.
func noSecrets(l *lab) {
	if !l.Isolated {
		return
	}
	_, c, r := l.start()
	out, _ := l.shell(c, "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ /run/insights/* 2>/dev/null | tr '\\0' '\\n'; ls -a /run/insights; env")
	for _, form := range []string{
		string(r.key.Secret), base64.StdEncoding.EncodeToString(r.key.Secret), hex.EncodeToString(r.key.Secret),
	} {
		if strings.Contains(out, form) {
			l.Error("the agent can read the run's secret")
		}
	}
	if strings.Contains(out, "boot.json") {
		l.Error("the boot file is still there")
	}
}

func noPrivileges(l *lab) {
	if !l.Isolated {
		return
	}
	_, c, _ := l.start()
	l.want(c, "grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb)' /proc/self/status | grep -vc 0000000000000000 || true", "0")
	l.want(c, "grep NoNewPrivs /proc/self/status | tr -dc 01", "1")
	for what, script := range map[string]string{
		"signals to PID 1":       "kill -9 1",
		"the system directories": "touch /usr/planted",
		"mounts":                 "mount -t tmpfs none /mnt",
		"Docker's socket":        "ls /var/run/docker.sock",
		"shadow passwords":       "cat /etc/shadow",
	} {
		if out, code := l.shell(c, script); code == 0 && what != "signals to PID 1" {
			l.Errorf("%s: %s succeeded: %s", what, script, out)
		}
	}
	l.want(c, "echo alive", "alive")
}

// relay: an agent carries a real host's handshake to PID 1 through a process of its
// own, to sit in between. PID 1 does not let it in, and the host's link stays.
func relay(l *lab) {
	if !l.Isolated {
		return
	}
	_, c, r := l.start()
	ours, theirs := net.Pipe()
	ended := make(chan int, 1)
	ctx := l.context()
	said := newSignal("")
	go func() {
		code, _ := c.Exec(ctx, wire.Command{Argv: []string{wire.ServerPath, "link"}}, agent.Stdio{In: theirs, Out: theirs, Err: said})
		_ = theirs.Close()
		ended <- code
	}()
	if err := link.HostHandshake(ctx, ours, r.key); err == nil {
		l.Error("a process of the agent relayed the host's handshake")
	}
	_ = ours.Close()
	// Where PID 1 has another uid the agent may not even connect, which is as good.
	if code := <-ended; code != 0 && !strings.Contains(said.String(), "permission denied") {
		l.Errorf("the relay ended with code %d: it never got as far as PID 1: %s", code, said)
	}
	l.want(c, "echo alive", "alive")
}

// flood: connections of the agent, as many as it can make, do not keep a host out.
func flood(l *lab) {
	if !l.Isolated {
		return
	}
	box, c, r := l.start()
	started := newSignal("flooding")
	ctx, cancel := context.WithCancel(l.context())
	defer cancel()
	go func() {
		_, err := c.Exec(ctx, sh("echo flooding; while :; do for i in 1 2 3 4 5 6 7 8; do "+wire.ServerPath+" link & done; wait; done"),
			agent.Stdio{Out: started})
		started.ended <- err
	}()
	started.wait(l)
	next := l.connect(box, r.key)
	l.want(next, "echo in", "in")
	cancel()
	<-started.ended
}

// walls: what an agent could try, tried by the agent server's own program, leads nowhere; and
// PID 1 keeps itself closed.
func walls(l *lab) {
	if !l.Isolated {
		return
	}
	_, c, _ := l.start()
	var out bytes.Buffer
	code, err := c.Exec(l.context(), wire.Command{Argv: []string{wire.ServerPath, wire.ProbeWord}},
		agent.Stdio{In: strings.NewReader(`{"op":"` + wire.ProbeLook + "\"}\n"), Out: &out})
	var answer wire.ProbeAnswer
	var look wire.Look
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &answer)
	}
	if err == nil {
		err = json.Unmarshal(answer.Result, &look)
	}
	if err != nil || code != 0 || len(look.Calls) == 0 || len(look.PID1) == 0 {
		l.Fatalf("code %d, %v: %s", code, err, out.String())
	}
	for _, tried := range []map[string]string{look.Calls, look.PID1} {
		for what, refusal := range tried {
			if refusal == "" {
				l.Errorf("%s worked", what)
			}
		}
	}
	if !look.NoNewPrivs || look.Seccomp != 2 || look.Runs != "" || len(look.Sockets) > 0 {
		l.Errorf("no_new_privs %v, seccomp mode %d, /tmp: %q, sockets %v", look.NoNewPrivs, look.Seccomp, look.Runs, look.Sockets)
	}
	seen, err := c.Inspect(l.context())
	if err != nil || seen.Dumpable || seen.Mounts == "" {
		l.Errorf("PID 1: dumpable %v, %v", seen.Dumpable, err)
	}
}
