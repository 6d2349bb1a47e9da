package agentserver

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
)

func TestThreads(t *testing.T) {
	proc := t.TempDir()
	status := "Name:\tnode\nPPid:\t3\nUid:\t1000\t1001\t1002\t1003\nCapInh:\t0000000000000001\nCapPrm:\t0000000000000002\n" +
		"CapEff:\t0000000000000004\nCapBnd:\t0000000000000008\nCapAmb:\t0000000000000010\nNoNewPrivs:\t1\nSeccomp:\t2\n"
	for path, text := range map[string]string{"7/task/7/status": status, "7/task/9/status": "", "8/task/x/status": status, "self/task/7/status": status} {
		path = filepath.Join(proc, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(proc, "10", "task", "10"), 0o755); err != nil { // one that is gone
		t.Fatal(err)
	}
	got, err := threads(proc)
	want := []wire.Thread{
		{PID: 7, TID: 7, Name: "node", UID: 1001, Parent: 3, Inheritable: 1, Permitted: 2, Effective: 4, Bounding: 8, Ambient: 16, NoNewPrivs: true, Seccomp: 2},
		{PID: 7, TID: 9, Parent: 1, Bounding: 1},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := threads(filepath.Join(proc, "none")); err == nil {
		t.Error("no list is no error")
	}
}
