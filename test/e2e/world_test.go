//go:build linux

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
	"github.com/Insights/insightscli/test/fakemodel"
)

// The real keys. Nothing but the model may ever see them.
const (
	anthropicKey = "sk-ant-api03-canary-4f1c9a7e6b2d8035-only-the-model-may-see-this"
	openAIKey    = "sk-proj-canary-83d0b5c2f7a91e46-only-the-model-may-see-this"
)

// patience ends a test that hangs. It is no measure of anything.
const patience = 3 * time.Minute

// agent is one that the tests drive.
type agent struct {
	name     string
	variable string // of the tests' environment: where its program is
	dialect  string // in which it talks to the model
}

var (
	claude = agent{"claude", "INSIGHTSCLI_TEST_CLAUDE", "anthropic"}
	codex  = agent{"codex", "INSIGHTSCLI_TEST_CODEX", "responses"}
	acp    = agent{"acp", "INSIGHTSCLI_TEST_ACP", "responses"}
)

// world is what one test has to itself.
type world struct {
	t        *testing.T
	agent    agent
	provider string
	bin      string
	state    string
	home     string
	repo     string
	env      []string
	flags    []string // of every run
	model    *fakemodel.Model
	url      string
	killed   map[int]bool // processes, by the test itself
}

// each runs f for every agent and provider, each in a world of its own.
func each(t *testing.T, agents []agent, f func(*world)) {
	for _, a := range agents {
		for _, provider := range []string{"local", "docker"} {
			t.Run(a.name+" "+provider, func(t *testing.T) {
				t.Parallel()
				f(newWorld(t, a, provider))
			})
		}
	}
}

// one is for what does not depend on where the agent runs.
func one(t *testing.T, a agent, f func(*world)) {
	t.Run(a.name, func(t *testing.T) {
		t.Parallel()
		f(newWorld(t, a, "local"))
	})
}

func newWorld(t *testing.T, a agent, provider string) *world {
	t.Helper()
	testenv.Need(t, "Linux on x86_64, for which the agents are pinned", runtime.GOOS == "linux" && runtime.GOARCH == "amd64")
	program := os.Getenv(a.variable)
	testenv.Need(t, a.variable+" (.ci/agents fetches the agents; make e2e does so)", program != "")
	bin, err := filepath.Abs("../../bin/insightscli")
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(bin)
	testenv.Need(t, "bin/insightscli (make build)", err == nil)

	w := &world{t: t, agent: a, provider: provider, bin: bin}
	w.model = fakemodel.New(fakemodel.Options{AnthropicKey: anthropicKey, OpenAIKey: openAIKey})
	server := httptest.NewServer(w.model)
	t.Cleanup(server.Close)
	w.url = server.URL
	w.directories()
	w.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "LANG=C.UTF-8", "TERM=xterm-256color",
		"INSIGHTSCLI_STATE_DIR=" + w.state, "SANDBOX_PROVIDER=" + provider, "INSIGHTSCLI_NETWORK=link",
		"INSIGHTS_LLM_ANTHROPIC_URL=" + w.url + "/anthropic", "INSIGHTS_LLM_OPENAI_URL=" + w.url + "/openai",
		"ANTHROPIC_API_KEY=" + anthropicKey, "OPENAI_API_KEY=" + openAIKey,
		"INSIGHTS_LLM_PRICES=gpt-6.2-sol=1,10,1", // the newest model of Codex, which no list has yet
		"CLAUDE_CODE_EXECUTABLE=" + os.Getenv(claude.variable), "CODEX_PATH=" + os.Getenv(codex.variable),
	}
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		w.env = append(w.env, "DOCKER_HOST="+host)
	}
	w.needProvider()
	w.flags = []string{"--agent", a.name, "--repo", w.repo}
	if a == acp {
		w.acpAgent(program)
	}
	t.Cleanup(w.end)
	return w
}

// directories makes the state, the home and a repository. They are not below
// t.TempDir, because the agent's uid is shown parts of them.
func (w *world) directories() {
	w.t.Helper()
	dir, err := os.MkdirTemp("", "insightscli-e2e-*")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w.state, w.home, w.repo = filepath.Join(dir, "state"), filepath.Join(dir, "home"), filepath.Join(dir, "repo")
	for _, d := range []string{w.state, w.home, w.repo} {
		if err := os.Mkdir(d, 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
	w.git("init", "-q", "-b", "main")
	w.git("config", "user.name", "test")
	w.git("config", "user.email", "test@localhost")
	w.write(filepath.Join(w.repo, "file.txt"), "first\nsecond\n")
	w.git("add", "file.txt")
	w.git("commit", "-qm", "first")
}

func (w *world) git(args ...string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "git", append([]string{"-C", w.repo}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home}
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

func (w *world) write(path, content string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// probed remembers what the providers of this machine answered.
var probed sync.Map

// needProvider ends the test unless the provider makes sandboxes here.
func (w *world) needProvider() {
	w.t.Helper()
	probe, _ := probed.LoadOrStore(w.provider, sync.OnceValue(func() string {
		out := w.try("run", "--", "true")
		if out.code == 5 {
			return cmp.Or(strings.TrimSpace(out.stderr), "no answer")
		}
		return ""
	}))
	why := probe.(func() string)()
	testenv.Need(w.t, w.provider+" sandboxes: "+why, why == "")
}

// outcome is how one command ended.
type outcome struct {
	code           int
	stdout, stderr string
}

func (w *world) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.bin, args...)
	cmd.Env = w.env
	cmd.Dir = w.home
	return cmd
}

// try runs the program and tells how it ended.
func (w *world) try(args ...string) outcome {
	w.t.Helper()
	// Not the test's context, which is over when its world ends.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := w.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		w.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// must is try for what has to succeed.
func (w *world) must(args ...string) string {
	w.t.Helper()
	out := w.try(args...)
	if out.code != 0 {
		w.t.Fatalf("%s: exit code %d\n%s%s", strings.Join(args, " "), out.code, out.stdout, out.stderr)
	}
	return out.stdout
}

// run is a run that has ended.
type run struct {
	outcome
	events []task.Event
	result task.Result
}

// do runs the agent with a script and returns what was told of it.
func (w *world) do(steps []fakemodel.Step, flags ...string) run {
	w.t.Helper()
	return w.say(w.script(steps...), flags...)
}

// say runs the agent with a prompt.
func (w *world) say(prompt string, flags ...string) run {
	w.t.Helper()
	args := append([]string{"run", "--json"}, w.flags...)
	out := w.try(append(append(args, flags...), prompt)...)
	r := run{outcome: out, events: w.parse(out.stdout)}
	w.conclude(&r)
	return r
}

// conclude takes the result from the last event.
func (w *world) conclude(r *run) {
	w.t.Helper()
	if len(r.events) == 0 {
		w.t.Fatalf("no events; exit code %d\n%s", r.code, r.stderr)
	}
	last := r.events[len(r.events)-1]
	if err := json.Unmarshal(last.Params, &r.result); err != nil || last.Kind != task.KindFinished {
		w.t.Fatalf("the last event is %s, %v\n%s%s", last.Kind, err, r.stdout, r.stderr)
	}
	if r.result.Code != r.code {
		w.t.Errorf("exit code %d, but the result says %d", r.code, r.result.Code)
	}
}

// succeed is do for what has to end well.
func (w *world) succeed(steps []fakemodel.Step, flags ...string) run {
	w.t.Helper()
	r := w.do(steps, flags...)
	if r.code != 0 || r.result.State != task.StateCompleted {
		w.t.Fatalf("exit code %d, result %+v\n%s\n%s", r.code, r.result, r.stderr, w.story(r.events))
	}
	return r
}

// script is a prompt that no other test has.
func (w *world) script(steps ...fakemodel.Step) string {
	return "Do as the script says. " + fakemodel.Script(append(slices.Clone(steps), fakemodel.Step{ID: w.t.Name()})...)
}

// parse reads event lines, which have no gap.
func (w *world) parse(lines string) []task.Event {
	w.t.Helper()
	var all []task.Event
	for line := range strings.Lines(lines) {
		ev, err := task.ParseLine([]byte(line))
		if err != nil {
			w.t.Fatalf("%v: %s", err, line)
		}
		all = append(all, ev)
	}
	w.gapless(all)
	return all
}

// gapless checks that no event is lost or doubled: neither ours nor the agent's.
func (w *world) gapless(all []task.Event) {
	w.t.Helper()
	var agents uint64
	for i, ev := range all {
		if ev.Seq != uint64(i+1) {
			w.t.Errorf("event %d has number %d", i+1, ev.Seq)
		}
		if ev.EventID == 0 {
			continue
		}
		if from := cmp.Or(ev.FirstEventID, ev.EventID); from != agents+1 || ev.EventID < from {
			w.t.Errorf("event %d of the agent follows %d: %s", from, agents, ev.Params)
		}
		agents = ev.EventID
	}
}

// latest reads the log of the last run.
func (w *world) latest(ref string) run {
	w.t.Helper()
	out := w.must("logs", ref, "--json")
	var shown struct{ Result task.Result }
	if err := json.Unmarshal([]byte(w.must("show", ref, "--json")), &shown); err != nil {
		w.t.Fatal(err)
	}
	return run{outcome: outcome{code: shown.Result.Code}, events: w.parse(out), result: shown.Result}
}

// story is the events for a reader of a failed test.
func (w *world) story(all []task.Event) string {
	var b strings.Builder
	for _, ev := range all {
		params := string(ev.Params)
		if len(params) > 400 {
			params = params[:400] + "…"
		}
		b.WriteString(string(ev.Kind) + " " + params + "\n")
	}
	return b.String()
}

// decode reads the payload of an event.
func decode[T any](w *world, ev task.Event) T {
	w.t.Helper()
	var v T
	if err := json.Unmarshal(ev.Params, &v); err != nil {
		w.t.Fatal(err)
	}
	return v
}

// compact is JSON without its spaces.
func compact(text string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return text
	}
	return b.String()
}
