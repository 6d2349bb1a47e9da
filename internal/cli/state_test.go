package cli

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/term"
)

// A background runner that does not come up, on a full disk say, keeps nobody from
// looking at what there is.
func TestViewsNeedNoRunner(t *testing.T) {
	streams, _, _, stderr := term.Test()
	dir := t.TempDir()
	a := newApp(Process{Streams: streams, Dir: dir, Environ: []string{"INSIGHTSCLI_STATE_DIR=" + dir}})
	c, err := a.config(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.openState(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.close() }() // the directory goes with the test
	s.background.Start = func(context.Context) error { return errors.New("the disk is full") }
	spec := task.Spec{V: task.SpecVersion, Task: task.NewID(), Run: task.NewID(), Team: seedTeam, User: seedUser, Detached: true}
	if err := s.store.Create(t.Context(), spec, nil); err != nil {
		t.Fatal(err)
	}
	again, err := a.openStateAndAdopt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if recs, err := again.store.Runs(t.Context(), journal.Filter{}); err != nil || len(recs) != 1 {
		t.Errorf("%d runs, %v", len(recs), err)
	}
	if got := stderr.String(); !strings.HasPrefix(got, "note: nobody goes on ") || !strings.Contains(got, "the disk is full") {
		t.Errorf("stderr %q", got)
	}
}
