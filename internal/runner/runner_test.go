package runner_test

import (
	"testing"

	"github.com/Insights/insightscli/internal/task"
)

func TestRunOfOneCommand(t *testing.T) {
	r := newRig(t)
	rec := &recorder{}
	res, err := r.runner.Run(t.Context(), r.spec("sh", "-c", "echo hello; exit 3"), nil, nil, rec)
	for _, ev := range rec.events {
		t.Logf("%s", ev.AppendLine(nil))
	}
	if err != nil {
		t.Fatal(err)
	}
	if res.State != task.StateFailed || res.Code != 7 || res.ExitCode == nil || *res.ExitCode != 3 {
		t.Fatalf("got %+v", res)
	}
}
