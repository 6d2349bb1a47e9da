package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/sandbox"
)

// record is what Destroy needs to know, written before anything is made.
type record struct {
	V       int               `json:"v"`
	Labels  map[string]string `json:"labels"`
	Created time.Time         `json:"created"`

	// PID 1, as the host sees it. PID is 0 until it exists. A number names a process
	// only together with its start time and the boot it belongs to.
	BootID string `json:"boot_id"`
	PID    int    `json:"pid,omitempty"`
	Start  uint64 `json:"start,omitempty"` // clock ticks after boot

	Cgroups []string `json:"cgroups,omitempty"` // directories that are ours
	Work    []string `json:"work,omitempty"`    // work directories of overlays

	Unheld []sandbox.Limit `json:"unheld,omitempty"` // limits of the Spec that nothing enforces
}

const recordVersion = 1

// maxRecord bounds what is read: the directory is the user's, and a sandbox has no
// way to it, but a file is a file.
const maxRecord = 1 << 20

func (r *record) write(dir string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, recordName+".new")
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(dir, recordName))
}

// readRecord returns the record of a directory; the error wraps sandbox.ErrNotFound
// when there is none.
func readRecord(dir string) (record, error) {
	var r record
	path := filepath.Join(dir, recordName)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%w: %s", sandbox.ErrNotFound, filepath.Base(dir))
	}
	if err != nil {
		return r, err
	}
	if info.Size() > maxRecord {
		return r, fmt.Errorf("%s is too large", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	if r.V > recordVersion {
		return r, fmt.Errorf("%s is of a newer version (%d)", path, r.V)
	}
	return r, nil
}

// has reports whether the record carries all the labels.
func (r *record) has(labels map[string]string) bool {
	for k, v := range labels {
		if r.Labels[k] != v {
			return false
		}
	}
	return r.Labels[sandbox.LabelRun] != ""
}

// id names the sandbox of a directory: by the directory's name where it lies in
// Root, else by its path.
func (p *Provider) id(dir string) sandbox.ID {
	if p.root != "" && filepath.Dir(dir) == p.root {
		return sandbox.ID(filepath.Base(dir))
	}
	return sandbox.ID(dir)
}

// dir is the reverse of id.
func (p *Provider) dir(id sandbox.ID) (string, error) {
	name := string(id)
	switch {
	case filepath.IsAbs(name):
		return filepath.Clean(name), nil
	case p.root == "", name == "", name == ".", name == "..", strings.ContainsAny(name, `/\`):
		return "", fmt.Errorf("%w: %q", sandbox.ErrNotFound, name)
	}
	return filepath.Join(p.root, name), nil
}

// tail returns the last of PID 1's output, at most 4 KiB.
func tail(dir string) string {
	const limit = 4 << 10
	f, err := os.Open(filepath.Join(dir, logName))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	data := make([]byte, min(info.Size(), limit))
	n, _ := f.ReadAt(data, info.Size()-int64(len(data)))
	return strings.TrimSpace(string(data[:n]))
}
