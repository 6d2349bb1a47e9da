package telemetry

import (
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/task"
)

// ownScope is the scope of insightscli's own traces, and the service unless told otherwise.
const ownScope = "insightscli"

// ParentOf is the text of a TRACEPARENT if it is one, else empty. Traced is false if it says
// that nothing is recorded of the trace that it is of.
func ParentOf(text string) (parent string, traced bool) {
	trace, span, flags, ok := splitParent(text)
	if !ok {
		return "", true
	}
	return "00-" + trace + "-" + span + "-" + flags, strings.ContainsAny(flags[1:], "13579bdf")
}

// splitParent takes a traceparent of W3C Trace Context apart. Later versions may have more
// behind what this one has.
func splitParent(text string) (trace, span, flags string, ok bool) {
	parts := strings.Split(strings.TrimSpace(text), "-")
	if len(parts) < 4 || parts[0] == "00" && len(parts) > 4 || parts[0] == "ff" {
		return "", "", "", false
	}
	for i, size := range []int{2, 32, 16, 2} {
		if b, err := hex.DecodeString(parts[i]); err != nil || len(b)*2 != size || parts[i] != strings.ToLower(parts[i]) {
			return "", "", "", false
		}
	}
	trace, span, flags = parts[1], parts[2], parts[3]
	return trace, span, flags, strings.Trim(trace, "0") != "" && strings.Trim(span, "0") != ""
}

// TracesAddress is where traces go: to an endpoint of OTLP for them alone, or else below
// one for all signals. It is empty without either. Errors repeat no address, which may hold
// a password.
func TracesAddress(traces, endpoint string) (string, error) {
	address := traces
	if address == "" {
		address = endpoint
	}
	if address == "" {
		return "", nil
	}
	if _, err := hostURL(address); err != nil {
		return "", err
	}
	if traces != "" {
		return traces, nil
	}
	return url.JoinPath(endpoint, "v1", "traces")
}

// headersOf reads a list of key=value pairs as OTEL_EXPORTER_OTLP_HEADERS has it. What is
// no pair is left out: it is nobody's header.
func headersOf(list string) http.Header {
	all := http.Header{}
	for pair := range strings.SplitSeq(list, ",") {
		key, v, ok := strings.Cut(pair, "=")
		key, v = strings.TrimSpace(key), strings.TrimSpace(v)
		if plain, err := url.PathUnescape(v); err == nil {
			v = plain
		}
		if ok && isToken(key) && !strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			all.Set(key, v)
		}
	}
	return all
}

// isToken reports whether s can be the name of a header.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// tellOwn makes the lane of insightscli's own traces. A place that cannot be one does not
// keep the run's telemetry from its own.
func (r *Run) tellOwn() {
	t := r.o.Spec.Telemetry
	service := t.OwnService
	if service == "" {
		service = ownScope
	}
	version := build.Get().Version
	resource := []attribute{text("service.name", service), text("service.version", version)}
	l, err := r.toReceiver("traces of insightscli", t.OwnURL, receiver{headers: headersOf(r.o.OwnHeaders.Reveal())}, markOwn,
		newEnvelope("Spans", resource, ownScope, version))
	if err != nil {
		if r.o.Notify != nil {
			r.o.Notify("warn", "nothing is told to others of what insightscli does: "+err.Error())
		}
		return
	}
	r.own, r.owned = newOwnStory(r.o.Spec), l
}

// ownStory makes the trace of a run as insightscli carries it out: a span of the run, with
// one of each step. It is a fold, as story is.
type ownStory struct {
	spec   task.Spec
	trace  string
	root   open
	steps  map[string]*open
	spans  []span
	at     time.Time // of the event at hand
	begun  bool
	agent  bool      // there was one: what it changed is taken out
	ended  time.Time // when the last step before the clean-up did
	remove time.Time // when the clean-up began
}

func newOwnStory(spec task.Spec) *ownStory {
	s := &ownStory{spec: spec, steps: map[string]*open{}}
	s.root.id = spanID(spec.Run, "insightscli run", 0)
	if trace, parent, _, ok := splitParent(spec.Telemetry.TraceParent); ok {
		s.trace, s.root.parent = trace, parent
		return s
	}
	// Not the id of the run, which is that of agent telemetry's trace.
	s.trace = spanID(spec.Run, "insightscli trace", 0) + spanID(spec.Run, "insightscli trace", 1)
	return s
}

// event takes the next event of the run and returns the spans that ended with it. They are
// valid until the next event.
func (s *ownStory) event(ev task.Event) []span {
	s.spans, s.at = s.spans[:0], ev.At
	if !s.begun {
		s.begun, s.root.start = true, ev.At
	}
	switch ev.Kind {
	case task.KindStep:
		read(ev, func(p task.Step) { s.step(ev.Seq, ownStep(p.Step), p.Status) })
	case task.KindFinished:
		read(ev, s.finished)
	case task.KindAgent, task.KindOutput, task.KindPermission, task.KindDenied, task.KindPublished, task.KindUsage,
		task.KindTurn, task.KindNotice: // not of the steps
	}
	return s.spans
}

// ownStep is a step of the host's. Every other word is not told.
func ownStep(name string) string {
	return oneOf(name, ownSteps()...)
}

func ownSteps() []string {
	return []string{"context", "token", "clone", "image", "sandbox", "repo", "skills", "agent", "follow", "cleanup"}
}

// step takes a step's beginning or end. One that a process died in is begun again by the
// next, and is one span.
func (s *ownStory) step(seq uint64, name, state string) {
	o := s.steps[name]
	switch {
	case state == task.StepInProgress && o == nil:
		s.steps[name] = &open{id: spanID(s.spec.Run, "step", seq), start: s.at, parent: s.root.id}
		s.agent = s.agent || name == "agent"
		if name == "cleanup" {
			s.remove = s.at
		}
	case state == task.StepInProgress, o == nil:
	default:
		delete(s.steps, name)
		code := statusOK
		if state == task.StepFailed {
			code = statusError
		}
		s.end(o, name, s.at, code)
		if name != "cleanup" {
			s.ended = s.at
		}
	}
}

// finished takes the end of the run. Taking the changes out has no events of its own: it is
// what lies between the last step and the clean-up.
func (s *ownStory) finished(p task.Result) {
	if s.agent && len(s.spec.Repos) > 0 && !s.ended.IsZero() {
		end := s.remove
		if end.IsZero() {
			end = s.at // the sandbox was kept
		}
		s.end(&open{id: spanID(s.spec.Run, "capture", 0), start: s.ended, parent: s.root.id}, "capture", end, captureCode(p))
	}
	for _, name := range ownSteps() {
		if o := s.steps[name]; o != nil { // nobody saw its end
			s.end(o, name, s.at, statusUnset)
		}
	}
	code := p.Code
	if s.spec.ExitCode && p.ExitCode != nil && (p.Code == 0 || p.Kind == "task_failed") {
		code = *p.ExitCode // as the command line has asked for
	}
	state := statusOK
	if code != 0 {
		state = statusError
	}
	s.end(&s.root, "insightscli run", s.at, state, text("run_id", string(s.spec.Run)),
		text("provider", oneOf(s.spec.Provider, "docker", "local", "modal", "MODAL_DOCKER")),
		text("network", oneOf(string(s.spec.Network), "full", "trusted", "custom", "link", "none")), number("exit_code", int64(code)))
}

// captureCode is an error unless the changes of every repository were taken out.
func captureCode(p task.Result) int {
	code := statusError
	for _, r := range p.Repos {
		if r.Error != "" {
			return statusError
		}
		code = statusOK
	}
	return code
}

func (s *ownStory) end(o *open, name string, end time.Time, code int, more ...attribute) {
	if end.Before(o.start) {
		end = o.start // the clock was set back
	}
	s.spans = append(s.spans, span{
		TraceID: s.trace, SpanID: o.id, ParentID: o.parent, Flags: flagSampled, Name: name, Kind: kindInternal,
		Start: nano(o.start), End: nano(end), Attributes: more, Status: status{code},
	})
}
