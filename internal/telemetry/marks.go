package telemetry

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/Insights/insightscli/internal/filelock"
	"github.com/Insights/insightscli/internal/task"
)

// The places in the file of marks.
const (
	markLogs = iota
	markTraces
	markMirror
	markOwn
	markCount
)

// markWidth is the width of one number with the end of its line.
const markWidth = 21

// marks is a small file that says, for each receiver of a run, up to which event everything
// is delivered. It is written without a sync: it has to outlive the process, not the
// machine. Who has it open holds its lock.
type marks struct {
	path string

	mu   sync.Mutex // guards the rest
	file *os.File   // nil once it is closed
	at   [markCount]uint64
}

// openMarks opens the marks of a run in dir, or makes them. It returns nil if another
// process has them.
func openMarks(dir string, run task.ID) (*marks, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("keep account of telemetry: %w", err)
	}
	path := filepath.Join(dir, string(run))
	f, err := filelock.TryPath(path, filelock.Exclusive)
	if f == nil || err != nil {
		return nil, err
	}
	m := &marks{path: path, file: f}
	b := make([]byte, markCount*markWidth)
	n, _ := f.ReadAt(b, 0) // what is not there counts as nothing delivered
	for i, line := range bytes.Split(b[:n], []byte("\n")) {
		if i < markCount {
			m.at[i], _ = strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 64)
		}
	}
	return m, nil
}

func (m *marks) get(i int) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at[i]
}

// set moves a mark forward.
func (m *marks) set(i int, seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if seq <= m.at[i] || m.file == nil {
		return
	}
	m.at[i] = seq
	var b []byte
	for _, at := range m.at {
		b = fmt.Appendf(b, "%*d\n", markWidth-1, at)
	}
	_, _ = m.file.WriteAt(b, 0) // without it something is sent twice after a crash
}

// close lets go of the file, and removes it if nothing is left to deliver.
func (m *marks) close(done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		return
	}
	if done {
		_ = os.Remove(m.path) // on systems that cannot, the next process does
	}
	_ = m.file.Close() // nothing in it is buffered
	m.file = nil
}
