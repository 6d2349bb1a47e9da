package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/agentcli"
	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/term"
)

// execFunc makes a function an executor.
type execFunc func(context.Context, task.Spec, map[string]secret.String, task.Sink) (task.Result, error)

func (f execFunc) Run(ctx context.Context, s task.Spec, v map[string]secret.String, _ <-chan task.Input, sink task.Sink) (task.Result, error) {
	return f(ctx, s, v, sink)
}

// fakeApp is an app on a machine without an engine, whose runs f carries out.
func fakeApp(p Process, f execFunc) *app {
	a := newApp(p)
	a.wiring = wiring{
		parseRepo: func(_, address string) (task.Repo, error) {
			if org, name, ok := strings.Cut(address, "/"); ok && org != "." {
				return task.Repo{Source: task.RepoRemote, Org: org, Name: name, URL: "https://" + address}, nil
			}
			return task.Repo{Source: task.RepoLocal, Path: address}, nil
		},
		findAgent: agentcli.Find,
		resolveRepo: func(_ context.Context, _ config.Config, r task.Repo) (task.Repo, []string, error) {
			if r.Org == "" {
				r.Org, r.Name = "local", "here"
			}
			return r, []string{"looked at " + r.Name}, nil
		},
		scopes:   func(string) ([]string, error) { return []string{"task:write"}, nil },
		engine:   func(context.Context, config.Config) error { return errs.New("x", errs.Unavailable, "", "no engine") },
		tools:    func(config.Config) ([]string, string) { return []string{"/root/tool"}, "/root/tool/bin:/bin" },
		executor: func(context.Context, config.Config, task.Spec) (executor, error) { return f, nil },
	}
	return a
}

// fakeRun runs a command line against f.
func fakeRun(t *testing.T, f execFunc, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return fakeRunIn(t, f, []string{"TOKEN=s3cret"}, args...)
}

// fakeRunIn is fakeRun in an environment.
func fakeRunIn(t *testing.T, f execFunc, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	streams, _, out, err := term.Test()
	a := fakeApp(Process{Streams: streams, Args: args, Dir: t.TempDir(), Environ: environ}, f)
	code = a.main(t.Context())
	return code, out.String(), err.String()
}

func finished(res task.Result, sink task.Sink) (task.Result, error) {
	b, err := json.Marshal(res)
	sink.Emit(task.Event{Seq: 1, Kind: task.KindFinished, Params: b})
	return res, err
}

func TestRunFreezesTheSpec(t *testing.T) {
	var spec task.Spec
	var values map[string]secret.String
	code, _, stderr := fakeRun(t, func(_ context.Context, s task.Spec, v map[string]secret.String, sink task.Sink) (task.Result, error) {
		spec, values = s, v
		return finished(task.Result{Run: s.Run, State: task.StateCompleted}, sink)
	}, "run", "--repo", "./x", "--timeout", "0", "--memory", "2g", "--env-var", "A=1", "--secret", "TOKEN", "--", "make", "all")
	if code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	if spec.Agent.Name != "exec" || !slices.Equal(spec.Agent.Command, []string{"make", "all"}) || spec.Title != "make all" {
		t.Errorf("agent %+v, title %q", spec.Agent, spec.Title)
	}
	if spec.Timeout != 0 || spec.IdleTimeout.Std() != 30*time.Minute || spec.MemoryMiB != 2048 || spec.Provider != "local" {
		t.Errorf("got %+v", spec)
	}
	if !slices.Equal(spec.Secrets, []string{"TOKEN"}) || values["TOKEN"].Reveal() != "s3cret" || spec.Env["A"] != "1" {
		t.Errorf("secrets %v, env %v", spec.Secrets, spec.Env)
	}
	if len(spec.Repos) != 1 || spec.Repos[0].Name != "here" || !slices.Equal(spec.ToolDirs, []string{"/root/tool"}) {
		t.Errorf("repos %+v, tools %v", spec.Repos, spec.ToolDirs)
	}
	for _, note := range []string{"note: looked at here\n", "note: no Docker engine answers; the sandbox is made by the provider local\n", "completed in 0s"} {
		if !strings.Contains(stderr, note) {
			t.Errorf("stderr lacks %q: %s", note, stderr)
		}
	}
	if b, _ := json.Marshal(spec); strings.Contains(string(b), "s3cret") {
		t.Error("the Spec holds a secret")
	}
}

func TestRunRefusesAfterTheSettings(t *testing.T) {
	never := func(context.Context, task.Spec, map[string]secret.String, task.Sink) (task.Result, error) {
		return task.Result{}, errors.New("was started")
	}
	tests := []struct{ line, want string }{
		{"fix it", "agent claude needs a key of the Anthropic API, and ANTHROPIC_API_KEY is not set"},
		{"--agent|codex|fix it", "agent codex needs a key of the OpenAI API, and OPENAI_API_KEY is not set"},
		{"--agent|acp:x y|fix it", "agent acp:x y needs a model, and no key is set"},
		{"--agent|bogus|fix it", `unknown agent "bogus"`},
		{"--agent|acp: |fix it", `unknown agent "acp: "`},
		{"--permission-mode|full-access|fix it", `agent claude has no permission mode "full-access"`},
		{"--agent|codex|--permission-mode|plane|fix it", `agent codex has no permission mode "plane"`},
		{"--max-tokens|x|fix it", `--max-tokens: "x" is not a number`},
		{"--max-cost|-1|fix it", `--max-cost: "-1" is not an amount such as 2 or 0.5`},
		{"--model|m|--|true", "--model needs an agent that talks to a model, which a command does not"},
		{"--network|half|--|true", `unknown network level "half"`},
		{"--network|x|--|true", `unknown network level "x"`},
		{"--template|vm_base|--|true", "template vm_base is not in this build"},
		{"--template|x|--|true", `unknown template "x"`},
		{"--provider|modal|--|true", "provider modal is not in this build"},
		{"--provider|MODAL_DOCKER|--|true", "provider MODAL_DOCKER is not in this build"},
		{"--provider|memory|--|true", `unknown provider "memory"`},
		{"--provider|local|--image|x|--|true", "provider local has no images"},
		{"--provider|local|--runtime|x|--|true", "provider local has no OCI runtimes"},
		{"--tools|x|--|true", `--tools: "x" is neither auto nor none`},
		{"--cpus|x|--|true", `--cpus: "x" is not a number of cores such as 2 or 0.5`},
		{"--timeout|x|--|true", `--timeout: "x" is not a length of time such as 90s, 30m or 3h`},
		{"--env-var|GH_TOKEN=x|--|true", "--env-var: GH_TOKEN is set by insightscli itself"},
		{"--secret|NOT_THERE|--|true", "--secret: NOT_THERE is not set in the environment; write NOT_THERE=VALUE"},
		{"--env-var|A=1|--secret|A=2|--|true", "A is given with --env-var and with --secret"},
		{"--repo|a/b|--repo|a/b|--|true", "two repositories are called a/b"},
		{"--repo|a/b|--mount|--|true", "--mount and --uncommitted need a local path, which a/b is not"},
		{"--repo|./x|--trust-mount|--|true", "--trust-mount needs a mounted repository (--mount)"},
	}
	for _, tt := range tests {
		code, stdout, stderr := fakeRun(t, never, append([]string{"run"}, strings.Split(tt.line, "|")...)...)
		if first, _, _ := strings.Cut(stderr, "\n"); code != 2 || first != "error: "+tt.want || stdout != "" {
			t.Errorf("%s: code %d, %q, stdout %q", tt.line, code, stderr, stdout)
		}
		if strings.Count(stderr, "\n") != 2 || !strings.Contains(stderr, "\nhint: ") {
			t.Errorf("%s: not one line and one hint: %q", tt.line, stderr)
		}
	}
}

func TestMountMapTakesThePlaceOfARemoteRepository(t *testing.T) {
	dir := t.TempDir()
	if uid, gid := agentIDs(os.Getuid(), os.Getgid(), config.Machine{}); uid != os.Getuid() {
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	streams, _, _, stderr := term.Test()
	var got task.Repo
	a := fakeApp(Process{
		Streams: streams, Args: []string{"run", "--repo", "org/repo", "--", "true"}, Dir: dir,
		Environ: []string{"SANDBOX_REPO_MOUNT_MAP=org/repo:" + dir + ",gone/x:/does/not/exist"},
	},
		func(_ context.Context, s task.Spec, _ map[string]secret.String, sink task.Sink) (task.Result, error) {
			got = s.Repos[0]
			return finished(task.Result{}, sink)
		})
	if code := a.main(t.Context()); code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	if got.Source != task.RepoLocal || !got.Mount || got.Path != dir || got.Org != "org" || got.Name != "repo" {
		t.Errorf("repo = %+v", got)
	}
	a.process.Args = []string{"run", "--repo", "gone/x", "--", "true"}
	if code := a.main(t.Context()); code != 2 || !strings.Contains(stderr.String(), "SANDBOX_REPO_MOUNT_MAP: entry gone/x: /does/not/exist is not a directory") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

func TestOutputGoesToStdoutAndTheRestToStderr(t *testing.T) {
	code, stdout, stderr := fakeRun(t, func(_ context.Context, s task.Spec, _ map[string]secret.String, sink task.Sink) (task.Result, error) {
		sink.Emit(task.Event{Kind: task.KindOutput, Params: task.AppendOutput(nil, task.Stdout, []byte("data\n"), false)})
		return finished(task.Result{Run: s.Run, State: task.StateFailed, Code: 7, Kind: "task_failed", Error: "no luck"}, sink)
	}, "run", "--", "x")
	if code != 7 || stdout != "data\n" || !strings.Contains(stderr, "task failed (no luck)") || strings.Contains(stderr, "error:") {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// The first signal asks the run to end in order; its Result decides the code.
func TestFirstSignalIsPassedOn(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	streams, _, _, stderr := term.Test()
	a := fakeApp(Process{Streams: streams, Args: []string{"run", "--", "x"}, Dir: t.TempDir()},
		func(ctx context.Context, s task.Spec, _ map[string]secret.String, sink task.Sink) (task.Result, error) {
			cancel(signalCause(os.Interrupt))
			<-ctx.Done()
			kind := errs.KindOf(context.Cause(ctx))
			return finished(task.Result{Run: s.Run, State: task.StateCancelled, Code: kind.Code(), Kind: string(kind)}, sink)
		})
	if code := a.main(ctx); code != 130 || strings.Contains(stderr.String(), "error") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// What a command says of the wait that a signal has ended is not its end.
func TestSignalIsNotTakenForAnAnswer(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	streams, _, _, stderr := term.Test()
	a := fakeApp(Process{Streams: streams, Args: []string{"run", "--repo", "a/b", "--", "x"}, Dir: t.TempDir()}, nil)
	a.wiring.resolveRepo = func(ctx context.Context, _ config.Config, r task.Repo) (task.Repo, []string, error) {
		cancel(signalCause(os.Interrupt))
		<-ctx.Done()
		return r, nil, errs.New("x", errs.Unavailable, "check the network", "a/b did not answer: %w", context.Cause(ctx))
	}
	if code := a.main(ctx); code != 130 || stderr.String() != "" {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// A command that hears neither signal must not keep the process: three seconds
// after the second one it ends.
func TestSecondSignalEndsAnyCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		force, release := make(chan struct{}), make(chan struct{})
		streams, _, _, _ := term.Test()
		a := fakeApp(Process{Streams: streams, Args: []string{"run", "--", "x"}, Dir: t.TempDir(), Force: force},
			func(context.Context, task.Spec, map[string]secret.String, task.Sink) (task.Result, error) {
				cancel(signalCause(nil))
				close(force)
				<-release
				return task.Result{}, nil
			})
		if code := a.main(ctx); code != 143 {
			t.Errorf("code %d", code)
		}
		close(release)
	})
}

// A reader that goes away ends the run in order, and nobody is told.
func TestClosedPipeEndsTheRunQuietly(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	streams := term.System(r, w, stderr, nil)
	a := fakeApp(Process{Streams: streams, Args: []string{"run", "--json", "--", "x"}, Dir: t.TempDir()},
		func(ctx context.Context, s task.Spec, _ map[string]secret.String, sink task.Sink) (task.Result, error) {
			sink.Emit(task.Event{Kind: task.KindNotice, Params: []byte(`{}`)})
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), term.ErrGone) {
				t.Errorf("cause = %v", context.Cause(ctx))
			}
			return task.Result{State: task.StateCancelled, Code: 130, Kind: "canceled", Error: "cancelled"}, nil
		})
	if code := a.main(t.Context()); code != 130 {
		t.Errorf("code %d", code)
	}
}

func TestTitle(t *testing.T) {
	if got := title("", []string{"sh", "-c", "a\n  b"}); got != "sh -c a b" {
		t.Errorf("got %q", got)
	}
	if got := []rune(title(strings.Repeat("é", 300), nil)); len(got) != 255 {
		t.Errorf("%d characters", len(got))
	}
}

func TestAgentIDs(t *testing.T) {
	sudo := config.Machine{SudoUID: 501, SudoGID: 20}
	tests := []struct {
		uid, gid int
		m        config.Machine
		wantUID  int
		wantGID  int
	}{
		{1000, 100, config.Machine{}, 1000, 100},
		{0, 0, sudo, 501, 20},
		{0, 0, config.Machine{}, 1000, 1000},
		{-1, -1, config.Machine{}, 1000, 1000}, // Windows
		{1001, 1001, sudo, 1001, 1001},
	}
	for _, tt := range tests {
		if uid, gid := agentIDs(tt.uid, tt.gid, tt.m); uid != tt.wantUID || gid != tt.wantGID {
			t.Errorf("%d/%d %+v: %d/%d", tt.uid, tt.gid, tt.m, uid, gid)
		}
	}
}

// A tree that the agent could only read is refused, with the reason (C7).
func TestMountNeedsTheAgentsTree(t *testing.T) {
	dir := t.TempDir()
	if runtime.GOOS == "windows" {
		t.Skip("needs owners of files")
	}
	if err := checkMountOwner(dir, os.Getuid()); err != nil {
		t.Error(err)
	}
	err := checkMountOwner(dir, os.Getuid()+1)
	if errs.KindOf(err) != errs.Usage || !strings.Contains(errs.HintOf(err), "chown") {
		t.Errorf("%v (%s)", err, errs.HintOf(err))
	}
	if err := checkMountOwner(filepath.Join(dir, "missing"), os.Getuid()+1); err != nil {
		t.Error(err) // told elsewhere
	}
}
