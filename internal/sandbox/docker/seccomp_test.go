package docker

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestSeccompProfile(t *testing.T) {
	var profile struct {
		DefaultAction string
		Syscalls      []struct {
			Names  []string
			Action string
			Args   []any
		}
	}
	if err := json.Unmarshal([]byte(seccompProfile), &profile); err != nil {
		t.Fatal(err)
	}
	if profile.DefaultAction != "SCMP_ACT_ERRNO" {
		t.Errorf("what has no rule gets %s", profile.DefaultAction)
	}
	var allowed []string
	for _, rule := range profile.Syscalls {
		allowed = append(allowed, rule.Names...)
		if slices.Contains(rule.Names, "socket") && len(rule.Args) == 0 {
			t.Error("a rule allows every socket family")
		}
	}
	for _, name := range allowed {
		if strings.HasPrefix(name, "io_uring") {
			t.Errorf("%s has a rule", name)
		}
	}
	for _, name := range []string{"read", "execve", "socket", "clone3"} {
		if !slices.Contains(allowed, name) {
			t.Errorf("%s has no rule", name)
		}
	}
}

// The profile as the kernel enforces it.
func TestSeccompInside(t *testing.T) {
	p := realEngine(t, TransportAuto)
	r := newRequest(t, baseImage(t, p), networkLink)
	c := mustConnect(t, mustCreate(t, p, r), r.key)
	for _, check := range []struct{ python, want string }{
		{`import ctypes,os; l=ctypes.CDLL(None,use_errno=True); r=l.syscall(425,8,ctypes.create_string_buffer(256)); print(r, os.strerror(ctypes.get_errno()))`, "-1 Operation not permitted"},
		{`import socket; socket.socket(socket.AF_UNIX); socket.socket(socket.AF_INET); socket.socket(socket.AF_INET6); socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); print("ok")`, "ok"},
		{`
import socket
try: socket.socket(38, socket.SOCK_SEQPACKET) # AF_ALG
except OSError as e: print(e.strerror)`, "Operation not permitted"},
		{`
import os
try: os.unshare(os.CLONE_NEWUSER)
except AttributeError:
    import ctypes; l=ctypes.CDLL(None,use_errno=True); r=l.unshare(0x10000000); print(os.strerror(ctypes.get_errno()))
except OSError as e: print(e.strerror)`, "Operation not permitted"},
	} {
		wantSh(t, c, "python3 -c '"+check.python+"'", check.want)
	}
}
