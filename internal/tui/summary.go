package tui

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

const (
	// maxSteps, maxDenied and maxAsked bound what a summary keeps.
	maxSteps  = 200
	maxDenied = 100
	maxAsked  = 50
)

// stepTime is a step of the run and when it was at work.
type stepTime struct {
	name, label, status string
	begin, end          time.Time
}

// summary is what is known of a run as a whole: a fold over those events that tell it.
type summary struct {
	steps     []stepTime
	usage     *task.Tokens
	model     string
	used      int64 // of the agent's context, in tokens
	window    int64
	plan      []planEntry
	denied    []task.Denied
	published []task.Published
	asked     []task.Permission // that wait for an answer
	result    *task.Result
	turns     int
	last      time.Time // of the last event that told something
	damaged   int
}

// add takes one event.
func (s *summary) add(ev task.Event) {
	s.last = ev.At
	switch ev.Kind {
	case task.KindStep:
		s.step(ev)
	case task.KindUsage:
		if u := decoded[task.Usage](ev); u != nil {
			s.usage, s.model = &u.Run, u.Model
		}
	case task.KindAgent:
		s.update(ev)
	case task.KindDenied:
		if d := decoded[task.Denied](ev); d != nil {
			s.deny(*d)
		}
	case task.KindPublished:
		if p := decoded[task.Published](ev); p != nil && len(s.published) < maxDenied {
			s.published = append(s.published, *p)
		}
	case task.KindPermission:
		if p := decoded[task.Permission](ev); p != nil && p.RequestID != "" && len(s.asked) < maxAsked {
			s.asked = append(s.asked, *p)
		}
	case "permission_resolved":
		var p struct{ RequestID string }
		_ = json.Unmarshal(ev.Params, &p) // without an id it answers nothing
		s.asked = slices.DeleteFunc(s.asked, func(a task.Permission) bool { return a.RequestID == p.RequestID })
	case task.KindTurn:
		s.turns++
	case task.KindFinished:
		s.result, s.asked = decoded[task.Result](ev), nil
		if s.result == nil {
			s.result = &task.Result{}
		}
	}
}

func (s *summary) step(ev task.Event) {
	st := decoded[task.Step](ev)
	if st == nil {
		return
	}
	i := slices.IndexFunc(s.steps, func(t stepTime) bool { return t.name == st.Step && t.status == task.StepInProgress })
	if i < 0 {
		if len(s.steps) >= maxSteps {
			return
		}
		i = len(s.steps)
		s.steps = append(s.steps, stepTime{name: st.Step, begin: ev.At})
	}
	t := &s.steps[i]
	t.status = st.Status
	take(&t.label, st.Label)
	if st.Status != task.StepInProgress {
		t.end = ev.At
	}
}

// update takes what an update of the agent tells about the whole.
func (s *summary) update(ev task.Event) {
	var p struct {
		Update struct {
			SessionUpdate string
			Used, Size    int64
		}
	}
	if json.Unmarshal(ev.Params, &p) != nil {
		return
	}
	switch p.Update.SessionUpdate {
	case "plan":
		s.plan = planOf(ev)
	case "usage_update":
		s.used, s.window = p.Update.Used, p.Update.Size
	}
}

func (s *summary) deny(d task.Denied) {
	d.Count = max(d.Count, 1)
	for i := range s.denied {
		if s.denied[i].Host == d.Host && s.denied[i].Port == d.Port {
			s.denied[i].Count += d.Count
			return
		}
	}
	if len(s.denied) < maxDenied {
		s.denied = append(s.denied, d)
	}
}
