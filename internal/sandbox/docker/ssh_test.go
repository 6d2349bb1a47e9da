package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/testenv"
)

// fakeSSH writes a program that is called as ssh is.
func fakeSSH(t *testing.T, script string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the fake ssh is a shell script")
	}
	path := filepath.Join(t.TempDir(), "ssh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSSHDialsStdio(t *testing.T) {
	realEngine(t, TransportAuto)
	_, err := exec.LookPath("docker")
	testenv.Need(t, "the docker command", err == nil)
	args := filepath.Join(t.TempDir(), "args")
	program := fakeSSH(t, `echo "$@" >`+args+`
unset DOCKER_HOST
exec docker system dial-stdio`)
	p := New(Options{Host: "ssh://me@far:2222", SSH: program})
	defer func() { _ = p.Close() }()
	r := newRequest(t, baseImage(t, p), networkLink)
	box := mustCreate(t, p, r)
	if box.Transport() != TransportExec {
		t.Errorf("transport %s to another machine", box.Transport())
	}
	c := mustConnect(t, box, r.key)
	wantSh(t, c, "echo far", "far")
	got, err := os.ReadFile(args)
	if want := "-l me -p 2222 -- far docker system dial-stdio"; err != nil || !strings.Contains(string(got), want) {
		t.Errorf("ssh was called with %q, %v", got, err)
	}
}

func TestSSHFailureIsExplained(t *testing.T) {
	p := New(Options{Host: "ssh://far", SSH: fakeSSH(t, "echo 'me@far: Permission denied (publickey).' >&2; exit 255")})
	err := p.Ping(t.Context())
	refusal(t, err, "ssh://far", "Permission denied (publickey)")
	if !strings.Contains(errs.HintOf(err), "ssh ") {
		t.Errorf("hint %q", errs.HintOf(err))
	}
}

func TestSSHMissing(t *testing.T) {
	err := New(Options{Host: "ssh://far", SSH: "no-such-ssh-command"}).Ping(t.Context())
	refusal(t, err, "ssh")
}

func TestSSHAddresses(t *testing.T) {
	for _, host := range []string{"ssh://-oProxyCommand=x", "ssh://me@", "ssh://h/path"} {
		err := New(Options{Host: host, SSH: "false"}).Ping(t.Context())
		if errs.KindOf(err) != errs.Config {
			t.Errorf("%s: %v", host, err)
		}
	}
}
