//go:build linux

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/test/fakemodel"
)

// A model that is out for a while is waited for, and a stream that was cut is asked
// for again: the run does not notice.
func TestAnOutagePasses(t *testing.T) {
	each(t, all, func(w *world) {
		steps := []fakemodel.Step{
			bash("echo before > before.txt"),
			{Status: 500, Times: 1},
			{Cut: true, Times: 1},
			bash("echo after > after.txt"), say("recovered"),
		}
		if w.agent != acp { // which gives up at once
			steps = slices.Insert(steps, 1, fakemodel.Step{Status: 429, Times: 1, RetryAfter: "0"})
		}
		r := w.succeed(steps)
		if r.result.Turn == nil || r.result.Turn.Text != "recovered" {
			w.t.Errorf("turn %+v\n%s", r.result.Turn, w.story(r.events))
		}
		if diff := w.must("diff", "latest"); !strings.Contains(diff, "+before") || !strings.Contains(diff, "+after") {
			w.t.Errorf("diff %q", diff)
		}
		// Nothing was done twice: the script had two commands.
		calls := 0
		for _, ev := range r.events {
			if told(task.KindAgent, `"sessionUpdate":"tool_call"`, `"execute"`)(ev) {
				calls++
			}
		}
		if calls != 2 {
			w.t.Errorf("%d commands\n%s", calls, w.story(r.events))
		}
	})
}

// A model that stays out fails the run with a line that says so.
func TestAnOutageThatStays(t *testing.T) {
	for _, a := range []agent{claude, codex} {
		one(t, a, func(w *world) {
			r := w.do([]fakemodel.Step{{Status: 500}, say("never")})
			if r.code != 7 || r.result.State != task.StateFailed || !oneLine(r.result.Error) {
				w.t.Errorf("exit code %d, error %q\n%s", r.code, r.result.Error, w.story(r.events))
			}
			if n := len(w.requests()); n < 2 || n > 40 {
				w.t.Errorf("%d requests", n)
			}
		})
	}
}

func oneLine(s string) bool { return s != "" && !strings.Contains(s, "\n") && len(s) < 1000 }

// A key that the model's provider does not take ends the run at the first request, and
// the error names the variable to set.
func TestAKeyThatIsRefused(t *testing.T) {
	for _, a := range all {
		one(t, a, func(w *world) {
			w.env = append(w.env, "ANTHROPIC_API_KEY="+anthropicKey+"-old", "OPENAI_API_KEY="+openAIKey+"-old")
			r := w.do([]fakemodel.Step{say("never")})
			variable := map[agent]string{claude: "ANTHROPIC_API_KEY"}[a]
			if variable == "" {
				variable = "OPENAI_API_KEY"
			}
			if r.code != 7 && r.code != 4 || !strings.Contains(r.result.Error+r.result.Hint, variable) {
				w.t.Errorf("exit code %d, error %q, hint %q", r.code, r.result.Error, r.result.Hint)
			}
			if n := len(w.model.Requests()); n > 3 && a != acp { // which knows no answer that ends it
				w.t.Errorf("it was tried %d times", n)
			}
		})
	}
}

// The token of another run, or of none, is refused, and the agents stop at once: here
// an agent is started within a run with a token that is dead.
func TestADeadToken(t *testing.T) {
	for a, command := range map[agent]string{
		claude: "ANTHROPIC_AUTH_TOKEN=insx_dead claude -p hello",
		codex:  "OPENAI_API_KEY=insx_dead codex exec --skip-git-repo-check hello",
	} {
		one(t, a, func(w *world) {
			r := w.succeed([]fakemodel.Step{bash(command + " </dev/null 2>&1; echo code=$?"), say("done")})
			if !strings.Contains(r.updates(), "code=1") {
				w.t.Errorf("no refusal:\n%s", r.updates())
			}
			if n := len(w.requests()); n != 2 {
				w.t.Errorf("%d requests came through", n)
			}
		})
	}
}

// The budget ends the run before it is overdrawn by more than one request.
func TestBudgets(t *testing.T) {
	steps := []fakemodel.Step{}
	for range 8 {
		steps = append(steps, bash("true"))
	}
	steps = append(steps, say("never"))
	for name, flags := range map[string][]string{
		"tokens": {"--max-tokens", "40"},
		"cost":   {"--max-cost", "0.0003", "--model", "MODEL"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, a := range []agent{claude, codex} {
				one(t, a, func(w *world) {
					model := map[agent]string{claude: "claude-opus-5-5", codex: "gpt-5.5"}[a]
					var given []string
					for _, f := range flags {
						given = append(given, strings.ReplaceAll(f, "MODEL", model))
					}
					r := w.do(steps, given...)
					if r.code != 7 || !strings.Contains(r.result.Error, "budget") && !strings.Contains(r.result.Error, "--max-") {
						w.t.Errorf("exit code %d, error %q\n%s", r.code, r.result.Error, w.story(r.events))
					}
					if n := len(w.requests()); n < 2 || n > 5 {
						w.t.Errorf("%d requests for %s", n, name)
					}
					if r.result.Usage == nil || r.result.Usage.Total == 0 {
						w.t.Errorf("usage %+v", r.result.Usage)
					}
				})
			}
		})
	}
}
