//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/test/fakemodel"
)

// all are the agents that work on a repository.
var all = []agent{claude, codex, acp}

func bash(command string) fakemodel.Step { return fakemodel.Step{Bash: command} }

func say(text string) fakemodel.Step { return fakemodel.Say(text) }

// updates returns the agent's events as text, to look for words in.
func (r *run) updates() string {
	var b strings.Builder
	for _, ev := range r.events {
		if ev.Kind == task.KindAgent {
			b.Write(ev.Params)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// requests are those of the agent for replies.
func (w *world) requests() []fakemodel.Request {
	var out []fakemodel.Request
	for _, r := range w.model.Requests() {
		if r.Dialect == w.agent.dialect {
			out = append(out, r)
		}
	}
	return out
}

// A command, a new file and a changed one: the events tell of them, the diff has them,
// the words of the model arrive, and the tokens are counted.
func TestWork(t *testing.T) {
	each(t, all, func(w *world) {
		r := w.succeed([]fakemodel.Step{
			{Bash: "echo from the tool | tee made.txt", Say: "I begin."},
			{Write: &fakemodel.Write{Path: w.path("new.txt"), Content: "new\n"}},
			{Read: w.path("file.txt")},
			{Edit: &fakemodel.Edit{Path: w.path("file.txt"), Old: "second", New: "changed"}, Usage: &fakemodel.Usage{Input: 1000, Output: 50, CacheRead: 7}},
			say("All of it is done."),
		})
		if r.result.Turn == nil || r.result.Turn.Text != "All of it is done." || r.result.Turn.Attempts != 1 {
			w.t.Errorf("turn %+v", r.result.Turn)
		}
		told := r.updates()
		for _, want := range []string{"I begin.", "from the tool", `"kind":"execute"`, `"kind":"edit"`, `"status":"completed"`} {
			if !strings.Contains(told, want) {
				w.t.Errorf("no %s in the events:\n%s", want, told)
			}
		}
		diff := w.must("diff", "latest")
		for _, want := range []string{"+from the tool", "+new", "-second", "+changed"} {
			if !strings.Contains(diff, want) {
				w.t.Errorf("no %q in the diff:\n%s", want, diff)
			}
		}
		w.counted(r, len(w.requests()))
	})
}

// path names a file of the repository as the agent sees it.
func (w *world) path(name string) string { return "/tmp/workspace/repos/local/repo/" + name }

// counted checks the account of a run whose third last request used 1057 tokens and every
// other one 15.
func (w *world) counted(r run, requests int) {
	w.t.Helper()
	u := r.result.Usage
	want := int64(1057 + (requests-1)*15)
	if u == nil || u.Total != want || u.Requests != int64(requests) || u.CacheRead != 7 || u.CostUSD <= 0 {
		w.t.Errorf("usage %+v, want %d tokens of %d requests", u, want, requests)
	}
	var shown struct{ Result task.Result }
	if err := json.Unmarshal([]byte(w.must("show", "latest", "--json")), &shown); err != nil {
		w.t.Fatal(err)
	}
	if shown.Result.Usage == nil || *shown.Result.Usage != *u {
		w.t.Errorf("show says %+v", shown.Result.Usage)
	}
	for _, req := range w.model.Requests() {
		if req.Status != 200 || req.Kind == "" {
			w.t.Errorf("request %s %s: %d", req.Method, req.Path, req.Status)
		}
	}
}

// The real keys go to the model and nowhere else: not into the environment of the
// agent's tools, nor into what another process of the sandbox can read of it. (That the
// state directory has none is checked in every world.)
func TestTheRealKeysStayOnTheHost(t *testing.T) {
	each(t, all, func(w *world) {
		r := w.succeed([]fakemodel.Step{
			bash("env; for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/environ; tr '\\0' ' ' <$p/cmdline; done 2>/dev/null; " +
				"grep -rs canary /home /tmp /run /etc /scripts 2>/dev/null | head; echo looked everywhere"),
			say("done"),
		})
		if !strings.Contains(r.updates(), "looked everywhere") {
			w.t.Errorf("the tool did not run:\n%s", r.updates())
		}
		for _, req := range w.model.Requests() {
			if strings.Contains(string(req.Body), "-only-the-model-may-see-this") {
				w.t.Errorf("the sandbox could tell the model of a real key")
			}
		}
		if strings.Contains(r.stdout+r.stderr, "canary") && strings.Contains(r.stdout+r.stderr, "-only-the-model") {
			w.t.Error("the output has a real key")
		}
		w.onlyTheRunToken()
	})
}

// onlyTheRunToken checks that what the model got is the key, not the run's token.
func (w *world) onlyTheRunToken() {
	w.t.Helper()
	for _, req := range w.requests() {
		for name, values := range req.Header {
			if strings.Contains(fmt.Sprint(values), "insx_") {
				w.t.Errorf("the model's provider got the run's token in %s", name)
			}
		}
	}
}
