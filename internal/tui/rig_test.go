package tui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/Insights/insightscli/internal/task"
)

const theRun = task.ID("3f9a1c2b-0000-4000-8000-000000000001")

// rig is the model with somebody before it, without a terminal and without a clock: what it
// wants done is done at once.
type rig struct {
	t    *testing.T
	m    *model
	quit bool
	late []func() tea.Msg // what it wants done later
	out  bytes.Buffer     // what goes to the terminal beside the frames
	*world
}

// world is a Source and Actions that remember.
type world struct {
	mu    sync.Mutex
	runs  []Run
	log   func() (Log, error)
	sent  []task.Input
	did   []string
	patch string
	fails error
}

func (w *world) note(s string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did = append(w.did, s)
	return w.fails
}

func (w *world) Runs(context.Context) ([]Run, error) { return w.runs, w.fails }

func (w *world) Run(_ context.Context, name string) (Run, error) {
	for _, r := range w.runs {
		if strings.HasPrefix(string(r.ID), name) || name == "latest" {
			return r, nil
		}
	}
	return Run{}, errors.New("there is no run " + name)
}

func (w *world) Open(context.Context, task.ID) (Log, error) {
	if w.log == nil {
		return nil, fs.ErrNotExist
	}
	return w.log()
}

func (w *world) Send(_ context.Context, _ task.ID, in task.Input) error {
	w.mu.Lock()
	w.sent = append(w.sent, in)
	w.mu.Unlock()
	return w.fails
}

func (w *world) Cancel(_ context.Context, run task.ID) error { return w.note("cancel " + run.Short()) }

func (w *world) Prune(_ context.Context, dry bool) ([]string, error) {
	if dry {
		return []string{"directory a", "sandbox b"}, w.fails
	}
	return []string{"directory a"}, w.note("prune")
}

func (w *world) Start(_ context.Context, n NewRun) (task.ID, error) {
	return theRun, w.note("start " + n.Agent + ": " + n.Prompt + " in " + n.Repo)
}

func (w *world) Diff(context.Context, task.ID) ([]byte, error) { return []byte(w.patch), w.fails }

// memory is a log in memory.
type memory struct{ *bytes.Reader }

func (m memory) Size() (int64, error) { return m.Reader.Size(), nil }
func (m memory) Close() error         { return nil }

func inMemory(b []byte) func() (Log, error) {
	return func() (Log, error) { return memory{bytes.NewReader(b)}, nil }
}

// aFile is a log on the disk.
type aFile struct{ *os.File }

func (f aFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func onDisk(path string) func() (Log, error) {
	return func() (Log, error) {
		f, err := os.Open(path)
		return aFile{f}, err
	}
}

func noon() time.Time { return time.Date(2026, 11, 29, 12, 5, 0, 0, time.UTC) }

func aRun() Run {
	return Run{
		ID: theRun, State: task.StateFailed, Title: "mend the parser", Agent: "claude", Repos: []string{"org/repo"}, Provider: "local",
		Created: noon().Add(-5 * time.Minute), Started: noon().Add(-5 * time.Minute), Finished: noon().Add(-4 * time.Minute), Talks: true,
	}
}

func story(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "story.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newRig shows a world on a screen; run is what is shown at once.
func newRig(t *testing.T, w *world, o Options, width, height int) *rig {
	r := &rig{t: t, world: w}
	o.Source, o.Actions, o.Now, o.out = w, w, noon, &r.out
	o.after = func(_ time.Duration, f func() tea.Msg) tea.Cmd {
		r.late = append(r.late, f)
		return nil
	}
	r.m = newModel(t.Context(), o)
	r.send(tea.WindowSizeMsg{Width: width, Height: height})
	r.do(r.m.Init())
	return r
}

func (r *rig) send(msg tea.Msg) {
	_, cmd := r.m.Update(msg)
	r.do(cmd)
}

func (r *rig) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			r.do(c)
		}
	case tea.QuitMsg:
		r.quit = true
	default:
		r.send(msg)
	}
}

// wait does what was wanted later.
func (r *rig) wait() {
	late := r.late
	r.late = nil
	for _, f := range late {
		if msg := f(); msg != nil {
			r.send(msg)
		}
	}
}

// press presses keys, by their names.
func (r *rig) press(keys ...string) {
	for _, k := range keys {
		r.send(keyOf(k))
	}
}

// types types a text.
func (r *rig) types(s string) {
	for _, c := range s {
		r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{c}})
	}
}

func keyOf(name string) tea.KeyMsg {
	for t, s := range map[tea.KeyType]string{
		tea.KeyEnter: "enter", tea.KeyEsc: "esc", tea.KeyTab: "tab", tea.KeyShiftTab: "shift+tab", tea.KeyUp: "up", tea.KeyDown: "down",
		tea.KeyPgUp: "pgup", tea.KeyPgDown: "pgdown", tea.KeyHome: "home", tea.KeyEnd: "end", tea.KeyCtrlC: "ctrl+c", tea.KeyLeft: "left",
		tea.KeyRight: "right", tea.KeyBackspace: "backspace", tea.KeyCtrlS: "ctrl+s", tea.KeyCtrlU: "ctrl+u", tea.KeyCtrlD: "ctrl+d",
		tea.KeyDelete: "delete", tea.KeyCtrlW: "ctrl+w",
	} {
		if s == name {
			return tea.KeyMsg{Type: t}
		}
	}
	if name == "space" {
		return tea.KeyMsg{Type: tea.KeySpace, Runes: []rune{' '}}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}
}

// screen is what is shown, without its faces.
func (r *rig) screen() string { return plainText(r.m.View()) }

func plainText(s string) string {
	var b strings.Builder
	for s != "" {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		s = s[i+strings.IndexByte(s[i:], 'm')+1:]
	}
	return b.String()
}

func (r *rig) has(words ...string) {
	r.t.Helper()
	for _, w := range words {
		if !strings.Contains(r.screen(), w) {
			r.t.Errorf("there is no %q on the screen:\n%s", w, r.screen())
		}
	}
}

func (r *rig) hasNot(words ...string) {
	r.t.Helper()
	for _, w := range words {
		if strings.Contains(r.screen(), w) {
			r.t.Errorf("there is %q on the screen:\n%s", w, r.screen())
		}
	}
}

var _ io.ReaderAt = memory{}
