package egress

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/task"
)

// Record is one decision, as a line of the audit file has it.
type Record struct {
	Time    time.Time `json:"time"` // of the decision, or of a connection's end
	Run     task.ID   `json:"run"`
	Name    string    `json:"name,omitempty"` // that was asked for
	Addr    string    `json:"addr,omitempty"` // that was dialled inside
	Port    uint16    `json:"port,omitempty"`
	Verdict string    `json:"verdict"` // allow; deny; error: allowed, but not to be had
	// Rule is the rule that allowed it or, of a denial, that would.
	Rule     string `json:"rule,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Request  string `json:"request,omitempty"` // of a request to the proxy: its method
	Sent     int64  `json:"sent"`              // bytes from the sandbox
	Received int64  `json:"received"`          // bytes to it
}

// AuditLimit is how large an audit file gets.
const AuditLimit = 64 << 20

// AuditFile is a file of records, one a line. Its methods may be called at the same time.
type AuditFile struct {
	mu    sync.Mutex // guards what follows
	file  *os.File
	size  int64
	limit int64
	err   error
}

// OpenAudit opens or makes a file, which goes on where it ended: a line that was cut off
// there, by the end of a process or a full disk, is ended first. limit is its size at most;
// 0 is AuditLimit.
func OpenAudit(path string, limit int64) (*AuditFile, error) {
	if limit <= 0 {
		limit = AuditLimit
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the audit file: %w", err)
	}
	size, err := endLine(f)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open the audit file: %w", err)
	}
	return &AuditFile{file: f, size: size, limit: limit}, nil
}

// endLine ends the last line of a file, if it is not, and returns the size.
func endLine(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil || last[0] == '\n' {
		return info.Size(), err
	}
	n, err := f.WriteString("\n")
	return info.Size() + int64(n), err
}

// Add writes one record. The one that would be too much is replaced by the last line, which
// says so; those behind it are dropped.
func (a *AuditFile) Add(r Record) {
	line, err := json.Marshal(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil || a.err != nil || a.size >= a.limit {
		return
	}
	if a.size+int64(len(line))+1 > a.limit {
		line, _ = json.Marshal(Record{Time: r.Time, Run: r.Run, Verdict: "full", Reason: "the file has reached its limit; what follows is not recorded"})
		a.size = a.limit
	}
	n, err := a.file.Write(append(line, '\n'))
	a.size += int64(n)
	a.err = err
}

// Close closes the file. It returns the error that has ended the recording before, if one
// has.
func (a *AuditFile) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.file.Close()
	if a.err != nil {
		err = a.err
	}
	if err != nil {
		return fmt.Errorf("write the audit file: %w", err)
	}
	return nil
}
