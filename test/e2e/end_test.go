//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// end ends what the test left at work, and looks for what must not be there.
func (w *world) end() {
	if w.t.Failed() {
		w.try("ps") // has somebody take care of a run whose process was killed
		defer w.try("prune", "--yes")
	}
	w.try("stop", "--cancel") // there was nothing to stop in most
	left, err := os.ReadDir(filepath.Join(w.state, "run"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(left) > 0 {
		w.t.Errorf("run directories left: %v (%v)", left, err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), w.state) {
		w.t.Errorf("mounts left (%v)", err)
	}
	for _, p := range processesNaming(w.state) {
		w.t.Errorf("process left: %s", p)
	}
	if w.provider == "docker" {
		w.noContainers()
	}
	w.noKeys()
}

// runs lists all runs of this world.
func (w *world) runs() []string {
	var list []struct{ Run string }
	if err := json.Unmarshal([]byte(w.must("ps", "-a", "--json")), &list); err != nil {
		w.t.Error(err)
	}
	var ids []string
	for _, r := range list {
		ids = append(ids, r.Run)
	}
	return ids
}

// noContainers looks for containers of this world's runs.
func (w *world) noContainers() {
	for _, id := range w.runs() {
		out, err := exec.Command("docker", "ps", "-aq", "--filter", "label=insightscli.run="+id).Output()
		if err != nil || len(bytes.TrimSpace(out)) > 0 {
			w.t.Errorf("containers left: %s (%v)", out, err)
		}
	}
}

// noKeys reads every file of the state directory for the real keys.
func (w *world) noKeys() {
	err := filepath.WalkDir(w.state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, key := range []string{anthropicKey, openAIKey} {
			if bytes.Contains(b, []byte(key)) {
				w.t.Errorf("%s holds a real key", path)
			}
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Error(err)
	}
}

// processesNaming lists the processes whose command line holds word.
func processesNaming(word string) []string {
	var found []string
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	for _, p := range paths {
		if b, err := os.ReadFile(p); err == nil && bytes.Contains(b, []byte(word)) {
			found = append(found, fmt.Sprintf("%s %q", p, b))
		}
	}
	return found
}
