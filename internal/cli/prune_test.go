package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/owner"
	"github.com/Insights/insightscli/internal/platform"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
)

// shelf is a provider that holds the sandboxes it is given.
type shelf struct {
	boxes  map[sandbox.ID]sandbox.Info
	broken map[sandbox.ID]bool // cannot be removed
}

var _ sandbox.Provider = (*shelf)(nil)

func (s *shelf) Create(context.Context, sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, errors.New("a shelf makes nothing")
}

func (s *shelf) Open(_ context.Context, id sandbox.ID) (sandbox.Sandbox, error) {
	if _, ok := s.boxes[id]; !ok {
		return nil, fmt.Errorf("open: %w", sandbox.ErrNotFound)
	}
	return shelved{s, id}, nil
}

func (s *shelf) List(_ context.Context, labels map[string]string) ([]sandbox.Info, error) {
	var found []sandbox.Info
	for _, b := range s.boxes {
		if b.Labels[sandbox.LabelState] == labels[sandbox.LabelState] {
			found = append(found, b)
		}
	}
	slices.SortFunc(found, func(a, b sandbox.Info) int { return a.Created.Compare(b.Created) })
	return found, nil
}

type shelved struct {
	*shelf
	id sandbox.ID
}

func (b shelved) ID() sandbox.ID                             { return b.id }
func (b shelved) Link(context.Context) (net.Conn, error)     { return nil, errors.New("no link") }
func (b shelved) Wait(context.Context) (sandbox.Exit, error) { return sandbox.Exit{}, nil }
func (b shelved) Destroy(context.Context) error {
	if b.broken[b.id] {
		return errors.New("it does not die")
	}
	delete(b.boxes, b.id)
	return nil
}

// attic is a state directory with a provider, before it is pruned.
type attic struct {
	t  *testing.T
	s  *state
	me *owner.Owner
	*shelf
}

func newAttic(t *testing.T) *attic {
	_, s, _, _ := recorded(t)
	s.tokens, s.repos = platform.NewTokens(s.db.DB), repo.New(repo.Options{Dir: s.dir})
	me, err := owner.Acquire(t.Context(), s.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = me.Release() })
	return &attic{t, s, me, &shelf{boxes: map[sandbox.ID]sandbox.Info{}, broken: map[sandbox.ID]bool{}}}
}

// run records a run in a state, of an owner.
func (a *attic) run(st task.State, ownedBy string, keep bool) task.ID {
	a.t.Helper()
	spec := task.Spec{V: 1, Task: task.NewID(), Run: task.NewID(), Team: 1, Provider: "shelf", Keep: keep}
	must := func(err error) {
		a.t.Helper()
		if err != nil {
			a.t.Fatal(err)
		}
	}
	ctx := a.t.Context()
	must(a.s.store.Create(ctx, spec, nil))
	if ownedBy != "" {
		_, err := a.s.store.Claim(ctx, spec.Run, "", ownedBy)
		must(err)
	}
	if st != task.StateQueued {
		must(a.s.store.Begin(ctx, spec.Run))
	}
	if st.Terminal() {
		res := task.Result{Run: spec.Run, State: st}
		if keep {
			res.Sandbox = "box-" + spec.Run.Short()
		}
		must(a.s.store.Finish(ctx, spec.Run, res))
	}
	return spec.Run
}

// box puts a sandbox of a run on the shelf, and makes the run's directory.
func (a *attic) box(run task.ID, label, domainOf string) sandbox.ID {
	a.t.Helper()
	id := sandbox.ID("box-" + run.Short())
	a.boxes[id] = sandbox.Info{ID: id, Created: time.Unix(int64(len(a.boxes)), 0), Labels: map[string]string{
		sandbox.LabelRun: string(run), sandbox.LabelOwner: label, sandbox.LabelState: domainOf,
	}}
	if err := os.MkdirAll(filepath.Join(a.s.dir, "run", string(run)), 0o700); err != nil {
		a.t.Fatal(err)
	}
	return id
}

func (a *attic) prune(withKept bool) []*leftover {
	a.t.Helper()
	p := &pruning{state: a.s, me: a.me.Info, domain: "here", providers: map[place]sandbox.Provider{{provider: "shelf"}: a.shelf}}
	if err := p.find(a.t.Context(), false); err != nil {
		a.t.Fatal(err)
	}
	if err := p.remove(a.t.Context(), withKept); err != nil {
		a.t.Fatal(err)
	}
	return p.items
}

func (a *attic) has(id sandbox.ID, run task.ID) (box, dir bool) {
	_, box = a.boxes[id]
	_, err := os.Stat(filepath.Join(a.s.dir, "run", string(run)))
	return box, err == nil
}

func TestPruneRemovesOnlyWhatNobodyOwns(t *testing.T) {
	a := newAttic(t)
	mine := a.me.Label()
	deadPID := fmt.Sprintf("%s/%s/%d/1", a.me.Host, a.me.Boot, 1<<22+1)
	for _, tt := range []struct {
		name   string
		run    task.ID
		label  string
		domain string
		goes   bool
	}{
		{"live", a.run(task.StateInProgress, a.me.ID, false), mine, "here", false},
		{"live, of nobody", a.run(task.StateInProgress, "", false), mine, "here", false},
		{"queued", a.run(task.StateQueued, "", false), mine, "here", false},
		{"over", a.run(task.StateFailed, a.me.ID, false), mine, "here", true},
		{"over, owner gone", a.run(task.StateCompleted, string(task.NewID()), false), "x/y/1/1", "here", true},
		{"kept", a.run(task.StateCompleted, a.me.ID, true), mine, "here", false},
		{"not recorded, owner dead", task.NewID(), deadPID, "here", true},
		{"not recorded, before the last boot", task.NewID(), a.me.Host + "/another-boot/1/1", "here", true},
		{"not recorded, owner alive", task.NewID(), mine, "here", false},
		{"not recorded, another machine", task.NewID(), "elsewhere/boot/1/1", "here", false},
		{"not recorded, unreadable owner", task.NewID(), "what", "here", false},
		{"another state directory", a.run(task.StateFailed, "", false), mine, "there", false},
	} {
		id := a.box(tt.run, tt.label, tt.domain)
		a.prune(false)
		box, dir := a.has(id, tt.run)
		if box == tt.goes {
			t.Errorf("%s: the sandbox is there: %v, want %v", tt.name, box, !tt.goes)
		}
		if dir && tt.goes {
			t.Errorf("%s: the directory is still there", tt.name)
		}
	}
	if items := a.prune(false); slices.ContainsFunc(items, func(l *leftover) bool { return l.Removed }) {
		t.Errorf("a second time: %v", items)
	}
}

func TestPruneTakesKeptSandboxesWhenAsked(t *testing.T) {
	a := newAttic(t)
	run := a.run(task.StateCompleted, a.me.ID, true)
	id := a.box(run, a.me.Label(), "here")
	a.prune(false)
	if box, dir := a.has(id, run); !box || !dir {
		t.Fatalf("it was not asked for: sandbox %v, directory %v", box, dir)
	}
	a.prune(true)
	if box, dir := a.has(id, run); box || dir {
		t.Errorf("still there: sandbox %v, directory %v", box, dir)
	}
}

func TestPruneKeepsTheDirectoryOfASandboxThatStays(t *testing.T) {
	a := newAttic(t)
	run, other := a.run(task.StateFailed, "", false), a.run(task.StateFailed, "", false)
	id := a.box(run, a.me.Label(), "here")
	otherID := a.box(other, a.me.Label(), "here")
	a.broken[id] = true
	items := a.prune(false)
	if box, dir := a.has(id, run); !box || !dir {
		t.Errorf("sandbox %v, directory %v", box, dir)
	}
	if box, dir := a.has(otherID, other); box || dir {
		t.Errorf("one that fails keeps the rest: sandbox %v, directory %v", box, dir)
	}
	if n := len(slices.DeleteFunc(items, func(l *leftover) bool { return l.Error == "" })); n != 2 {
		t.Errorf("%d errors, want 2", n)
	}
}

func TestPruneRemovesOldChangesAndDeadOwners(t *testing.T) {
	a := newAttic(t)
	fresh := a.run(task.StateCompleted, a.me.ID, false)
	old, lost := task.NewID(), task.NewID()
	for _, run := range []task.ID{fresh, old, lost} {
		if err := os.MkdirAll(filepath.Join(a.s.dir, "repos", string(run), "0.git"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	then := time.Now().Add(-keepChanges - time.Hour)
	if err := os.Chtimes(filepath.Join(a.s.dir, "repos", string(old)), then, then); err != nil {
		t.Fatal(err)
	}
	dead := string(task.NewID())
	body := fmt.Sprintf(`{"id":%q,"host":%q,"boot_id":%q,"pid":1}`, dead, a.me.Host, a.me.Boot)
	lock := filepath.Join(a.s.dir, "owners", dead+".lock")
	if err := os.WriteFile(lock, []byte(body+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.prune(false)
	for run, stays := range map[task.ID]bool{fresh: true, old: false, lost: true} {
		if _, err := os.Stat(filepath.Join(a.s.dir, "repos", string(run))); (err == nil) != stays {
			t.Errorf("changes of %s: %v, want them to stay: %v", run.Short(), err, stays)
		}
	}
	if _, err := os.Stat(lock); err == nil {
		t.Error("the dead owner's file is still there")
	}
	if alive, err := owner.Alive(a.s.dir, a.me.ID); !alive || err != nil {
		t.Errorf("the living owner: %v, %v", alive, err)
	}
}

func TestConfirmTakesOnlyYes(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "n\n": false, "\n": false, "": false, "yep\n": false} {
		a, _, _, _ := recorded(t)
		in := a.streams.In.(interface{ Write([]byte) (int, error) })
		if _, err := in.Write([]byte(answer)); err != nil {
			t.Fatal(err)
		}
		if got, err := a.confirm("sure?"); got != want || err != nil {
			t.Errorf("%q: %v, %v", answer, got, err)
		}
	}
}

// What agents have left goes with the changes of their runs, a month after the end.
func TestPruneTakesOldArtifacts(t *testing.T) {
	a := newAttic(t)
	live, gone := a.run(task.StateInProgress, a.me.ID, false), task.NewID()
	for _, run := range []task.ID{live, gone, a.run(task.StateCompleted, a.me.ID, false)} {
		dir := artifactsDir(a.s.dir, run)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-keepChanges - time.Hour)
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	var removed []task.ID
	for _, l := range a.prune(false) {
		if l.Kind == kindArtifacts && l.Removed {
			removed = append(removed, l.Run)
		}
	}
	if !slices.Equal(removed, []task.ID{gone}) {
		t.Errorf("removed %v, want %v", removed, gone)
	}
}
