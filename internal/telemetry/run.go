package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// Grace is how long the end of a run may wait for its last words to be delivered, where
// somebody waits for the end.
const Grace = 30 * time.Millisecond

// Options say what is told about one run, and where.
type Options struct {
	Spec        task.Spec
	LogsToken   secret.String // of Spec.Telemetry.LogsURL and TracesURL
	MirrorToken secret.String // of Spec.Telemetry.MirrorURL
	OwnHeaders  secret.String // of requests to Spec.Telemetry.OwnURL: a list of key=value
	// Dir is where it is kept how far receivers have got.
	Dir    string
	Client *http.Client // see NewClient
	// Lines takes the structured lines of the log mirror; nil: there are none.
	Lines io.Writer
	// Notify tells the people of the run, once for each receiver, that something goes wrong.
	Notify func(level, message string)
	Grace  time.Duration // 0 is Grace
}

// NewClient returns a client for Options. proxy may be nil.
func NewClient(proxy func(*http.Request) (*url.URL, error)) *http.Client { return newClient(proxy) }

// Report is what became of what there was to tell.
type Report struct {
	Sent    int64
	Dropped int64 // given up: no room, or refused for good
	Left    int   // to be delivered by a later process
}

// Run tells others about one run. Its methods are called one at a time.
type Run struct {
	o      Options
	marks  *marks
	story  *story // nil without agent telemetry
	mirror *mirror
	source mirrorSource
	own    *ownStory // nil without traces of insightscli itself

	logs, traces, mirrored, lines, owned *lane // nil: not wanted

	over   bool
	ended  time.Time // when the flush began; zero: not yet
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New begins to tell others about a run. It returns nil where nothing is to be told, or
// where another process still does. What it sends is not reached by the cancellation of ctx.
func New(ctx context.Context, o Options) (*Run, error) {
	t := o.Spec.Telemetry
	agent := t.Enabled && t.LogsURL != "" && !o.LogsToken.Empty()
	copied := t.Enabled && t.Mirror && (o.Lines != nil || t.MirrorURL != "" && !o.MirrorToken.Empty())
	if !agent && !copied && t.OwnURL == "" {
		return nil, nil
	}
	m, err := openMarks(o.Dir, o.Spec.Run)
	if m == nil || err != nil {
		return nil, err
	}
	r := &Run{o: o, marks: m}
	if r.o.Grace == 0 {
		r.o.Grace = Grace
	}
	if agent {
		err = r.tellStory()
	}
	if copied && err == nil {
		err = r.tellLog()
	}
	if t.OwnURL != "" && err == nil {
		r.tellOwn()
	}
	if err != nil || len(r.lanes()) == 0 {
		m.close(err == nil)
		return nil, err
	}
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	for _, l := range r.lanes() {
		r.wg.Go(func() { l.run(sending) })
	}
	return r, nil
}

// tellStory makes the lanes of agent telemetry.
func (r *Run) tellStory() (err error) {
	t := r.o.Spec.Telemetry
	resource := resourceOf(r.o.Spec)
	r.story = newStory(r.o.Spec, t.TracesURL != "")
	r.logs, err = r.toReceiver("telemetry logs", t.LogsURL, receiver{token: r.o.LogsToken}, markLogs,
		newEnvelope("Logs", resource, "agent-session", build.Get().Version))
	if err != nil || t.TracesURL == "" {
		return err
	}
	r.traces, err = r.toReceiver("telemetry traces", t.TracesURL, receiver{token: r.o.LogsToken}, markTraces,
		newEnvelope("Spans", resource, "agent-session", build.Get().Version))
	return err
}

// tellLog makes the lanes of the log mirror.
func (r *Run) tellLog() (err error) {
	s := r.o.Spec
	r.mirror, r.source = &mirror{}, mirrorSource{s.Run, s.Task, s.Team, s.OriginProduct}
	if r.o.Lines != nil {
		r.lines = r.lane("log lines")
		r.lines.send = func(_ context.Context, items [][]byte) (int, error) {
			for _, line := range r.withLost(r.lines, items, r.source.line) {
				if _, err := r.o.Lines.Write(line); err != nil {
					return 0, &refusedError{}
				}
			}
			return 0, nil
		}
		capped(r.lines)
	}
	if s.Telemetry.MirrorURL == "" || r.o.MirrorToken.Empty() {
		return nil
	}
	service := []attribute{text("service.name", mirrorScope)}
	r.mirrored, err = r.toReceiver("the log mirror", s.Telemetry.MirrorURL, receiver{token: r.o.MirrorToken}, markMirror,
		newEnvelope("Logs", service, mirrorScope, build.Get().Version))
	if err != nil {
		return err
	}
	send := r.mirrored.send
	r.mirrored.send = func(ctx context.Context, items [][]byte) (int, error) {
		return send(ctx, r.withLost(r.mirrored, items, r.source.record))
	}
	capped(r.mirrored)
	return nil
}

// capped gives a lane the bounds of the log mirror.
func capped(l *lane) { l.most, l.batch, l.pause, l.eager = mirrorMost, mirrorMost, mirrorPause, false }

// withLost adds the entry that says how many were left out since the last time.
func (r *Run) withLost(l *lane, items [][]byte, form func(entry) []byte) [][]byte {
	n := l.dropped.Load()
	if n == l.said {
		return items
	}
	items = append(items, form(lost(n-l.said)))
	l.said = n
	return items
}

// resourceOf is what agent telemetry says of where it comes from.
func resourceOf(s task.Spec) []attribute {
	device := "cloud"
	if s.Provider == "docker" || s.Provider == "local" {
		device = "local"
	}
	user := strconv.FormatInt(s.User, 10)
	adapter, _, _ := strings.Cut(s.Agent.Name, ":") // what follows acp: is a command line
	return []attribute{
		text("service.name", "insights-code-agent"), text("service.version", build.Get().Version),
		text("run_id", string(s.Run)), text("task_id", string(s.Task)), text("team_id", strconv.FormatInt(s.Team, 10)),
		text("user_id", user), text("distinct_id", user), text("device_type", device),
		text("adapter", adapter), text("run_mode", string(s.Mode)),
	}
}

func (r *Run) lane(name string) *lane {
	return &lane{
		name: name, pause: flushPause, most: maxQueued, batch: maxBatch, eager: true,
		wake: make(chan struct{}, 1), failed: r.tell,
	}
}

// toReceiver makes the lane of a receiver.
func (r *Run) toReceiver(name, address string, to receiver, mark int, e envelope) (*lane, error) {
	at, err := hostURL(address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	to.url, to.client = at, r.o.Client
	l := r.lane(name)
	l.mark = func(seq uint64) { r.marks.set(mark, seq) }
	l.from = r.marks.get(mark)
	l.send = func(ctx context.Context, items [][]byte) (int, error) { return to.post(ctx, e.wrap(items)) }
	return l, nil
}

// tell says that a receiver does not take what it is sent.
func (r *Run) tell(l *lane, err error) {
	if r.o.Notify != nil {
		r.o.Notify("warn", l.name+" cannot be delivered at the moment, and the run goes on: "+err.Error())
	}
}

func (r *Run) lanes() []*lane {
	var all []*lane
	for _, l := range []*lane{r.logs, r.traces, r.mirrored, r.lines, r.owned} {
		if l != nil {
			all = append(all, l)
		}
	}
	return all
}

// Replay takes an event that another process has recorded. What that one has not delivered
// of it is.
func (r *Run) Replay(ev task.Event) { r.take(ev, false) }

// Emit takes an event. It waits for nothing.
func (r *Run) Emit(ev task.Event) { r.take(ev, true) }

func (r *Run) take(ev task.Event, live bool) {
	if r.story != nil {
		logs, spans := r.story.event(ev)
		offer(r.logs, ev.Seq, logs)
		offer(r.traces, ev.Seq, spans)
	}
	if r.own != nil {
		offer(r.owned, ev.Seq, r.own.event(ev))
	}
	if r.mirror != nil {
		r.takeEntries(ev, live)
	}
	if ev.Kind == task.KindFinished {
		r.over = true
		r.flush()
	}
}

// offer hands what an event has made to a lane.
func offer[T any](l *lane, seq uint64, all []T) {
	if l == nil || len(all) == 0 || seq <= l.from {
		return
	}
	items := make([][]byte, len(all))
	for i := range all {
		items[i], _ = json.Marshal(all[i]) // plain structs always marshal
	}
	l.add(seq, items...)
}

func (r *Run) takeEntries(ev task.Event, live bool) {
	entries := r.mirror.event(ev)
	if len(entries) == 0 {
		return
	}
	put := func(l *lane, form func(entry) []byte) {
		items := make([][]byte, len(entries))
		for i, e := range entries {
			items[i] = form(e)
		}
		l.add(ev.Seq, items...)
	}
	if l := r.mirrored; l != nil && ev.Seq > l.from && !l.full(len(entries)) {
		put(l, r.source.record)
	}
	if l := r.lines; l != nil && live && !l.full(len(entries)) {
		put(l, r.source.line)
	}
}

// flush has everything sent now.
func (r *Run) flush() {
	if !r.ended.IsZero() {
		return
	}
	r.ended = time.Now()
	for _, l := range r.lanes() {
		l.flush()
	}
}

// Close ends what New began: what is queued has until Options.Grace after the last event to
// be delivered.
func (r *Run) Close() {
	r.flush()
	stop := time.AfterFunc(time.Until(r.ended.Add(r.o.Grace)), r.cancel)
	r.wg.Wait()
	stop.Stop()
	r.cancel()
	r.marks.close(r.over && r.Report().Left == 0)
}

// Report is what became so far of what there was to tell.
func (r *Run) Report() Report {
	var rep Report
	for _, l := range r.lanes() {
		rep.Sent += l.sent.Load()
		rep.Dropped += l.dropped.Load()
		if l.mark != nil {
			rep.Left += l.left()
		}
	}
	return rep
}

// Lost says how much was given up so far, empty for nothing.
func (r *Run) Lost() string {
	var lost []string
	for _, l := range r.lanes() {
		if n := l.dropped.Load(); n > 0 {
			lost = append(lost, fmt.Sprintf("%s: %d", l.name, n))
		}
	}
	if lost == nil {
		return ""
	}
	return "not delivered, and dropped: " + strings.Join(lost, ", ")
}
