package cli

import (
	"context"
	"errors"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/task"
)

// logPrinter shows the chosen events of one run.
type logPrinter struct {
	o      *logsOptions
	state  *state
	rec    journal.Record
	filter render.Filter

	out, err *lineWriter // nil: the bytes go out as they come
	last     *lastLines  // with --grep and --tail, until the end of the log was reached
	show     func(line []byte, ev task.Event) error
	pass     func(ev task.Event) // takes note of an event that is not wanted
	end      func()
}

// logStreams are where a run is shown.
type logStreams struct {
	out, err io.Writer
	prefix   string // of every line; empty: none
}

// printer shows events: the stored lines and the raw bytes go out untouched.
func (o *logsOptions) printer(s *state, rec journal.Record, to logStreams) *logPrinter {
	p := &logPrinter{o: o, state: s, rec: rec, filter: o.chosen.filter, pass: func(task.Event) {}, end: func() {}}
	if o.chosen.match != nil && o.tail >= 0 {
		p.last = &lastLines{max: o.tail}
	}
	if o.json {
		p.asJSON(to)
		return p
	}
	if o.chosen.match != nil || to.prefix != "" {
		p.out = &lineWriter{w: to.out, prefix: to.prefix, match: o.chosen.match, last: p.last}
		p.err = &lineWriter{w: to.err, prefix: to.prefix, match: o.chosen.match, last: p.last}
		to.out, to.err = p.out, p.err
	}
	st := o.app.streams
	screen := render.NewText(to.out, to.err, render.Options{
		OutTTY: st.OutTTY, ErrTTY: st.ErrTTY, Color: st.Color, Dumb: st.Dumb, Every: o.chosen.any(), Whole: p.out != nil,
	})
	if o.raw {
		screen = render.NewText(to.out, to.err, render.Options{Quiet: true, Raw: true})
	}
	p.show = func(_ []byte, ev task.Event) error {
		if o.raw && ev.Kind != task.KindOutput {
			return nil
		}
		screen.Emit(ev)
		return screen.Err()
	}
	p.pass, p.end = screen.Overlook, screen.End
	return p
}

// asJSON shows the stored lines. Those of several runs say which run is theirs.
func (p *logPrinter) asJSON(to logStreams) {
	matcher := newEventMatcher(p.o.chosen.match)
	var buf []byte
	p.show = func(line []byte, ev task.Event) error {
		if !matcher.match(ev) {
			return nil
		}
		if to.prefix != "" {
			buf = append(append(append(buf[:0], `{"run":"`...), p.rec.Spec.Run...), `",`...)
			buf = append(buf, line[1:]...)
			line = buf
		}
		if p.last != nil {
			p.last.add(to.out, line)
			return nil
		}
		_, err := to.out.Write(line)
		return err
	}
}

// eventMatcher tells whether a line of an event matches as it is shown.
type eventMatcher struct {
	screen   *render.Text
	out, err *lineWriter
}

func newEventMatcher(re *regexp.Regexp) *eventMatcher {
	if re == nil {
		return nil
	}
	m := &eventMatcher{out: &lineWriter{match: re, tell: true}, err: &lineWriter{match: re, tell: true}}
	m.screen = render.NewText(m.out, m.err, render.Options{Every: true})
	return m
}

// match also looks at a line that the event leaves open, and at the end of one that an
// event before it had left open.
func (m *eventMatcher) match(ev task.Event) bool {
	if m == nil {
		return true
	}
	m.out.hit, m.err.hit = false, false
	m.screen.Emit(ev)
	return m.out.hit || m.err.hit || m.out.open() || m.err.open()
}

// open reports whether a line that has no end yet matches.
func (l *lineWriter) open() bool { return len(l.held) > 0 && matches(l.match, l.held) }

// visitor takes the events of the log from a beginning on.
func (p *logPrinter) visitor(begin beginning) journal.Visit {
	return func(line []byte, ev task.Event) error {
		if !p.filter.Keep(ev) {
			p.pass(ev)
			return nil
		}
		if ev.Seq == begin.after+1 {
			ev = begin.cut(ev)
		}
		return p.show(line, ev)
	}
}

// print shows the run, and goes on with it if that is asked for.
func (p *logPrinter) print(ctx context.Context) error {
	begin, err := p.begin(ctx)
	if err != nil {
		return err
	}
	visit := p.visitor(begin)
	if p.last != nil {
		after := begin.after
		err = p.state.store.ReadLog(ctx, p.rec, after, func(line []byte, ev task.Event) error {
			begin.after = ev.Seq
			return visit(line, ev)
		})
		if err == nil && p.o.follow {
			err = p.releaseLast()
		}
	}
	switch {
	case err != nil || p.last != nil:
	case p.o.follow:
		err = p.follow(ctx, begin.after, visit)
	default:
		err = p.state.store.ReadLog(ctx, p.rec, begin.after, visit)
	}
	return errors.Join(err, p.finish())
}

// finish shows what is still open.
func (p *logPrinter) finish() error {
	p.end()
	for _, l := range []*lineWriter{p.out, p.err} {
		if l != nil {
			l.flush()
		}
	}
	return p.releaseLast()
}

// releaseLast shows the last lines; what comes from now on is shown at once.
func (p *logPrinter) releaseLast() error {
	if p.last == nil {
		return nil
	}
	last := p.last
	p.last = nil
	for _, l := range []*lineWriter{p.out, p.err} {
		if l != nil {
			l.last = nil
		}
	}
	return last.release()
}

// follow shows what comes, until the run has finished or the time of --until has come.
// Should nobody carry out the run any more, the background runner is called.
func (p *logPrinter) follow(ctx context.Context, after uint64, visit journal.Visit) error {
	if to := p.filter.To; !to.IsZero() {
		if !to.After(time.Now()) {
			return p.state.store.ReadLog(ctx, p.rec, after, visit)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, to, errUntil)
		defer cancel()
	}
	attended, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { p.state.attend(attended, p.rec.Spec.Run) })
	if err := p.state.store.Tail(ctx, p.rec, after, visit); !errors.Is(err, errUntil) {
		return err
	}
	return nil
}

// errUntil ends the following of a run.
var errUntil = errors.New("the time of --until has come")

// attend calls the background runner when nobody carries out a run that is followed,
// because its process was killed.
func (s *state) attend(ctx context.Context, run task.ID) {
	for pause(ctx, adoptPause) == nil {
		rec, err := s.store.Run(ctx, run)
		if err != nil || rec.State.Terminal() {
			return
		}
		_ = s.knockFor(ctx, rec) // the next look tries again; whoever follows has been told by adopt
	}
}
