//go:build unix

package gitguard

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// told is a git that knows what a test says.
type told config

func (c told) config(context.Context, []string) config          { return config(c) }
func (c told) isCommand(context.Context, []string, string) bool { return false }

// TestMain: called as git, the test is the guard, as the agent server is.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "git" {
		os.Exit(m.Run())
	}
	self, err := os.Executable()
	if err != nil {
		panic(err) // it would take itself for the real one, without end
	}
	os.Exit(Run(context.Background(), Process{
		Args: os.Args[1:], Environ: os.Environ(), Stderr: os.Stderr, Self: []string{"/nowhere", self},
	}))
}

// The text is the specification's ("Git commit signing"), to the letter.
func TestRefusalIsTheSpecified(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "refusal.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if Refusal != string(golden) {
		t.Errorf("got\n%s", Refusal)
	}
}

// guard makes a directory with the guard in it, the program or a link to it.
func guard(t *testing.T, place func(program, git string) error) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := place(program, filepath.Join(dir, "git")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// plant makes a git in a new directory that is a script.
func plant(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// call runs the git of dir with a PATH.
func call(t *testing.T, dir string, env []string, args ...string) (code int, out, errs string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "git"), args...)
	var o, e bytes.Buffer
	cmd.Env = append(env[:len(env):len(env)], "GOCOVERDIR="+t.TempDir()) // a test that measures coverage says if it is missing
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

func TestGuardIsGitButForWhatItRefuses(t *testing.T) {
	dir := guard(t, os.Symlink)
	next := plant(t, `echo "$0 $# $* $WORD"; echo aside >&2; exit 42`)
	env := []string{"PATH=" + dir + ":" + next, "WORD=given"}
	code, out, errs := call(t, dir, env, "--no-pager", "status", "a  b")
	if want := filepath.Join(next, "git") + " 3 --no-pager status a  b given\n"; code != 42 || out != want || errs != "aside\n" {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
	for _, verb := range []string{"commit", "push"} {
		if code, out, errs := call(t, dir, env, verb, "-h"); code != 1 || out != "" || errs != Refusal {
			t.Errorf("%s: %d, %q, %q", verb, code, out, errs)
		}
	}
	for value, want := range map[string]int{"1": 42, "": 1, "0": 1, "true": 1, "11": 1} {
		if code, _, _ := call(t, dir, append(env, AllowVariable+"="+value), "commit"); code != want {
			t.Errorf("%s=%q: %d", AllowVariable, value, code)
		}
	}
}

// The real git gets the name git and the guard's own process.
func TestGuardIsReplaced(t *testing.T) {
	dir := guard(t, os.Symlink)
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "git"), "-c", "alias.x=!echo $PPID; :", "x")
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if err := cmd.Wait(); err != nil || strings.TrimSpace(out.String()) != strconv.Itoa(pid) {
		t.Errorf("git is %s, the guard was %d: %v", out.String(), pid, err)
	}
}

func TestFindsTheNextGit(t *testing.T) {
	link := guard(t, os.Symlink)
	again := guard(t, func(program, git string) error { return os.Symlink(filepath.Join(link, "git"), git) })
	one, two := plant(t, "echo one"), plant(t, "echo two")
	notExecutable, directory := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(notExecutable, "git"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(directory, "git"), 0o700); err != nil {
		t.Fatal(err)
	}
	loop := plant(t, "exec "+filepath.Join(link, "git")+` "$@"`) // a wrapper that calls the guard
	t.Chdir(one)
	for _, tt := range []struct {
		path []string
		want string
	}{
		{[]string{link, one, two}, "one"},
		{[]string{link, again, two}, "two"},
		{[]string{one, link, two}, "two"}, // what comes before may be a wrapper of ours
		{[]string{loop, link, two}, "two"},
		{[]string{two}, "two"},                                            // called by its path
		{[]string{link, "", ".", "../" + filepath.Base(one), two}, "two"}, // never the repository's own
		{[]string{link, "/nowhere", notExecutable, directory, two}, "two"},
		{[]string{link, two, link, one}, "two"},
	} {
		code, out, errs := call(t, link, []string{"PATH=" + strings.Join(tt.path, ":")}, "status")
		if code != 0 || out != tt.want+"\n" {
			t.Errorf("%q: %d, %q, %q", tt.path, code, out, errs)
		}
	}
}

// Without any git behind the guard it says so. Those of this machine pass for the guard.
func TestNoGit(t *testing.T) {
	var said bytes.Buffer
	self := []string{"/usr/bin/git", "/usr/local/bin/git", "/bin/git"}
	code := Run(t.Context(), Process{Args: []string{"commit"}, Environ: []string{"PATH=" + t.TempDir()}, Stderr: &said, Self: self})
	if code != exitNoGit || said.String() != "git: there is no git in this sandbox: install it in the image\n" {
		t.Errorf("%d, %q", code, said.String())
	}
	if got := Next(nil, "git", nil); !filepath.IsAbs(got) {
		t.Errorf("without a PATH: %q", got)
	}
}

// A program that cannot be executed ends as it does in a shell.
func TestGitThatCannotRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte("#!/nowhere/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	code := Run(t.Context(), Process{Args: []string{"status"}, Environ: []string{"PATH=" + dir}, Stderr: &said})
	if code != exitCannot || !strings.Contains(said.String(), filepath.Join(dir, "git")) {
		t.Errorf("%d, %q", code, said.String())
	}
}
