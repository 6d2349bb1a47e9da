package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/term"
)

func report(t *testing.T, err error, args ...string) (code int, stderr string) {
	t.Helper()
	streams, _, _, out := term.Test()
	a := newApp(Process{Streams: streams, Args: args})
	a.debug = len(args) > 0 && args[0] == "--debug"
	code = a.report(&cobra.Command{Use: "insightscli"}, err)
	return code, out.String()
}

// The published table: one kind, one code.
func TestExitCodes(t *testing.T) {
	codes := map[errs.Kind]int{
		errs.Internal: 1, errs.NotFound: 1, errs.Conflict: 1, errs.Usage: 2, errs.Config: 2, errs.Incomplete: 3,
		errs.Auth: 4, errs.Unavailable: 5, errs.TaskFailed: 7, errs.Running: 8, errs.Timeout: 124,
		errs.Canceled: 130, errs.Terminated: 143,
	}
	published := map[string]bool{}
	for _, e := range exitCodes() {
		published[e.code] = true
	}
	for kind, want := range codes {
		code, _ := report(t, errs.New("x.Y", kind, "", "text"))
		if code != want || !published[fmt.Sprint(want)] {
			t.Errorf("%s: code %d, want %d, published %t", kind, code, want, published[fmt.Sprint(want)])
		}
	}
	for err, want := range map[error]int{nil: 0, errors.New("x"): 1, context.Canceled: 130, term.ErrGone: 0, exitWith(42): 42} {
		if code, _ := report(t, err); code != want {
			t.Errorf("%v: code %d, want %d", err, code, want)
		}
	}
}

func TestErrorIsOneLineAndOneHint(t *testing.T) {
	err := fmt.Errorf("create sandbox: %w", errs.New("docker.Create", errs.Unavailable, "start Docker", "no engine\n\tat \x1b[31munix:///x\x00"))
	_, got := report(t, err)
	if want := "error: create sandbox: no engine at unix:///x\nhint: start Docker\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUsageErrorPointsToHelp(t *testing.T) {
	_, got := report(t, usageError("no such thing"))
	if want := "error: no such thing\nhint: run 'insightscli --help'\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDebugShowsOperations(t *testing.T) {
	err := errs.New("runner.Run", errs.Internal, "", "run: %w", errs.New("docker.Create", errs.Internal, "", "boom"))
	_, got := report(t, err, "--debug")
	if !strings.Contains(got, "\nat: runner.Run > docker.Create\n") {
		t.Errorf("got %q", got)
	}
}

func TestInterruptSaysNothing(t *testing.T) {
	if _, got := report(t, errs.New("x", errs.Canceled, "", "interrupted")); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestJSONError(t *testing.T) {
	_, got := report(t, errs.New("x.Y", errs.Auth, "log in", "no\nentry"), "show", "--json", "x")
	var o errorObject
	if err := json.Unmarshal([]byte(got), &o); err != nil {
		t.Fatalf("%v: %q", err, got)
	}
	if want := (errorObject{Type: "error", Kind: errs.Auth, Code: 4, Message: "no entry", Hint: "log in"}); o != want {
		t.Errorf("got %+v", o)
	}
	if _, got := report(t, errors.New("x"), "exec", "r", "--", "x", "--json"); strings.Contains(got, "{") {
		t.Error("--json of the command is taken for ours")
	}
}

func TestResultError(t *testing.T) {
	three := 3
	zero := 0
	tests := []struct {
		r    task.Result
		own  bool
		code int
		text string // on stderr
	}{
		{task.Result{}, false, 0, ""},
		{task.Result{Code: 7, Kind: "task_failed", Error: "x", ExitCode: &three}, false, 7, ""},
		{task.Result{Code: 7, Kind: "task_failed", Error: "x", ExitCode: &three}, true, 3, ""},
		{task.Result{ExitCode: &zero}, true, 0, ""},
		{task.Result{Code: 7, Kind: "task_failed", Error: "x", Signal: "SIGKILL"}, false, 7, ""},
		{task.Result{Code: 7, Kind: "task_failed", Error: "x", Signal: "SIGKILL"}, true, 137, ""},
		{task.Result{Code: 124, Kind: "timeout", Error: "too long", Signal: "SIGINT"}, true, 124, "error: too long\n"},
		{task.Result{Code: 5, Kind: "unavailable", Error: "no engine", Hint: "start it"}, true, 5, "error: no engine\nhint: start it\n"},
		{task.Result{Code: 124, Kind: "timeout", Error: "too long"}, false, 124, "error: too long\n"},
		{task.Result{Code: 130, Kind: "canceled", Error: "interrupted"}, false, 130, ""},
		{
			task.Result{Run: "1234567890", Code: 3, Kind: "incomplete", Cleanup: "c1", Hint: "insightscli prune"},
			false, 3,
			"error: run 12345678 left something behind: c1\nhint: insightscli prune\n",
		},
	}
	for _, tt := range tests {
		code, text := report(t, resultError(tt.r, tt.own))
		if code != tt.code || text != tt.text {
			t.Errorf("%+v: code %d, %q", tt.r, code, text)
		}
	}
}

// runMain runs a whole command in process.
func runMain(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	streams, _, out, err := term.Test()
	code = Main(t.Context(), Process{Streams: streams, Args: args, Dir: t.TempDir()})
	return code, out.String(), err.String()
}

func TestGroupsRefuseUnknownWords(t *testing.T) {
	code, _, stderr := runMain(t, "versin")
	if code != 2 || !strings.HasPrefix(stderr, `error: unknown command "versin"; did you mean "version"?`) {
		t.Errorf("code %d, %q", code, stderr)
	}
	group := newGroup("image", "Images", &cobra.Command{Use: "build", RunE: func(*cobra.Command, []string) error { return nil }})
	group.SilenceErrors, group.SilenceUsage = true, true
	group.CompletionOptions.DisableDefaultCmd = true
	group.SetOut(&bytes.Buffer{})
	for line, want := range map[string]string{"": "image needs a command: build", "bulid": `unknown command "bulid"; did you mean "build"?`} {
		group.SetArgs(strings.Fields(line))
		if err := group.Execute(); err == nil || err.Error() != want || errs.KindOf(err) != errs.Usage {
			t.Errorf("%q: %v", line, err)
		}
	}
}
