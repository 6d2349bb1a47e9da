package jail

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/link/wire"
)

// A name that only begins like a directory is not below it: taken for it, a mount point
// would be made after the root is sealed, or inside the host's files.
func TestBelow(t *testing.T) {
	for _, tt := range []struct {
		path, dir string
		want      bool
	}{
		{"/tmp", "/tmp", true},
		{"/tmp/a", "/tmp", true},
		{"/tmp/a", "/tmp/", true},
		{"/tmpfs", "/tmp", false},
		{"/tm", "/tmp", false},
		{"/a", "/", true},
		{"/home/agent2", "/home/agent", false},
	} {
		if below(tt.path, tt.dir) != tt.want {
			t.Errorf("%s below %s: %v", tt.path, tt.dir, !tt.want)
		}
	}
	b := &rootBuilder{Plan: plan.Plan{Home: "/home/agent"}}
	for target, late := range map[string]bool{
		"/tmp/workspace": true, "/run/insights": true, "/home/agent/.cache": true, "/home/agent2": false, "/opt/insights/bin": false, "/usr": false,
	} {
		if b.isLate(target) != late {
			t.Errorf("%s is late: %v", target, !late)
		}
	}
}

func TestCandidates(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  []string
		want []string
	}{
		{"sh", []string{"PATH=/a:/b"}, []string{"/a/sh", "/b/sh"}},
		{"sh", []string{"PATH=/x", "PATH=/a"}, []string{"/a/sh"}},
		{"sh", []string{"PATH=:/a"}, []string{"./sh", "/a/sh"}},
		{"./sh", []string{"PATH=/a"}, []string{"./sh"}},
		{"/bin/sh", nil, []string{"/bin/sh"}},
		{"", []string{"PATH=/a"}, []string{""}},
	} {
		if got := candidates(proc.Spec{Argv: []string{tt.name}, Env: tt.env}); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q in %v: %q", tt.name, tt.env, got)
		}
	}
}

// The boot file holds the run's secrets: it is gone when it has been read, whatever was
// in it, and a link in its place is not followed.
func TestTakeBoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), wire.BootName)
	for text, ok := range map[string]bool{`{"run":"r"}`: true, `{`: false, "": false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		boot, err := takeBoot(path)
		if (err == nil) != ok || ok && boot.Run != "r" {
			t.Errorf("%q: %+v, %v", text, boot, err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q is still there", text)
		}
	}
	target := path + ".target"
	if err := errors.Join(os.WriteFile(target, []byte(`{"run":"r"}`), 0o600), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
	if boot, err := takeBoot(path); err == nil || boot.Run != "" {
		t.Errorf("a link was followed: %+v", boot)
	}
}

// A line is added once, on a line of its own; an image without the file goes without, and
// a link that an image plants takes root nowhere else.
func TestNameAgent(t *testing.T) {
	dir := t.TempDir()
	for before, want := range map[string]string{
		"root:x:0:0::/:/bin/sh\n":        "root:x:0:0::/:/bin/sh\nagent:x:7:\n",
		"root:x:0:0::/:/bin/sh":          "root:x:0:0::/:/bin/sh\nagent:x:7:\n",
		"":                               "agent:x:7:\n",
		"other:x:7:7::/:/bin/sh\n":       "other:x:7:7::/:/bin/sh\n",
		"other:x:77:7::/:/bin/sh\nbad\n": "other:x:77:7::/:/bin/sh\nbad\nagent:x:7:\n",
	} {
		path := filepath.Join(dir, "passwd")
		if err := os.WriteFile(path, []byte(before), 0o644); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := nameAgent(path, groupLine(7), 7); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := os.ReadFile(path); string(got) != want {
			t.Errorf("%q became %q", before, got)
		}
	}
	victim, link := filepath.Join(dir, "victim"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(victim, nil, 0o644), os.Symlink(victim, link)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(nameAgent(link, "x\n", 7), nameAgent(filepath.Join(dir, "absent"), "x\n", 7)); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(victim); len(got) != 0 {
		t.Errorf("%q was written through a link", got)
	}
}

// jobFrom reads a job as PID 1 gets it, from a pipe.
func jobFrom(t *testing.T, text io.Reader) (plan.Job, error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(w, text) // fails when the reader has had enough
		_ = w.Close()
	}()
	return readJob(r)
}

// A creator that dies, or a job that is cut or too large, ends the set-up with a reason.
func TestReadJob(t *testing.T) {
	job, err := jobFrom(t, strings.NewReader(`{"plan":{"uid":7,"mounts":[{"target":"/x","ro":true}]},"boot":{"run":"r"}}`))
	if err != nil || job.Plan.UID != 7 || !job.Plan.Mounts[0].ReadOnly || string(job.Boot) != `{"run":"r"}` {
		t.Errorf("%+v, %v", job, err)
	}
	for name, in := range map[string]io.Reader{
		"nothing": strings.NewReader(""), "cut": strings.NewReader(`{"plan":{"uid":7`),
		"too large": io.LimitReader(endless{}, plan.MaxJob+1),
	} {
		if _, err := jobFrom(t, in); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// The refusals that README and issue promise are made from the step and errno of the
// report: they must survive every wrapping.
func TestReportNamesTheStep(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want plan.Report
	}{
		{nil, plan.Report{OK: true}},
		{errors.New("x"), plan.Report{Text: "x"}},
		{
			fmt.Errorf("a: %w", step(plan.StepBind, pathError("mount", "/x", unix.EPERM))),
			plan.Report{Step: plan.StepBind, Errno: int(unix.EPERM), Text: "a: bind mount: mount /x: operation not permitted"},
		},
		{errors.Join(step(plan.StepDev, unix.ENOSPC), errors.New("y")), plan.Report{Step: plan.StepDev, Errno: int(unix.ENOSPC), Text: "make /dev: no space left on device\ny"}},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := sendReport(w, tt.err); err != nil {
			t.Fatal(err)
		}
		var got plan.Report
		if err := json.NewDecoder(r).Decode(&got); err != nil || got != tt.want {
			t.Errorf("%v: %+v, %v", tt.err, got, err)
		}
		_ = r.Close()
	}
	if step(plan.StepDev, nil) != nil || pathError("x", "y", nil) != nil {
		t.Error("no error became one")
	}
}

// Cloud metadata services hand out the machine's credentials: their addresses are among
// the refused, and the message to the kernel says so of exactly that prefix.
func TestMetadataIsRefused(t *testing.T) {
	for _, addr := range []string{"169.254.169.254", "169.254.170.2", "fd00:ec2::254", "fe80::1"} {
		covered := false
		for _, p := range refused() {
			covered = covered || p.Contains(netip.MustParseAddr(addr))
		}
		if !covered {
			t.Errorf("%s can be reached", addr)
		}
	}
	for _, p := range refused() {
		msg := unreachable(p).message()
		rt := msg[unix.NLMSG_HDRLEN:]
		if int(binary.NativeEndian.Uint32(msg)) != len(msg) || len(msg)%unix.NLMSG_ALIGNTO != 0 || int(rt[1]) != p.Bits() || rt[7] != unix.RTN_UNREACHABLE {
			t.Errorf("%s: % x", p, msg)
		}
		if addr := p.Masked().Addr().AsSlice(); !bytes.Contains(msg, addr) {
			t.Errorf("%s: no address in % x", p, msg)
		}
	}
}

func TestCopiesOfSmallFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, text := range []string{"", "x", strings.Repeat("y", copyLimit)} {
		_ = os.Remove(path)
		if err := writeCopy(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := readSmall(path); err != nil || string(got) != text {
			t.Errorf("%d bytes became %d, %v", len(text), len(got), err)
		}
	}
	if err := writeCopy(path, nil, 0o644); !errors.Is(err, os.ErrExist) {
		t.Errorf("an existing file: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := readSmall(link); err == nil {
		t.Error("a link was followed")
	}
}
