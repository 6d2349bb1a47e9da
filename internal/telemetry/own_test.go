package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

const aParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// ownOptions are those of a run of which only insightscli's own traces are told.
func ownOptions(t *testing.T, url string) Options {
	t.Helper()
	o := options(t, url)
	o.Spec.Telemetry = task.Telemetry{OwnURL: url + "/v1/traces", TraceParent: aParent}
	o.Spec.Network, o.Spec.Repos = task.NetworkTrusted, []task.Repo{{Org: canary, Name: canary}}
	o.OwnHeaders = secret.New("x-tenant=a%20b, authorization=Bearer " + token)
	return o
}

// ownRun are the events of a run whose image had to be built and whose process has died
// while it followed.
func ownRun() []task.Event {
	r := &told{}
	both := func(name string) {
		r.step(name, task.StepInProgress)
		r.step(name, task.StepCompleted)
	}
	both("context")
	both("token")
	both("clone")
	r.step("sandbox", task.StepInProgress)
	r.step("sandbox", task.StepFailed)
	both("image")
	both("sandbox")
	both(canary)
	both("repo")
	both("agent")
	r.step("follow", task.StepInProgress)
	r.add(task.KindOutput, "", task.Output{Stdout: canary, Lines: 1})
	r.step("follow", task.StepInProgress)
	r.step("follow", task.StepCompleted)
	r.add(task.KindNotice, "", task.Notice{Level: "warn", Message: canary})
	both("cleanup")
	r.add(task.KindFinished, "", task.Result{
		State: task.StateFailed, Kind: "task_failed", Code: 1, Error: canary, Hint: canary, Repos: []task.RepoResult{{Org: canary, Name: canary}},
	})
	return r.all
}

// ownWant are the spans of ownRun: their name, the seconds at which they begin and end, and
// their status.
func ownWant() []string {
	return []string{
		"context 0 1 1", "token 2 3 1", "clone 4 5 1", "sandbox 6 7 2", "image 8 9 1", "sandbox 10 11 1", "other 12 13 1", "repo 14 15 1",
		"agent 16 17 1", "follow 18 21 1", "cleanup 23 24 1", "capture 21 23 1", "insightscli run 0 25 2",
	}
}

// The trace of a run, field by field, as a receiver gets it: with the parent that the
// environment names, the headers, and no word of what the run is about.
func TestOwnTraceOfARun(t *testing.T) {
	var heads []http.Header
	s := newServer(t, func(_ http.ResponseWriter, r *http.Request) bool {
		heads = append(heads, r.Header.Clone())
		return false
	})
	o := ownOptions(t, s.URL)
	r := begin(t, o)
	for _, ev := range ownRun() {
		r.Emit(ev)
	}
	r.Close()
	if rep := r.Report(); rep.Dropped != 0 || rep.Left != 0 || rep.Sent != int64(len(ownWant())) || len(s.bodies) != 1 {
		t.Fatalf("%+v, %d places", rep, len(s.bodies))
	}
	root := spanID(o.Spec.Run, "insightscli run", 0)
	ids := map[any]bool{}
	for i, got := range s.got(t, "/v1/traces") {
		var name string
		var from, to int64
		var code float64
		f := strings.Fields(strings.Replace(ownWant()[i], "insightscli run", "insightscli-run", 1))
		name = strings.ReplaceAll(f[0], "-", " ")
		_, _ = fmt.Sscan(strings.Join(f[1:], " "), &from, &to, &code)
		want := map[string]any{
			"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": got["spanId"], "parentSpanId": root, "flags": 1.0, "name": name, "kind": 1.0,
			"startTimeUnixNano": nano(began().Add(time.Duration(from) * time.Second)), "endTimeUnixNano": nano(began().Add(time.Duration(to) * time.Second)),
			"status": map[string]any{"code": code},
		}
		if name == "insightscli run" {
			want["spanId"], want["parentSpanId"] = root, "b7ad6b7169203331"
			want["attributes"] = got["attributes"]
			if a := fmt.Sprint(attrs(got)); a != "map[exit_code:1 network:trusted provider:docker run_id:"+string(o.Spec.Run)+"]" {
				t.Errorf("attributes %s", a)
			}
		}
		same(t, name, got, want)
		ids[got["spanId"]] = true
	}
	if len(ids) != len(ownWant()) {
		t.Errorf("%d ids", len(ids))
	}
	wantOwnRequests(t, s, heads)
	if left, _ := os.ReadDir(o.Dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// wantOwnRequests sees what stands around the spans.
func wantOwnRequests(t *testing.T, s *server, heads []http.Header) {
	t.Helper()
	for i, body := range s.bodies["/v1/traces"] {
		resource, by, _ := scope(t, decoded(t, body), "Spans", "spans")
		version := build.Get().Version
		same(t, "resource", resource, map[string]any{"attributes": []attribute{text("service.name", "insightscli"), text("service.version", version)}})
		same(t, "scope", by, map[string]string{"name": "insightscli", "version": version})
		if bytes.Contains(body, []byte("canary")) || bytes.Contains(body, []byte(token)) {
			t.Errorf("%s", body)
		}
		if h := heads[i]; h.Get("X-Tenant") != "a b" || h.Get("Authorization") != "Bearer "+token || h.Get("Content-Type") != "application/json" {
			t.Errorf("headers %v", h)
		}
	}
}

// ownTrace are the spans of events, as show has them.
func ownTrace(s task.Spec, events []task.Event) (spans []span) {
	st := newOwnStory(s)
	for _, ev := range events {
		spans = append(spans, st.event(ev)...)
	}
	return spans
}

// How a run ends decides about the status of its trace, and what is not known has none.
func TestOwnStatus(t *testing.T) {
	five := 5
	failed := task.Result{State: task.StateFailed, Kind: "task_failed", Code: 1, ExitCode: &five}
	for name, tt := range map[string]struct {
		result task.Result
		own    bool
		want   string
	}{
		"completed":     {task.Result{State: task.StateCompleted}, false, "0 1"},
		"failed":        {failed, false, "1 2"},
		"its own code":  {failed, true, "5 2"},
		"cancelled":     {task.Result{State: task.StateCancelled, Kind: "canceled", Code: 130}, true, "130 2"},
		"incomplete":    {task.Result{State: task.StateCompleted, Code: 8, Kind: "incomplete", Repos: []task.RepoResult{{Error: canary}}}, false, "8 2"},
		"cannot finish": {task.Result{State: task.StateFailed, Kind: "internal", Code: 70, ExitCode: &five}, true, "70 2"},
	} {
		r := &told{}
		r.step("agent", task.StepInProgress)
		r.step("agent", task.StepCompleted)
		r.step("follow", task.StepInProgress)
		r.add(task.KindFinished, "", tt.result)
		s := ownOptions(t, "").Spec
		s.ExitCode, s.Provider, s.Network = tt.own, canary, canary
		spans := ownTrace(s, r.all)
		if len(spans) != 4 {
			t.Fatalf("%s: %+v", name, spans)
		}
		capture, follow, root := spans[1], spans[2], spans[3]
		if got := fmt.Sprint(root.Attributes[3].Value.Int, " ", root.Status.Code); got != tt.want {
			t.Errorf("%s: %s", name, got)
		}
		if follow.Status.Code != statusUnset || capture.Name != "capture" || capture.Status.Code != statusError || capture.End != root.End {
			t.Errorf("%s: %+v", name, spans)
		}
		if got := show(root.Attributes); strings.Contains(got, "canary") {
			t.Error(got)
		}
	}
	s := ownOptions(t, "").Spec
	s.Repos = nil
	if spans := ownTrace(s, ownRun()); len(spans) != len(ownWant())-1 {
		t.Errorf("without repositories: %d spans", len(spans))
	}
}

// The parent is what the environment names if it is one. Without it the trace is the run's
// alone, and not that of agent telemetry.
func TestOwnParent(t *testing.T) {
	for in, want := range map[string]struct {
		parent string
		traced bool
	}{
		"": {"", true}, aParent: {aParent, true}, " " + aParent + "\n": {aParent, true},
		strings.TrimSuffix(aParent, "1") + "0":                      {strings.TrimSuffix(aParent, "1") + "0", false},
		strings.TrimSuffix(aParent, "01") + "0b":                    {strings.TrimSuffix(aParent, "01") + "0b", true},
		"cc" + aParent[2:] + "-later":                               {aParent, true},
		aParent + "-x":                                              {"", true},
		"ff" + aParent[2:]:                                          {"", true},
		strings.ToUpper(aParent):                                    {"", true},
		aParent[:len(aParent)-1]:                                    {"", true},
		"00-00000000000000000000000000000000-b7ad6b7169203331-01":   {"", true},
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01":   {"", true},
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333z-01":   {"", true},
		"00-0af7651916cd43dd8448eb211c80319c00-b7ad6b7169203331-01": {"", true},
		"x": {"", true},
	} {
		if parent, traced := ParentOf(in); parent != want.parent || traced != want.traced {
			t.Errorf("%q: %q, %v", in, parent, traced)
		}
	}
	s := ownOptions(t, "").Spec
	s.Telemetry.TraceParent = ""
	for _, p := range ownTrace(s, ownRun()) {
		if len(p.TraceID) != 32 || p.TraceID == traceID(s.Run) || p.TraceID != newOwnStory(s).trace || (p.ParentID == "") != (p.Name == "insightscli run") {
			t.Errorf("%+v", p)
		}
	}
}

// Without a place nothing happens: nothing is made, not even memory.
func TestOwnTracesUnset(t *testing.T) {
	o := ownOptions(t, "http://127.0.0.1:1")
	o.Spec.Telemetry.OwnURL = ""
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		if r, err := New(ctx, o); r != nil || err != nil {
			t.Errorf("%v, %v", r, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if left, _ := os.ReadDir(o.Dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// A place that cannot be one keeps nothing else from its own.
func TestOwnPlaceIsWrong(t *testing.T) {
	s := newServer(t, nil)
	o := options(t, s.URL)
	o.Spec.Telemetry.Mirror, o.Spec.Telemetry.OwnURL = false, "ftp://ann:"+canary+"@h"
	var said []string
	o.Notify = func(_, message string) { said = append(said, message) }
	r := begin(t, o)
	for _, ev := range aRun() {
		r.Emit(ev)
	}
	r.Close()
	if rep := r.Report(); rep.Sent != 22 || len(said) != 1 || strings.Contains(said[0], canary) {
		t.Errorf("%+v, %q", rep, said)
	}
	o.Spec.Telemetry.Enabled, o.Dir = false, t.TempDir()
	if r, err := New(t.Context(), o); r != nil || err != nil {
		t.Errorf("%v, %v", r, err)
	}
	if left, _ := os.ReadDir(o.Dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// Whatever the receiver does, a run does not wait for it.
func TestOwnFaultsDoNotSlowARun(t *testing.T) {
	all := faults()
	all["down"] = nil
	for name, fault := range all {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, fault)
			if name == "down" {
				s.Close()
			}
			o := ownOptions(t, s.URL)
			said := make(chan string, 10)
			o.Grace, o.Notify = 0, func(_, message string) { said <- message }
			r := begin(t, o)
			start := time.Now()
			for _, ev := range ownRun() {
				r.Emit(ev)
			}
			r.Close()
			if took := time.Since(start); took > 10*50*time.Millisecond {
				t.Errorf("took %s", took)
			}
			rep := r.Report()
			if rep.Sent != 0 || rep.Dropped+int64(rep.Left) != int64(len(ownWant())) {
				t.Errorf("%+v", rep)
			}
			close(said)
			for message := range said {
				if !strings.HasPrefix(message, "traces of insightscli cannot") || strings.Contains(message, s.URL) || strings.Contains(message, token) {
					t.Error(message)
				}
			}
		})
	}
}

// Whoever takes a run over, or comes after its end, goes on with its trace.
func TestOwnTraceTakenOver(t *testing.T) {
	events := ownRun()
	for at := range len(events) {
		s := newServer(t, nil)
		o := ownOptions(t, s.URL)
		first := begin(t, o)
		for i, ev := range events[:at] {
			first.Emit(ev)
			if i == at/2 {
				_ = first.owned.drain(t.Context())
			}
		}
		kill(first)
		if at%2 == 0 {
			second := begin(t, o)
			for _, ev := range events[:at] {
				second.Replay(ev)
			}
			for _, ev := range events[at:] {
				second.Emit(ev)
			}
			second.Close()
		} else {
			Deliver(t.Context(), Later{
				Dir:     o.Dir,
				Options: func(context.Context, task.ID) (Options, bool) { return o, true },
				Read: func(_ context.Context, _ task.Spec, f func(task.Event)) error {
					for _, ev := range events {
						f(ev)
					}
					return nil
				},
			})
		}
		n := map[any]int{}
		for _, got := range s.got(t, "/v1/traces") {
			n[got["spanId"]]++
		}
		for _, want := range ownTrace(o.Spec, events) {
			if n[want.SpanID] != 1 {
				t.Errorf("killed at %d: %s came %d times", at, want.Name, n[want.SpanID])
			}
		}
	}
}

func TestHeadersOf(t *testing.T) {
	got := headersOf("a=b,  c-d = e%2Cf=g ,bad name=x,=y,z,n=x%0Ay,p=100%,empty=")
	want := http.Header{"A": {"b"}, "C-D": {"e,f=g"}, "P": {"100%"}, "Empty": {""}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v", got)
	}
}

func TestTracesAddress(t *testing.T) {
	for in, want := range map[[2]string]string{
		{"", ""}: "", {"", "http://h:4318"}: "http://h:4318/v1/traces", {"", "http://h:4318/"}: "http://h:4318/v1/traces",
		{"", "https://h/otlp?a=b"}: "https://h/otlp/v1/traces?a=b", {"http://h/x", "http://other"}: "http://h/x", {"http://h/x", "h:1"}: "http://h/x",
	} {
		if got, err := TracesAddress(in[0], in[1]); got != want || err != nil {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	for _, in := range [][2]string{{"", "localhost:4317"}, {"canary:canary@h:1", ""}, {"", "http://canary@[::1"}} {
		if got, err := TracesAddress(in[0], in[1]); got != "" || err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

// A real collector understands it.
func TestCollectorUnderstandsOwnTraces(t *testing.T) {
	c := startCollector(t)
	o := ownOptions(t, c.url)
	o.Spec.Telemetry.OwnService = "nightly"
	r := begin(t, o)
	for _, ev := range ownRun() {
		r.Emit(ev)
	}
	r.Close()
	c.stop()
	spans := ownTrace(o.Spec, ownRun())
	resource := []attribute{text("service.name", "nightly"), text("service.version", build.Get().Version)}
	compare(t, c, "traces", "Spans", "spans", resource, "insightscli", len(spans), func(i int) any { return spans[i] })
}
