package runner

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// story tells one run: it masks, numbers and writes events, to the journal first
// and then to the screen. It is the only place where sequence numbers are made.
type story struct {
	run    task.ID
	log    *journal.Log
	screen task.Sink

	mu     sync.Mutex       // guards what follows, and the order of events
	seen   func(task.Event) // is shown every event, under the lock; nil: nobody
	masker *secret.Masker
	seq    uint64
	buf    []byte
	over   bool          // the finished event is written, and nothing comes after it
	failed error         // the first error of the journal
	broken chan struct{} // closed when failed is set
}

func newStory(run task.ID, log *journal.Log, screen task.Sink, mask *secret.Masker) *story {
	seq, _ := log.Last()
	return &story{run: run, log: log, screen: screen, masker: mask, seq: seq, broken: make(chan struct{})}
}

// mask returns the masks of the run. A stream of one keeps the masks it was made of.
func (s *story) mask() *secret.Masker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.masker
}

func (s *story) setMask(m *secret.Masker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.masker = m
}

// showTo has every event from now on shown to seen.
func (s *story) showTo(seen func(task.Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = seen
}

// tell writes an event whose payload is a value of package task.
func (s *story) tell(kind task.Kind, payload any) {
	params, err := json.Marshal(payload)
	if err != nil {
		params = []byte(`{}`) // our own plain structs always marshal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emitLocked(task.Event{Kind: kind, Params: s.masker.MaskJSON(params)})
}

// method writes an event of the host's that has no kind of its own.
func (s *story) method(method string, payload any) {
	params, err := json.Marshal(payload)
	if err != nil {
		params = []byte(`{}`) // our own plain structs always marshal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emitLocked(task.Event{Kind: task.KindOf(method), Method: method, Params: s.masker.MaskJSON(params)})
}

// step tells that a step began or ended.
func (s *story) step(name, status, label, detail string) {
	if r := []rune(detail); len(r) > 200 {
		detail = string(r[:200])
	}
	s.tell(task.KindStep, task.Step{Step: name, Status: status, Label: label, Group: "setup", Detail: detail})
}

// notice tells people something. The text is masked like everything else.
func (s *story) notice(level, message string) {
	s.tell(task.KindNotice, task.Notice{Level: level, Message: message})
}

// emit numbers ev and writes it. Params must be masked already.
func (s *story) emit(ev task.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emitLocked(ev)
}

// output writes a piece of a command's output, masked already.
func (s *story) output(stream task.Stream, data []byte, continued bool, ev task.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = task.AppendOutput(s.buf[:0], stream, data, continued)
	ev.Kind, ev.Params = task.KindOutput, s.buf
	s.emitLocked(ev)
}

// exitCode writes how a command ended, as the last piece of its output.
func (s *story) exitCode(code int, ev task.Event) {
	ev.Kind, ev.Params = task.KindOutput, fmt.Appendf(nil, `{"exitCode":%d}`, code)
	s.emit(ev)
}

// emitLocked writes one event. What the journal did not take is shown to nobody, nor
// what somebody has to say after the end.
func (s *story) emitLocked(ev task.Event) {
	if s.over {
		return
	}
	ev.Run, ev.Seq = s.run, s.seq+1
	if ev.At.IsZero() {
		ev.At = time.Now()
	}
	err := s.log.Append(ev)
	if err == nil {
		s.seq++
		s.over = ev.Kind == task.KindFinished
		if s.seen != nil {
			s.seen(ev)
		}
		if ev.Kind != task.KindOutput {
			// Readers of the log see rare events at once; output is flushed in batches.
			err = s.log.Flush()
		}
		s.screen.Emit(ev)
	}
	s.failLocked(err)
}

// fail notes that the journal does not take what it is given.
func (s *story) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(err)
}

func (s *story) failLocked(err error) {
	if err != nil && s.failed == nil {
		s.failed = err
		close(s.broken)
	}
}

// err is the first error of the journal, if any.
func (s *story) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}
