package serverctl

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// process is one whose streams are pipes and whose output is collected.
type process struct {
	Process
	t    *testing.T
	in   *os.File
	outs [2]chan string
	ends [2]*os.File
}

func newProcess(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t}
	p.Args = append([]string{"/opt/insights/bin/insights-agent-server"}, args...)
	p.Stdin, p.in = p.pipe()
	for i := range p.outs {
		read, write := p.pipe()
		p.outs[i], p.ends[i] = make(chan string, 1), write
		go func() {
			b, _ := io.ReadAll(read)
			p.outs[i] <- string(b)
		}()
	}
	p.Stdout, p.Stderr = p.ends[0], p.ends[1]
	return p
}

func (p *process) pipe() (r, w *os.File) {
	p.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = r.Close()
		_ = w.Close()
	})
	return r, w
}

// output ends the process's streams and returns what it wrote.
func (p *process) output() (out, errs string) {
	_ = p.ends[0].Close()
	_ = p.ends[1].Close()
	return <-p.outs[0], <-p.outs[1]
}

func TestActs(t *testing.T) {
	tests := map[string]bool{
		"/opt/insights/bin/insights-agent-server": true, "insights-agent-server": true,
		"git": true, "/opt/insights/bin/git": true, "git-commit": false,
		"insightscli": false, "/usr/bin/insightscli": false, "": false,
	}
	for argv0, want := range tests {
		if Acts(argv0) != want {
			t.Errorf("%q", argv0)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"dance"}, {"archive"}, {"extract", "a", "b"}} {
		p := newProcess(t, args...)
		code := Main(t.Context(), p.Process)
		if _, errs := p.output(); code != 2 || !strings.HasPrefix(errs, "usage: ") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: %d, %q", args, code, errs)
		}
	}
}

func TestVersion(t *testing.T) {
	p := newProcess(t, "version")
	code := Main(t.Context(), p.Process)
	if out, _ := p.output(); code != 0 || !strings.HasPrefix(out, "insights-agent-server ") {
		t.Errorf("%d, %q", code, out)
	}
}

func TestArchiveAndExtract(t *testing.T) {
	src, dst := filepath.Join(t.TempDir(), "file"), t.TempDir()
	if err := os.WriteFile(src, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProcess(t, "archive", src)
	code := Main(t.Context(), p.Process)
	tar, errs := p.output()
	if code != 0 || errs != "" {
		t.Fatalf("%d, %q", code, errs)
	}
	p = newProcess(t, "extract", dst)
	go func() {
		_, _ = io.WriteString(p.in, tar)
		_ = p.in.Close()
	}()
	if code := Main(t.Context(), p.Process); code != 0 {
		t.Error(code)
	}
	if b, err := os.ReadFile(filepath.Join(dst, "file")); err != nil || !bytes.Equal(b, []byte("content")) {
		t.Errorf("%q, %v", b, err)
	}
}

func TestArchiveSaysWhatIsMissing(t *testing.T) {
	p := newProcess(t, "archive", "/no/such/path")
	code := Main(t.Context(), p.Process)
	if _, errs := p.output(); code != 1 || !strings.Contains(errs, "/no/such/path") {
		t.Errorf("%d, %q", code, errs)
	}
}

func TestDriversOfThisBuild(t *testing.T) {
	for _, agent := range []string{"exec", "claude", "codex", "acp:"} {
		if Drivers()[agent] == nil {
			t.Errorf("no driver for agent %s", agent)
		}
	}
}
