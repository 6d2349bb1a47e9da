package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/Insights/insightscli/internal/testenv"
)

// programDir is the directory of the program that was built for the tests.
var programDir atomic.Pointer[string]

// program builds the program once, static, so that it can be its own agent server.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "insightscli-test-*")
	if err != nil {
		return "", err
	}
	programDir.Store(&dir)
	bin := filepath.Join(dir, "insightscli")
	build := exec.Command("go", "build", "-o", bin, "../../cmd/insightscli")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return bin, os.Chmod(dir, 0o755) // the agent's uid runs it, too
})

// needSandbox returns the program, on a machine that can make local sandboxes.
func needSandbox(t *testing.T) string {
	t.Helper()
	testenv.Need(t, "Linux", runtime.GOOS == "linux")
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, "run", "--provider=local", "--", "true")
	cmd.Env = append(os.Environ(), "INSIGHTSCLI_STATE_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 5 {
		testenv.Need(t, "local sandboxes: "+string(out), false)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

// TestSandboxScript runs the scripts that make real sandboxes, on every provider of
// this machine. One that is about a single provider says so in its name.
func TestSandboxScript(t *testing.T) {
	bin := needSandbox(t)
	for _, provider := range []string{"local", "docker"} {
		t.Run(provider, func(t *testing.T) {
			if provider == "docker" {
				needEngine(t, bin)
			}
			testscript.Run(t, testscript.Params{
				Dir:                 filepath.Join("testdata", "sandbox"),
				RequireExplicitExec: true,
				RequireUniqueNames:  true,
				Setup:               func(env *testscript.Env) error { return sandboxHome(env, bin, provider) },
				Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exitsWith},
				Condition: func(cond string) (bool, error) {
					return cond == provider, nil
				},
			})
		})
	}
}

// sandboxHome is scriptHome with the built program, a provider, and an end: what a
// script that failed half-way left at work is cancelled.
func sandboxHome(env *testscript.Env, bin, provider string) error {
	env.Setenv("SANDBOX_PROVIDER", provider)
	env.Setenv("INSIGHTSCLI_NETWORK", "link")
	env.Setenv("PATH", filepath.Dir(bin)+string(os.PathListSeparator)+env.Getenv("PATH"))
	vars := append(os.Environ(), "INSIGHTSCLI_STATE_DIR="+filepath.Join(env.WorkDir, "state"))
	env.Defer(func() {
		for _, args := range [][]string{{"stop", "--cancel"}, {"prune", "--yes"}} {
			cmd := exec.Command(bin, args...)
			cmd.Env = vars
			_ = cmd.Run() // there was nothing to stop in most
		}
	})
	return scriptHome(env)
}

// A signal while the command works: the run is ended in order, the code says by
// what, and nothing is left. The second one does not wait for a command that hears
// none.
func TestSignalEndsARun(t *testing.T) {
	bin := needSandbox(t)
	// A hang-up that is ignored here (nohup) would be ignored by the runs, too; one that
	// is handled is not.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangups) })
	for name, tt := range map[string]struct {
		script  string
		signals []os.Signal
		code    int
	}{
		"interrupt":       {"echo ready; sleep 60", []os.Signal{os.Interrupt}, 130},
		"terminate":       {"echo ready; sleep 60", []os.Signal{syscall.SIGTERM}, 143},
		"hang up":         {"echo ready; sleep 60", []os.Signal{syscall.SIGHUP}, 143},
		"interrupt twice": {"trap '' INT TERM; echo ready; sleep 60; sleep 60", []os.Signal{os.Interrupt, os.Interrupt}, 130},
	} {
		for _, provider := range []string{"local", "docker"} {
			t.Run(provider+" "+name, func(t *testing.T) {
				t.Parallel()
				if provider == "docker" {
					needEngine(t, bin)
				}
				signalled(t, bin, provider, tt.script, tt.signals, tt.code)
			})
		}
	}
}

// signalled starts a run, sends the signals, and wants the code and nothing left.
func signalled(t *testing.T, bin, provider, script string, signals []os.Signal, code int) {
	t.Helper()
	state := t.TempDir()
	cmd := exec.CommandContext(t.Context(), bin, "run", "--provider", provider, "--network=link", "--", "sh", "-c", script)
	cmd.Env = append(os.Environ(), "INSIGHTSCLI_STATE_DIR="+state)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	if err := errors.Join(cmd.Start(), in.Close()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	waitFor(t, lines, "ready")
	for i, s := range signals {
		if i > 0 { // two that come at once are one
			waitFor(t, lines, "note: stopping; a second Ctrl-C does not wait")
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	rest, _ := io.ReadAll(lines)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != code || strings.Contains(string(rest), "error") {
		t.Errorf("%v, want %d: %s", err, code, rest)
	}
	if left, err := os.ReadDir(filepath.Join(state, "run")); err != nil || len(left) > 0 {
		t.Errorf("left behind %v, %v", left, err)
	}
}

// waitFor reads lines until one is want.
func waitFor(t *testing.T, lines *bufio.Reader, want string) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if strings.TrimSuffix(line, "\n") == want {
			return
		}
		if err != nil {
			t.Fatalf("%v before %q", err, want)
		}
	}
}
