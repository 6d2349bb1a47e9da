//go:build unix

package proc

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hangs is long enough to tell an answer from a hang.
const hangs = 20 * time.Second

func plain(t *testing.T) *Plain {
	t.Helper()
	r := NewReaper()
	t.Cleanup(r.Close)
	return &Plain{Reaper: r}
}

func spec(argv ...string) Spec {
	return Spec{Argv: argv, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

func start(t *testing.T, s Starter, sp Spec) *Child {
	t.Helper()
	c, err := s.Start(t.Context(), sp)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Signal(syscall.SIGKILL) })
	return c
}

func TestExit(t *testing.T) {
	tests := []struct {
		script string
		want   Exit
	}{
		{"exit 0", Exit{}},
		{"exit 42", Exit{Code: 42}},
		{"kill -TERM $$", Exit{Code: 143, Signal: syscall.SIGTERM}},
	}
	for _, tt := range tests {
		if got := start(t, plain(t), spec("sh", "-c", tt.script)).Exit(); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.script, got, tt.want)
		}
	}
}

func TestStartTellsWhatIsWrongWithTheProgram(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct {
		name string
		argv string
		want error
		code int
	}{
		{"absent from PATH", "no-such-program-here", ErrNotFound, 127},
		{"absent path", filepath.Join(dir, "absent"), ErrNotFound, 127},
		{"empty", "", ErrNotFound, 127},
		{"no x bit", write("plain.txt", "hello", 0o644), ErrNotExecutable, 126},
		{"directory", dir, ErrNotExecutable, 126},
		{"no interpreter", write("script", "#!/no/such/interpreter\n", 0o755), ErrNotFound, 127},
		{"not a program", write("noise", "\x00\x01\x02", 0o755), ErrNotExecutable, 126},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := plain(t).Start(t.Context(), spec(tt.argv))
			if !errors.Is(err, tt.want) || Code(err) != tt.code {
				t.Errorf("got %v (%d), want %v (%d)", err, Code(err), tt.want, tt.code)
			}
		})
	}
}

func TestMissingDirectoryIsNamed(t *testing.T) {
	s := spec("true")
	s.Dir = "/no/such/directory"
	_, err := plain(t).Start(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), "working directory") {
		t.Errorf("got %v", err)
	}
}

func TestEndKillsAGroupThatIgnoresSignals(t *testing.T) {
	out, child, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := spec("sh", "-c", `trap "" INT TERM; echo ready; sleep 1000 & wait; sleep 1000`)
	s.Stdout = child
	c := start(t, plain(t), s)
	_ = child.Close()
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	c.End(50*time.Millisecond, syscall.SIGINT, syscall.SIGTERM)
	if got := c.Exit(); got.Signal != syscall.SIGKILL {
		t.Errorf("got %+v", got)
	}
	// The background sleep holds the pipe: its end shows that the group is gone.
	_ = out.SetReadDeadline(time.Now().Add(hangs))
	if rest, err := io.ReadAll(out); err != nil || len(rest) != 0 {
		t.Errorf("got %q, %v", rest, err)
	}
}

func TestEveryProcessLeadsItsOwnSession(t *testing.T) {
	c := start(t, plain(t), spec("sleep", "1000"))
	if pgid, err := syscall.Getpgid(c.PID()); err != nil || pgid != c.PID() {
		t.Errorf("group of %d is %d, %v", c.PID(), pgid, err)
	}
}

func TestSignalNames(t *testing.T) {
	if got := SignalName(syscall.SIGKILL); got != "SIGKILL" {
		t.Error(got)
	}
	if SignalByName("SIGINT") != syscall.SIGINT || SignalByName("SIGNONSENSE") != 0 {
		t.Error("names do not give signals")
	}
}
