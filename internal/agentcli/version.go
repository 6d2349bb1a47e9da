package agentcli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// CheckVersion tells whether version of the agent name is one that can be driven. A
// version that is unknown, or is not made of numbers, is not refused.
func CheckVersion(name, version string) error {
	a, ok := agents(name)
	have, okHave := parse(version)
	floor, okFloor := parse(a.floor)
	if !ok || !okHave || !okFloor || !less(have, floor) {
		return nil
	}
	return errs.New("agentcli.CheckVersion", errs.Config, fmt.Sprintf("npm install -g %s@latest", a.npm),
		"agent %s has version %s, and %s is the oldest that works", name, version, a.floor)
}

// parse reads the three numbers at the beginning of a version.
func parse(version string) (numbers [3]int, ok bool) {
	core, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	core, _, _ = strings.Cut(core, "+")
	parts := strings.Split(core, ".")
	if len(parts) != len(numbers) {
		return numbers, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return numbers, false
		}
		numbers[i] = n
	}
	return numbers, true
}

func less(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// version is that of the program at path: from the manifest of its package, or the name
// of the file, which is the version where the vendor's own installer put it.
func (s *search) version(path string) string {
	if m, ok := manifestOf(path); ok && (m.Name == s.npm || strings.HasPrefix(m.Name, s.npm+"-")) {
		version, _, _ := strings.Cut(m.Version, "-linux-") // codex has the platform in it
		return version
	}
	if name := filepath.Base(path); name != s.name {
		if _, ok := parse(name); ok {
			return name
		}
	}
	return ""
}

// manifest is what is read of a package.json.
type manifest struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

const (
	maxManifest = 1 << 20
	maxAbove    = 5 // directories from a program up to its package.json
)

// manifestOf reads the package.json of the package in which path lies.
func manifestOf(path string) (m manifest, ok bool) {
	dir := filepath.Dir(path)
	for range maxAbove {
		f, err := os.Open(filepath.Join(dir, "package.json"))
		if err == nil {
			b, err := io.ReadAll(io.LimitReader(f, maxManifest))
			_ = f.Close()
			return m, err == nil && json.Unmarshal(b, &m) == nil && m.Name != ""
		}
		if filepath.Base(dir) == "node_modules" || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return m, false
}
