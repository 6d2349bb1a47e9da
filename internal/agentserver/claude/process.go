package claude

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/agentserver/proc"
)

const (
	// maxLine bounds one line of the program.
	maxLine = 32 << 20
	// drainTime is how long output is waited for after the program's end.
	drainTime = 2 * time.Second
	// maxSaid bounds what waits for the program to be read by it.
	maxSaid = 256
)

var errLine = fmt.Errorf("Claude Code wrote a line of more than %d MiB", maxLine>>20)

// process is one run of the program.
type process struct {
	pipe    *agentserver.Pipe
	schema  string
	tracked bool // it tells what becomes of each message; the driver's mutex guards it
	said    chan []byte
	drained chan struct{} // closed when the output has ended
	ended   chan struct{} // closed when it has ended and all that it wrote has been dealt with
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex // guards the rest
	version string     // set by its first turn
	cause   string     // why we ended it
	replies map[string]chan controlResponse
	asking  map[string]context.CancelFunc // requests for leave that wait
}

func newProcess(pipe *agentserver.Pipe, schema string, cancel context.CancelFunc) *process {
	return &process{
		pipe: pipe, schema: schema, cancel: cancel, said: make(chan []byte, maxSaid),
		drained: make(chan struct{}), ended: make(chan struct{}),
		replies: map[string]chan controlResponse{}, asking: map[string]context.CancelFunc{},
	}
}

// run starts the goroutines of p. v gets its lines.
func (p *process) run(life context.Context, v *view) {
	lines := make(chan []byte)
	p.running.Go(func() { p.write(life) })
	p.running.Go(func() {
		defer close(p.drained)
		defer close(lines)
		p.read(life, lines)
	})
	p.running.Go(p.watch)
	go func() {
		v.follow(life, lines)
		p.cancel()
		p.running.Wait()
		close(p.ended)
	}()
}

// write gives the program what it is told, so that nobody has to wait for it to read.
func (p *process) write(life context.Context) {
	for {
		select {
		case b := <-p.said:
			if _, err := p.pipe.In.Write(b); err != nil {
				return // it has ended, or is about to
			}
		case <-life.Done():
			return
		}
	}
}

// say tells the program something, without waiting. A program that has not read so many
// lines reads no more.
func (p *process) say(line []byte) {
	select {
	case p.said <- line:
	default:
	}
}

// read reads lines until the output ends.
func (p *process) read(life context.Context, lines chan<- []byte) {
	r := bufio.NewReaderSize(p.pipe.Out, 64<<10)
	for {
		line, err := readLine(r)
		if errors.Is(err, errLine) {
			p.blame(err.Error())
			p.end()
		}
		if len(line) > 0 && !errors.Is(err, errLine) {
			select {
			case lines <- line:
			case <-life.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// readLine reads a line of at most maxLine bytes. The line is the caller's.
func readLine(r *bufio.Reader) ([]byte, error) {
	var whole []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(whole)+len(part) > maxLine {
			return nil, errLine
		}
		whole = append(whole, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return whole, err
		}
	}
}

// watch cleans up after the program's end. A child of it may hold the output open.
func (p *process) watch() {
	<-p.pipe.Child.Done()
	t := time.NewTimer(drainTime)
	defer t.Stop()
	select {
	case <-p.drained:
	case <-t.C:
	}
	p.pipe.Close(0)
}

// stop ends the program: its input, then signals.
func (p *process) stop(ctx context.Context, grace time.Duration) {
	p.pipe.Close(grace, syscall.SIGTERM)
	select {
	case <-p.ended:
		return
	case <-ctx.Done():
	case <-time.After(drainTime + grace): // the journal is full
	}
	p.cancel()
	<-p.ended
}

// end is stop without waiting, for the goroutine that would be waited for.
func (p *process) end() { _ = p.pipe.Child.Signal(syscall.SIGKILL) }

// over reports whether it has ended.
func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// began reports whether it has begun a turn.
func (p *process) began() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version != ""
}

// blame says why the program was ended.
func (p *process) blame(cause string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == "" {
		p.cause = cause
	}
}

// lastWords is why the program ended: our reason, else the end of its standard error,
// else its exit code. It waits for the end.
func (p *process) lastWords() string {
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause != "" {
		return p.cause
	}
	exit := p.pipe.Child.Exit()
	how := fmt.Sprintf("Claude Code ended with exit code %d", exit.Code)
	if exit.Signal != 0 {
		how = "Claude Code was ended by " + proc.SignalName(exit.Signal)
	}
	lines := strings.Split(p.pipe.Tail(), "\n")
	if last := oneLine(lines[len(lines)-1]); last != "" {
		how += ": " + last
	}
	return how
}

// ask makes a control request and waits for its answer.
func (p *process) ask(ctx context.Context, request map[string]any) error {
	id, answer := newID(), make(chan controlResponse, 1)
	p.mu.Lock()
	p.replies[id] = answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.replies, id)
		p.mu.Unlock()
	}()
	p.say(controlLine(id, request))
	select {
	case r := <-answer:
		if r.Subtype == "error" {
			return errors.New(oneLine(r.Error))
		}
		return nil
	case <-p.ended:
		return io.ErrUnexpectedEOF
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answered takes the answer to a control request.
func (p *process) answered(r controlResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if answer := p.replies[r.RequestID]; answer != nil {
		select {
		case answer <- r:
		default:
		}
	}
}
