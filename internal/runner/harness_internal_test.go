package runner

import (
	"testing"

	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// quietFollower returns a follower that writes to a log of its own, which nobody
// watches.
func quietFollower(t *testing.T, l *limits) *follower {
	t.Helper()
	run := task.NewID()
	store := journal.New(nil, t.TempDir())
	log, err := store.OpenLog(t.Context(), journal.Record{Spec: task.Spec{Run: run, Task: task.NewID(), Team: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	x := &execution{limits: l, story: newStory(run, log, task.SinkFunc(func(task.Event) {}), secret.NewMasker())}
	x.turns = newTurns(x)
	f := x.newFollower()
	f.streams = map[wire.FrameType]*secret.Stream{
		wire.FrameStdout: x.story.mask().Stream(), wire.FrameStderr: x.story.mask().Stream(),
	}
	return f
}
