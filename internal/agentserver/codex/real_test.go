//go:build unix

package codex

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/testenv"
	"github.com/Insights/insightscli/test/fakemodel"
)

// realProgram is the variable that names the real Codex, in its own layout.
const realProgram = "INSIGHTSCLI_TEST_CODEX"

const model = "gpt-5.5"

// real is a place with the real Codex and a model that does what the prompt says.
type real struct {
	*place
	model *fakemodel.Model
}

// newReal returns a place whose session has not begun.
func newReal(t *testing.T, env map[string]string) *real {
	t.Helper()
	program := os.Getenv(realProgram)
	if program == "" {
		program, _ = exec.LookPath(Name)
	}
	testenv.Need(t, "codex, which "+realProgram+" may name", program != "")
	m := fakemodel.New(fakemodel.Options{RequireKey: "insx_run"})
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	all := map[string]string{
		"PATH":            filepath.Dir(program) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"OPENAI_BASE_URL": server.URL + "/openai/v1",
	}
	for k, v := range env {
		all[k] = v
	}
	return &real{newPlace(t, all), m}
}

// began is a place whose session has begun.
func began(t *testing.T, start wire.Start) *real {
	t.Helper()
	r := newReal(t, nil)
	start.Model = model
	r.must(r.start(start))
	return r
}

func bash(command string) fakemodel.Step { return fakemodel.Step{Bash: command} }

var say = fakemodel.Say

// do is a turn with that script.
func (r *real) do(steps ...fakemodel.Step) result {
	r.t.Helper()
	return r.turn(fakemodel.Script(steps...), "")
}

// bodies are the requests to the model, as text.
func (r *real) bodies() []string {
	var list []string
	for _, q := range r.model.Requests() {
		list = append(list, string(q.Body))
	}
	return list
}

func (r *real) wantEnd(what string, got result, text string) {
	r.t.Helper()
	if got.stop != "end_turn" || got.err != "" || got.text() != text {
		r.t.Errorf("%s: %q %q %q", what, got.stop, got.err, got.text())
	}
}

func TestRealTurns(t *testing.T) {
	r := began(t, wire.Start{Effort: "high"})
	got := r.do(fakemodel.Step{Bash: "echo one; exit 3", Say: "I look.", Think: "hm"}, say("It is two words."))
	r.wantEnd("first", got, "I look.It is two words.")
	if tools := got.tools(); !slices.Equal(tools, []string{`execute echo one; exit 3 failed "one\n"`}) {
		t.Errorf("tools %q", tools)
	}
	if thought := got.chunks("agent_thought_chunk"); thought != "hm" {
		t.Errorf("thoughts %q", thought)
	}
	file := filepath.Join(r.dir, "new.txt")
	got = r.do(fakemodel.Step{Write: &fakemodel.Write{Path: file, Content: "hello\n"}}, say("Written."))
	r.wantEnd("second", got, "Written.")
	if b, err := os.ReadFile(file); string(b) != "hello\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if tools := got.tools(); !slices.Equal(tools, []string{`edit edit ` + file + ` completed "hello\n"`}) {
		t.Errorf("tools %q", tools)
	}
	last := r.bodies()[len(r.bodies())-1]
	if !strings.Contains(last, "It is two words.") || !strings.Contains(last, `"effort":"high"`) {
		t.Errorf("the second turn knows nothing of the first, or of the effort: %.300s", last)
	}
	if _, at := r.await(0, "usage", func(e event) bool { return e.update("usage_update") != nil }); at == 0 {
		t.Error("usage before anything")
	}
}

// The first directory of PATH is ours: in it lies the git that pushes nothing. A login
// shell would not have it. Tokens that are ours are not in the environment of commands;
// what tools need is.
func TestRealCommandEnvironment(t *testing.T) {
	r := newReal(t, map[string]string{"GIT_CONFIG_KEY_0": "user.name", "NPM_TOKEN": "theirs", "INSIGHTS_PROJECT_ID": "7", "CODEX_HOME": filepath.Join(t.TempDir(), "made", "codex")})
	r.must(r.start(wire.Start{Model: model}))
	got := r.do(bash("command env; echo; echo $PATH > path; env > env"), say("done"))
	r.wantEnd("turn", got, "done")
	b, err := os.ReadFile(filepath.Join(r.dir, "path"))
	r.must(err)
	ours := 0
	for _, dir := range strings.Split(strings.TrimSpace(string(b)), ":") {
		if dir == "/opt/insights/bin" {
			ours++
			break
		}
		if _, err := os.Stat(filepath.Join(dir, "git")); err == nil {
			t.Errorf("%s goes before ours and has a git", dir)
		}
	}
	if ours == 0 {
		t.Errorf("PATH %s", b)
	}
	b, err = os.ReadFile(filepath.Join(r.dir, "env"))
	r.must(err)
	for _, name := range []string{"OPENAI_API_KEY", "INSIGHTS_PERSONAL_API_KEY"} {
		if strings.Contains(string(b), name+"=") || strings.Contains(string(b), "insx_run") {
			t.Errorf("%s is in the environment of commands", name)
		}
	}
	for _, name := range []string{"INSIGHTS_API_URL", "INSIGHTS_PROJECT_ID", "GIT_CONFIG_KEY_0", "NPM_TOKEN"} {
		if !strings.Contains(string(b), name+"=") {
			t.Errorf("%s is not in the environment of commands", name)
		}
	}
	got = r.do(fakemodel.Step{Tool: "exec_command", Args: json.RawMessage(`{"cmd":"touch login","login":true}`)}, say("done"))
	if _, err := os.Stat(filepath.Join(r.dir, "login")); err == nil || got.stop != "end_turn" {
		t.Errorf("a login shell was had: %q, %v", got.stop, err)
	}
}

func TestRealSchema(t *testing.T) {
	r := began(t, wire.Start{})
	script := fakemodel.Script(fakemodel.Step{Structured: json.RawMessage(`{"n":12345678901234567890}`)})
	strict := `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	loose := `{"type":"object","properties":{"n":{"type":"integer"}}}`
	for schema, inRequest := range map[string]string{strict: `"json_schema"`, loose: "Your last message must be one JSON value"} {
		got := r.turn(script, schema)
		if got.stop != "end_turn" || got.structured == "" {
			t.Errorf("%s: %q %q", schema, got.stop, got.structured)
		}
		if last := r.bodies()[len(r.bodies())-1]; !strings.Contains(last, inRequest) {
			t.Errorf("%s: the request has no %s", schema, inRequest)
		}
	}
	if got := r.turn(fakemodel.Script(say("no JSON")), loose); got.stop != "end_turn" || got.structured != "" {
		t.Errorf("%q %q", got.stop, got.structured)
	}
}

// The command of an interrupted turn does not live on, and the session does.
func TestRealInterrupt(t *testing.T) {
	r := began(t, wire.Start{})
	from := r.count()
	id := r.say(fakemodel.Script(bash("echo $$ > pid; exec sleep 1000"), say("no")), "")
	r.running(from)
	pid := r.pid("pid")
	r.input(task.Input{Kind: task.InputInterrupt})
	got := r.end(id)
	if got.stop != "cancelled" || got.err != "" || !slices.Equal(got.tools(), []string{"execute echo $$ > pid; exec sleep 1000 failed"}) {
		t.Errorf("%q %q %q", got.stop, got.err, got.tools())
	}
	r.gone(pid)
	r.wantEnd("next", r.do(say("on")), "on")
}

// pid waits for the file in which a command has written its process id.
func (r *real) pid(name string) int {
	r.t.Helper()
	var pid int
	r.poll("process id", func() bool {
		b, err := os.ReadFile(filepath.Join(r.dir, name))
		return err == nil && json.Unmarshal(b, &pid) == nil
	})
	return pid
}

func (r *real) gone(pid int) {
	r.t.Helper()
	r.poll("end of the command", func() bool { return syscall.Kill(pid, 0) != nil })
}

func (r *real) poll(what string, ok func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), hangs)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.t.Fatalf("no %s", what)
		}
	}
}

func TestRealSteer(t *testing.T) {
	r := began(t, wire.Start{})
	from := r.count()
	id := r.say(fakemodel.Script(bash("until [ -e go ]; do read -t 0.05 x < /dev/zero; done"), say("done")), "")
	r.running(from)
	r.input(task.Input{ID: "steer", Kind: task.InputSteer, Text: "mind the gap"})
	r.must(os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600))
	r.wantEnd("turn", r.end(id), "done")
	if last := r.bodies()[len(r.bodies())-1]; !strings.Contains(last, "mind the gap") {
		t.Error("the model was not told")
	}
}
