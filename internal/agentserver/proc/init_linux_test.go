package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// The Reaper of PID 1 takes every child of its process, so it is tested in a process
// of its own, which makes itself the reaper of its orphans as PID 1 is.
const asInit = "PROC_TEST_INIT"

func TestMain(m *testing.M) {
	if os.Getenv(asInit) != "" {
		os.Exit(initProcess())
	}
	os.Exit(m.Run())
}

func initProcess() int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Println(err)
		return 1
	}
	r := NewInit()
	p := &Plain{Reaper: r}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			// The background sleep becomes an orphan when its parent has ended.
			script := fmt.Sprintf("sleep 0.01 & exit %d", i%100)
			c, err := p.Start(context.Background(), Spec{Argv: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}})
			if err != nil || c.Exit().Code != i%100 {
				fmt.Println("wrong", i, err)
			}
			if _, err := p.Start(context.Background(), Spec{Argv: []string{"/no/such"}}); err == nil {
				fmt.Println("started nothing")
			}
		})
	}
	wg.Wait()
	r.Close() // returns when every orphan has been reaped
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		fmt.Println("left", pid, err)
	}
	fmt.Println("done")
	return 0
}

func TestInitReapsChildrenAndOrphans(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), asInit+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "done" {
		t.Errorf("%v\n%s", err, out)
	}
}
