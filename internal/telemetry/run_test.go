package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// Nothing of the content of a run is in any byte of agent telemetry, and its token is where
// it belongs.
func TestNoContentIsTold(t *testing.T) {
	s := newServer(t, nil)
	o := options(t, s.URL)
	o.Spec.Telemetry.Mirror = false
	r := begin(t, o)
	for _, ev := range aRun() {
		r.Emit(ev)
	}
	r.Close()
	if rep := r.Report(); rep.Dropped != 0 || rep.Left != 0 || rep.Sent != 22 {
		t.Errorf("%+v", rep)
	}
	if len(s.bodies) != 2 {
		t.Fatalf("requests to %d places", len(s.bodies))
	}
	for path, bodies := range s.bodies {
		for _, b := range bodies {
			for _, word := range []string{canary, "canary", token, "and more"} {
				if bytes.Contains(b, []byte(word)) {
					t.Errorf("%s has %q: %s", path, word, b)
				}
			}
		}
	}
	for _, got := range s.tokens {
		if got != "Bearer "+token {
			t.Errorf("authorization %q", got)
		}
	}
	if left, _ := os.ReadDir(o.Dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// faults are what receivers do. The bounds are those of a machine at rest, ten times over:
// they tell a wait for a receiver from none.
func faults() map[string]func(http.ResponseWriter, *http.Request) bool {
	code := func(n int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(n)
			return true
		}
	}
	return map[string]func(http.ResponseWriter, *http.Request) bool{
		"429": code(429), "500": code(500), "503": code(503), "302": code(302),
		"slow": func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection is not seen
			<-r.Context().Done()
			return true
		},
		"cut": func(w http.ResponseWriter, _ *http.Request) bool {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
			return true
		},
	}
}

// Whatever a receiver does, a run is told of it once and does not wait for it: not while it
// is at work, and at its end no longer than Grace.
func TestFaultsDoNotSlowARun(t *testing.T) {
	all := faults()
	all["down"] = nil
	for name, fault := range all {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, fault)
			if name == "down" {
				s.Close()
			}
			o := options(t, s.URL)
			o.Grace = 0
			var mu sync.Mutex
			notices := map[string]int{}
			o.Notify = func(level, text string) {
				mu.Lock()
				defer mu.Unlock()
				notices[level+" "+strings.SplitN(text, " cannot", 2)[0]]++
				if strings.Contains(text, s.URL) || strings.Contains(text, token) {
					t.Errorf("notice %q", text)
				}
			}
			r := begin(t, o)
			start := time.Now()
			for _, ev := range aRun() {
				r.Emit(ev)
			}
			emitted := time.Since(start)
			r.Close()
			closed := time.Since(start) - emitted
			t.Logf("%s: %d events in %s, end %s, %+v", name, len(aRun()), emitted, closed, r.Report())
			if emitted > 10*50*time.Millisecond || closed > 10*Grace {
				t.Errorf("events took %s, the end %s", emitted, closed)
			}
			rep := r.Report()
			if rep.Sent != 0 || rep.Dropped+int64(rep.Left) == 0 {
				t.Errorf("%+v", rep)
			}
			mu.Lock()
			defer mu.Unlock()
			for what, n := range notices {
				if n != 1 {
					t.Errorf("said %d times: %s", n, what)
				}
			}
			if name != "slow" && len(notices) != 3 {
				t.Errorf("notices %v", notices)
			}
		})
	}
}

// A receiver that comes back gets what waited, in order and once.
func TestReceiverComesBack(t *testing.T) {
	var mu sync.Mutex
	down := true
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if down {
			w.WriteHeader(503)
		}
		return down
	})
	o := options(t, s.URL)
	o.Spec.Telemetry.Mirror = false
	r := begin(t, o)
	events := aRun()
	for _, ev := range events[:5] {
		r.Emit(ev)
	}
	for _, l := range r.lanes() {
		if err := l.drain(t.Context()); err == nil && l.left() > 0 {
			t.Errorf("%s: taken", l.name)
		}
	}
	mu.Lock()
	down = false
	mu.Unlock()
	for _, ev := range events[5:] {
		r.Emit(ev)
	}
	r.Close()
	logs, spans := tell(events, o.Spec)
	if a, b := s.got(t, "/v1/logs"), s.got(t, "/v1/traces"); len(a) != len(logs) || len(b) != len(spans) {
		t.Errorf("%d logs of %d, %d spans of %d", len(a), len(logs), len(b), len(spans))
	}
}

// A process that dies at any event leaves its run to another. Every log and every span of
// the run comes once, and all are of one trace.
func TestTakenOverAtAnyEvent(t *testing.T) {
	events := aRun()
	for at := range len(events) {
		s := newServer(t, nil)
		o := options(t, s.URL)
		o.Spec.Telemetry.Mirror = false
		first := begin(t, o)
		for i, ev := range events[:at] {
			first.Emit(ev)
			if i == at/2 { // what came until here is delivered
				for _, l := range first.lanes() {
					_ = l.drain(t.Context())
				}
			}
		}
		kill(first)
		second := begin(t, o)
		for _, ev := range events[:at] {
			second.Replay(ev)
		}
		for _, ev := range events[at:] {
			second.Emit(ev)
		}
		second.Close()
		wantOnce(t, fmt.Sprintf("killed at %d", at), s, o.Spec, events)
	}
}

// kill ends a Run as the death of its process would.
func kill(r *Run) {
	r.cancel()
	r.wg.Wait()
	_ = r.marks.file.Close()
}

// wantOnce sees that every log and span of events has come, once.
func wantOnce(t *testing.T, name string, s *server, of task.Spec, events []task.Event) {
	t.Helper()
	logs, spans := tell(events, of)
	got := map[string]int{}
	for _, item := range append(s.got(t, "/v1/logs"), s.got(t, "/v1/traces")...) {
		got[fmt.Sprint(item["traceId"], item["spanId"], item["timeUnixNano"], item["endTimeUnixNano"], attrs(item)["event_type"])]++
	}
	want := 0
	for _, l := range logs {
		want++
		if n := got[fmt.Sprint(l.TraceID, l.SpanID, l.Time, nil, *l.Attributes[0].Value.String)]; n != 1 {
			t.Errorf("%s: log %s came %d times", name, show(l.Attributes), n)
		}
	}
	for _, p := range spans {
		want++
		if n := got[fmt.Sprint(p.TraceID, p.SpanID, nil, p.End, "")]; n != 1 {
			t.Errorf("%s: span %s came %d times", name, p.Name, n)
		}
	}
	if len(got) != want {
		t.Errorf("%s: %d items came, want %d", name, len(got), want)
	}
}

// What the end of a run could not deliver comes with a later process, from the run's log.
func TestDeliveredLater(t *testing.T) {
	var mu sync.Mutex
	down := true
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if down {
			w.WriteHeader(503)
		}
		return down
	})
	o := options(t, s.URL)
	o.Spec.Telemetry.Mirror = false
	r := begin(t, o)
	for _, ev := range aRun() {
		r.Emit(ev)
	}
	later := Later{
		Dir:     o.Dir,
		Options: func(_ context.Context, run task.ID) (Options, bool) { return o, run == o.Spec.Run },
		Read: func(_ context.Context, _ task.Spec, f func(task.Event)) error {
			for _, ev := range aRun() {
				f(ev)
			}
			return nil
		},
	}
	Deliver(t.Context(), later) // the run still has it
	r.Close()
	Deliver(t.Context(), later) // nobody is there
	if left := left(o.Dir); len(left) != 1 || r.Report().Left == 0 {
		t.Fatalf("left %v, %+v", left, r.Report())
	}
	mu.Lock()
	down = false
	mu.Unlock()
	broken := later
	broken.Read = func(context.Context, task.Spec, func(task.Event)) error { return errors.New("no log") }
	Deliver(t.Context(), broken)
	Deliver(t.Context(), later)
	wantOnce(t, "later", s, o.Spec, aRun())
	if left := left(o.Dir); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	Deliver(t.Context(), later) // nothing to do
}

// What is too old is forgotten, and what is no file of marks is let be.
func TestOldMarksAreForgotten(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-maxAge - time.Hour)
	for _, name := range []string{string(spec("").Run), "notes"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	Deliver(t.Context(), Later{Dir: dir, Options: func(context.Context, task.ID) (Options, bool) {
		t.Error("asked for")
		return Options{}, false
	}})
	if entries, _ := os.ReadDir(dir); len(entries) != 1 || entries[0].Name() != "notes" {
		t.Errorf("left: %v", entries)
	}
}

// Damaged marks are none: what was told is told again rather than not at all.
func TestDamagedMarks(t *testing.T) {
	dir, run := t.TempDir(), spec("").Run
	if err := os.WriteFile(filepath.Join(dir, string(run)), []byte("x\n-1\n7\n9\n9\n9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := openMarks(dir, run)
	if err != nil || m.at != [markCount]uint64{0, 0, 7, 9} {
		t.Fatalf("%+v, %v", m, err)
	}
	m.set(markLogs, 3)
	m.set(markLogs, 2)
	m.close(false)
	m.set(markLogs, 4)
	m.close(true)
	if m, err = openMarks(dir, run); err != nil || m.at != [markCount]uint64{3, 0, 7, 9} {
		t.Errorf("%+v, %v", m, err)
	}
	if other, err := openMarks(dir, run); other != nil || err != nil {
		t.Errorf("two have it: %v", err)
	}
}

// Nothing is told without what it needs.
func TestWhatIsNeeded(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"not enabled":  func(o *Options) { o.Spec.Telemetry.Enabled = false },
		"no place":     func(o *Options) { o.Spec.Telemetry.LogsURL, o.Spec.Telemetry.MirrorURL = "", "" },
		"no token":     func(o *Options) { o.LogsToken, o.MirrorToken = secret.String{}, secret.String{} },
		"not mirrored": func(o *Options) { o.LogsToken, o.Spec.Telemetry.Mirror = secret.String{}, false },
		"traces alone": func(o *Options) { o.Spec.Telemetry = task.Telemetry{Enabled: true, TracesURL: "http://h"} },
		"no mirror's":  func(o *Options) { o.Spec.Telemetry.LogsURL, o.MirrorToken = "", secret.String{} },
	} {
		o := options(t, "http://127.0.0.1:1")
		change(&o)
		if r, err := New(t.Context(), o); r != nil || err != nil {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	o := options(t, "ftp://x")
	if r, err := New(t.Context(), o); r != nil || err == nil || strings.Contains(err.Error(), "ftp") {
		t.Errorf("%v, %v", r, err)
	}
}

// A queue has a bound; what finds no room is counted and said at the end of the run.
func TestQueueIsBounded(t *testing.T) {
	s := newServer(t, faults()["slow"])
	o := options(t, s.URL)
	o.Grace = time.Millisecond
	o.Spec.Telemetry.Mirror = false
	r := begin(t, o)
	told := &told{}
	for range 3 * maxQueued {
		told.step("clone", task.StepCompleted)
	}
	for _, ev := range told.all {
		r.Emit(ev)
	}
	rep := r.Report()
	if rep.Left > maxQueued || rep.Dropped != int64(3*maxQueued+1-rep.Left) {
		t.Errorf("%+v", rep)
	}
	if want := fmt.Sprintf("not delivered, and dropped: telemetry logs: %d", rep.Dropped); r.Lost() != want {
		t.Errorf("%q, want %q", r.Lost(), want)
	}
	r.Close()
}

// A receiver may take a request and not all that is in it.
func TestPartialSuccess(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) bool {
		what := "rejectedSpans"
		if r.URL.Path == "/v1/logs" {
			what = "rejectedLogRecords"
		}
		fmt.Fprintf(w, `{"partialSuccess":{%q:"2","errorMessage":"x"}}`, what)
		return true
	})
	o := options(t, s.URL)
	o.Spec.Telemetry.Mirror = false
	r := begin(t, o)
	for _, ev := range aRun() {
		r.Emit(ev)
	}
	r.Close()
	if rep := r.Report(); rep.Dropped != 4 || rep.Sent != 18 {
		t.Errorf("%+v", rep)
	}
}

func TestHostURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://host.docker.internal:8000/i/v1/logs": "http://127.0.0.1:8000/i/v1/logs", "http://Host.Docker.Internal": "http://127.0.0.1",
		"http://localhost:8000/i/v1/logs": "http://localhost:8000/i/v1/logs", "https://us.i.hanzo.ai/i/v1/logs": "https://us.i.hanzo.ai/i/v1/logs",
		"": "", "x": "", "ftp://h/": "", "http://": "",
	} {
		if got, err := hostURL(in); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}
