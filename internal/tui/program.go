package tui

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	_ "github.com/Insights/insightscli/internal/tui/quiet" // the terminal is not asked at the program's start
)

// frames is how many frames a second are drawn at most.
const frames = 60

// Options say what is shown, and where.
type Options struct {
	Source  Source
	Actions Actions

	In, Out *os.File // the terminal
	Color   bool
	Now     func() time.Time
	Dir     string // where files are saved; empty: the working directory
	Repo    string // what the form proposes

	// Run is the run that is shown at once; empty: the table.
	Run string
	// First is what is known of that run before it is recorded; nil: it is recorded.
	First *Run
	// Hosted marks a run that this process carries out. Its screen leaves when the run is
	// over, unless somebody is reading.
	Hosted bool
	// End ends the conversation with the agent of a hosted run: nothing more is said to it.
	// nil: it does not wait for anybody.
	End func()
	// Interrupt does what a signal does when Ctrl-C is pressed. nil: the screen is left.
	Interrupt func()
	// Guard is the command line of a process that calls [Guard]; empty: nobody guards the
	// terminal.
	Guard []string

	first string    // the run that was shown first
	out   io.Writer // Out, a frame or a sequence at a time
	after func(time.Duration, func() tea.Msg) tea.Cmd
}

// Show shows the screens until they are left, ctx ends or the program breaks. Whatever
// happens, the terminal is as it was when Show returns.
func Show(ctx context.Context, o Options) error {
	out := &terminal{File: o.Out}
	o.out, o.after = out, later
	guard, err := startGuard(o)
	if err != nil {
		return fmt.Errorf("guard the terminal: %w", err)
	}
	defer guard.release()
	commands, cancel := context.WithCancel(ctx)
	defer cancel()
	p := tea.NewProgram(newModel(commands, o), tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithAltScreen(),
		tea.WithInput(o.In), tea.WithOutput(out), tea.WithFPS(frames))
	_, err = p.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// later is a command that waits.
func later(d time.Duration, f func() tea.Msg) tea.Cmd {
	return tea.Tick(d, func(time.Time) tea.Msg { return f() })
}

// terminal writes each frame whole: what is written beside the frames comes between them.
type terminal struct {
	*os.File
	mu sync.Mutex
}

// Write implements io.Writer.
func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.File.Write(b)
}
