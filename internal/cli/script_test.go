package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/Insights/insightscli/internal/term"
)

// TestMain lets scripts run this test binary as insightscli.
func TestMain(m *testing.M) {
	testscript.Main(tidy{m}, map[string]func(){"insightscli": asProcess})
}

// tidy removes what the tests share when they are over.
type tidy struct{ m *testing.M }

// Run implements testscript.TestingM.
func (t tidy) Run() int {
	code := t.m.Run()
	if dir := programDir.Load(); dir != nil {
		_ = os.RemoveAll(*dir) // a leftover in the temporary directory harms nothing
	}
	return code
}

// asProcess is cmd/insightscli's main.
func asProcess() {
	ctx, force, stop := Signals(context.Background())
	dir, _ := os.Getwd() // as main does
	code := Main(ctx, Process{
		Streams: term.System(os.Stdin, os.Stdout, os.Stderr, os.Environ()),
		Args:    os.Args[1:], Environ: os.Environ(), Dir: dir, Force: force,
	})
	stop()
	os.Exit(code)
}

// TestScript runs every script of testdata/script: one behaviour each, the first
// word of its name is the command.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               scriptHome,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exitsWith},
	})
}

// scriptHome keeps home and state of a script in its own directory.
func scriptHome(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	env.Setenv("HOME", home)
	env.Setenv("USERPROFILE", home)
	env.Setenv("INSIGHTSCLI_STATE_DIR", filepath.Join(env.WorkDir, "state"))
	env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	env.Setenv("LC_ALL", "C.UTF-8")
	return os.MkdirAll(home, 0o700)
}

// exitsWith runs a program and wants its exit code: exits CODE PROGRAM ARG…
func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}
