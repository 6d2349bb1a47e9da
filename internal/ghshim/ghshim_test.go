//go:build unix

package ghshim

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
)

// TestMain: called as gh, the test is the shim, and TEST_STATE what PID 1 says.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "gh" {
		os.Exit(m.Run())
	}
	self, err := os.Executable()
	if err != nil {
		os.Exit(99)
	}
	ask := func(context.Context) (wire.GitHubState, error) {
		host, token, managed := strings.Cut(os.Getenv("TEST_STATE"), " ")
		if host == "fails" {
			return wire.GitHubState{}, errors.New("it is gone")
		}
		if host == "pending" {
			return wire.GitHubState{GitHub: wire.GitHub{Pending: true}}, nil
		}
		return wire.GitHubState{Managed: managed, GitHub: wire.GitHub{Host: host, Token: token}}, nil
	}
	os.Exit(Run(context.Background(), Process{Args: os.Args[1:], Environ: os.Environ(), Stderr: os.Stderr, Self: []string{self}, Ask: ask}))
}

func TestBecomesTheNextGH(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ours, next := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\necho \"$0 $* t=$GH_TOKEN g=$GITHUB_TOKEN e=$GH_ENTERPRISE_TOKEN h=$GH_HOST\"; exit 7\n"
	if err := errors.Join(os.Symlink(program, filepath.Join(ours, "gh")), os.WriteFile(filepath.Join(next, "gh"), []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	call := func(path, state string) (int, string) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(ours, "gh"), "pr", "list")
		cmd.Env = []string{"PATH=" + path, "TEST_STATE=" + state, "GITHUB_TOKEN=theirs", "GOCOVERDIR=" + t.TempDir()}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), out.String()
	}
	real := filepath.Join(next, "gh") + " pr list "
	for state, want := range map[string]string{
		"github.com tok":      real + "t=tok g= e= h=\n",
		"a.ghe.com tok":       real + "t=tok g= e= h=a.ghe.com\n",
		"git.example.com tok": real + "t= g= e=tok h=git.example.com\n",
		"github.com ":         real + "t= g= e= h=\n", // logged out
		"":                    real + "t= g=theirs e= h=\n",
	} {
		if code, out := call(ours+":"+next, state); code != 7 || out != want {
			t.Errorf("%q: %d %q", state, code, out)
		}
	}
	if code, out := call(ours+":"+next, "fails"); code != 1 || out != "gh: the credential of this sandbox cannot be read: it is gone\n" {
		t.Errorf("%d %q", code, out)
	}
	if code, out := call(ours+":"+next, "pending"); code != 1 || !strings.Contains(out, "the host has none yet") {
		t.Errorf("%d %q", code, out)
	}
	if code, out := call(ours, "github.com tok"); code != 127 || !strings.Contains(out, "there is no gh") {
		t.Errorf("%d %q", code, out)
	}
}

// gh sees the remotes as they are, with what the user has set.
func TestRewritesAreNotForGH(t *testing.T) {
	ours := wire.GitRewrite + "o/r.insteadOf"
	got := Environ([]string{
		"A=1", "GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=" + ours, "GIT_CONFIG_VALUE_0=x", "GIT_CONFIG_KEY_1=user.name", "GIT_CONFIG_VALUE_1=u",
		"GIT_CONFIG_KEY_2=" + ours, "GIT_CONFIG_VALUE_2=y", "GIT_CONFIG_GLOBAL=/x",
	}, wire.GitHubState{})
	want := []string{"A=1", "GIT_CONFIG_GLOBAL=/x", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=u", "GIT_CONFIG_COUNT=1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, odd := range []string{"GIT_CONFIG_COUNT=x", "GIT_CONFIG_COUNT=-1", "GIT_CONFIG_COUNT=99999999", "B=2"} {
		if got := Environ([]string{odd}, wire.GitHubState{}); !slices.Equal(got, []string{odd}) {
			t.Errorf("%q", got)
		}
	}
}

// Where nobody answers there is no gh.
func TestNobodyAnswers(t *testing.T) {
	if _, err := askPID1(t.Context()); err == nil {
		t.Error("somebody has answered")
	}
}
