package agentserver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/Insights/insightscli/internal/link/wire"
)

// maxThreads bounds the list.
const maxThreads = 20_000

// threads lists every thread of every process that this one sees, which for PID 1 is the
// whole sandbox. One that has ended meanwhile is left out.
func threads(proc string) ([]wire.Thread, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	var all []wire.Thread
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join(proc, e.Name(), "task")
		tasks, _ := os.ReadDir(dir) // none of a process that is gone
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil {
				continue
			}
			status, err := os.ReadFile(filepath.Join(dir, task.Name(), "status"))
			if err != nil {
				continue
			}
			if len(all) == maxThreads {
				return nil, fmt.Errorf("more than %d threads", maxThreads)
			}
			all = append(all, readThread(pid, tid, status))
		}
	}
	return all, nil
}

// readThread reads /proc/PID/task/TID/status. What is missing there, on an older kernel,
// looks like a thread that is wrong.
func readThread(pid, tid int, status []byte) wire.Thread {
	t := wire.Thread{PID: pid, TID: tid, Parent: 1, Bounding: 1}
	for line := range bytes.Lines(status) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
		value = strings.TrimSpace(value)
		set, _ := strconv.ParseUint(value, 16, 64)
		switch name {
		case "Name":
			t.Name = value
		case "Uid": // real, effective, saved, of files
			if ids := strings.Fields(value); len(ids) > 1 {
				t.UID, _ = strconv.Atoi(ids[1])
			}
		case "PPid":
			if parent, err := strconv.Atoi(value); err == nil {
				t.Parent = parent
			}
		case "CapInh":
			t.Inheritable = set
		case "CapPrm":
			t.Permitted = set
		case "CapEff":
			t.Effective = set
		case "CapBnd":
			t.Bounding = set
		case "CapAmb":
			t.Ambient = set
		case "NoNewPrivs":
			t.NoNewPrivs = value == "1"
		case "Seccomp":
			t.Seccomp, _ = strconv.Atoi(value)
		}
	}
	return t
}
