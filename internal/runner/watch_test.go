package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// watcher keeps what it is shown.
type watcher struct {
	shown  []string
	closed int
}

func (w *watcher) Replay(ev task.Event) { w.shown = append(w.shown, fmt.Sprint("replay ", ev.Seq)) }

func (w *watcher) Emit(ev task.Event) { w.shown = append(w.shown, fmt.Sprint("emit ", ev.Seq)) }

func (w *watcher) Lost() string { return "one is lost" }

func (w *watcher) Close() { w.closed++ }

// Who watches a run is shown every event once, also when another runner goes on with it, and
// has the last word before its end.
func TestWatcherSeesTheWholeRun(t *testing.T) {
	r := newRig(t)
	var all []*watcher
	r.watch = func(_ context.Context, _ task.Spec, values map[string]secret.String, _ func(string, string)) runner.Watcher {
		if values["TOKEN"].Reveal() != "0123456789" {
			t.Errorf("values %v", values)
		}
		w := &watcher{}
		all = append(all, w)
		return w
	}
	spec := r.spec("sh", "-c", "echo one; read line; echo two")
	spec.Secrets = []string{"TOKEN"}
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := r.newRunner("first").Run(ctx, spec, map[string]secret.String{"TOKEN": secret.New("0123456789")}, nil,
		onOutput(func() { cancel(runner.ErrAbandoned) }))
	if !errors.Is(err, runner.ErrAbandoned) {
		t.Fatal(err)
	}
	if ok, err := r.store.Claim(t.Context(), spec.Run, "first", "second"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := r.newRunner("second").Execute(ctx, spec.Run, nil, &recorder{}); err != nil {
		t.Fatal(err)
	}
	events := r.stored(spec.Run)
	var want []string
	for _, ev := range events {
		want = append(want, fmt.Sprint("emit ", ev.Seq))
	}
	first := len(all[0].shown)
	if len(all) != 2 || all[0].closed != 1 || all[1].closed != 1 || !slices.Equal(all[0].shown, want[:first]) {
		t.Fatalf("%d watchers, the first: %v", len(all), all[0].shown)
	}
	for i := range first {
		want[i] = strings.Replace(want[i], "emit", "replay", 1)
	}
	if !slices.Equal(all[1].shown, want) {
		t.Errorf("shown %v, want %v", all[1].shown, want)
	}
	if said := string(events[len(events)-2].Params); !strings.Contains(said, "one is lost") {
		t.Errorf("before the end: %s", said)
	}
}
