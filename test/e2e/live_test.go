//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/test/fakemodel"
)

// detach gives a script to the background runner and returns the run's id.
func (w *world) detach(steps []fakemodel.Step, flags ...string) string {
	w.t.Helper()
	args := append(append([]string{"run", "-d"}, w.flags...), flags...)
	out := w.try(append(args, w.script(steps...))...)
	id := strings.TrimSpace(out.stdout)
	if out.code != 8 || id == "" {
		w.t.Fatalf("run -d: exit code %d, %q\n%s", out.code, id, out.stderr)
	}
	return id
}

// watch follows the log of a run until an event is the one, and returns it.
func (w *world) watch(ref string, is func(task.Event) bool) task.Event {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	cmd := w.command(ctx, "logs", ref, "--json", "--follow")
	var says bytes.Buffer
	cmd.Stderr = &says
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was told to end
	}()
	var seen []task.Event
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			w.t.Fatalf("the log of %s ended before the event: %v %s\n%s", ref, err, &says, w.story(seen))
		}
		ev, err := task.ParseLine(bytes.TrimSpace(line))
		if err != nil {
			w.t.Fatal(err)
		}
		if seen = append(seen, ev); is(ev) {
			return ev
		}
	}
}

// told is for watch: an event of the kind that has the words.
func told(kind task.Kind, words ...string) func(task.Event) bool {
	return func(ev task.Event) bool {
		for _, word := range words {
			if !bytes.Contains(ev.Params, []byte(word)) {
				return false
			}
		}
		return ev.Kind == kind
	}
}

// held waits until the model holds a stream at the gate.
func (w *world) held(gate string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	if err := w.model.Held(ctx, gate); err != nil {
		w.t.Fatalf("the model was never asked for %q: %v", gate, err)
	}
}

// ended waits for the end of a run.
func (w *world) ended(ref string) run {
	w.t.Helper()
	out := w.try("wait", ref, "--timeout", patience.String())
	r := w.latest(ref)
	r.stderr = out.stderr
	if r.result.Code != out.code {
		w.t.Errorf("wait says %d, the result %d\n%s\n%s", out.code, r.result.Code, out.stderr, w.story(r.events))
	}
	return r
}

// killRunner kills the process that carries out the runs, as the kernel does it when
// memory is short: it has no say.
func (w *world) killRunner() {
	w.t.Helper()
	files, _ := filepath.Glob(filepath.Join(w.state, "owners", "*.lock")) // the pattern is well-formed
	killed := 0
	if w.killed == nil {
		w.killed = map[int]bool{}
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has just gone
		}
		var owner struct{ PID int }
		if json.NewDecoder(bytes.NewReader(b)).Decode(&owner) != nil || owner.PID <= 1 || w.killed[owner.PID] {
			continue
		}
		w.killed[owner.PID] = true
		if syscall.Kill(owner.PID, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed != 1 {
		w.t.Fatalf("%d processes were killed, of %v", killed, files)
	}
}

// fits is a prompt's schema: a list of words.
const fits = `{"type":"object","properties":{"items":{"type":"array","items":{"type":"string"}}},"required":["items"],"additionalProperties":false}`

func (w *world) schema() string {
	path := filepath.Join(w.home, "schema.json")
	w.write(path, fits)
	return path
}

// answer is a step with a structured reply.
func answer(value string) fakemodel.Step { return fakemodel.Step{Structured: json.RawMessage(value)} }
