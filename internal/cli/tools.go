package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of the search for tools: a home with more is cut off, not waited for.
const (
	maxToolDirs  = 64
	maxToolLinks = 4096
)

// tools finds the directories that a local sandbox gets so that programs of the
// caller's PATH work there too. Such a sandbox sees /usr and /opt, but no home; what
// nvm, pyenv, cargo, go or Linuxbrew put into one is chosen here, directory by
// directory, and bound read-only. Nothing is chosen by what is inside a home alone:
// only what PATH names, and what the links there lead to.
type tools struct {
	homes  []string // where hidden directories lie
	denied []string // our own state, never shown
	dirs   []string // chosen
}

// findTools returns the directories to bind and the PATH to search in the sandbox.
func findTools(path, home, stateDir string) (dirs []string, searched string) {
	t := &tools{homes: []string{"/root", "/home"}, denied: []string{stateDir}}
	if home != "" {
		t.homes = append(t.homes, home)
	}
	var search []string
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || slices.Contains(search, filepath.Clean(dir)) {
			continue
		}
		dir = filepath.Clean(dir)
		if t.hidden(dir) && !t.take(dir) {
			continue
		}
		search = append(search, dir)
	}
	return t.chosen(), strings.Join(search, string(filepath.ListSeparator))
}

// take chooses a directory of PATH and what its links lead to, and reports whether
// the sandbox will see it.
func (t *tools) take(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || !t.choose(dir) {
		return false
	}
	real, err := filepath.EvalSymlinks(dir)
	if err == nil && real != dir {
		t.choose(real)
	}
	for _, e := range entries[:min(len(entries), maxToolLinks)] {
		if e.Type()&os.ModeSymlink == 0 {
			continue
		}
		target, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name()))
		if err == nil && t.hidden(target) {
			t.choose(filepath.Dir(target))
		}
	}
	return true
}

// choose takes dir, or the installation that it is the bin directory of, unless a
// credential may lie there. It reports whether dir is chosen.
func (t *tools) choose(dir string) bool {
	switch {
	case t.covered(dir):
		return true
	case len(t.dirs) >= maxToolDirs || !t.harmless(dir):
		return false
	}
	base := filepath.Base(dir)
	if parent := filepath.Dir(dir); (base == "bin" || base == "sbin" || base == "shims") && t.installation(parent) {
		dir = parent
	}
	t.dirs = append(t.dirs, dir)
	return true
}

// installation reports whether a directory holds one tool and nothing of the user's:
// not a home, nor a place where many programs keep their data.
func (t *tools) installation(dir string) bool {
	base := filepath.Base(dir)
	if !t.hidden(dir) || t.holdsHome(dir) || base == ".local" || base == "share" || base == ".cache" || !t.harmless(dir) {
		return false
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return private(e.Name()) })
}

// harmless reports whether no part of the path is one where credentials lie, and
// neither our state nor a home lies below it.
func (t *tools) harmless(dir string) bool {
	if slices.ContainsFunc(strings.Split(dir, string(filepath.Separator)), private) || t.holdsHome(dir) {
		return false
	}
	return !slices.ContainsFunc(t.denied, func(d string) bool { return d != "" && (below(d, dir) || below(dir, d)) })
}

// private reports whether a name is one under which programs keep credentials.
func private(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case ".ssh", ".gnupg", ".aws", ".azure", ".config", ".docker", ".kube", ".netrc", ".pgpass", ".npmrc", ".pypirc",
		".git-credentials", ".gitconfig", ".env", ".password-store", ".mozilla", "keyrings", "auth.json", ".terraform.d":
		return true
	}
	return strings.HasPrefix(name, "credentials") || strings.HasPrefix(name, ".credentials") ||
		strings.HasPrefix(name, "id_rsa") || strings.HasPrefix(name, "id_ed25519") || strings.HasSuffix(name, ".pem")
}

// hidden reports whether the sandbox does not see the path by itself.
func (t *tools) hidden(path string) bool {
	return slices.ContainsFunc(t.homes, func(home string) bool { return below(path, home) })
}

// holdsHome reports whether dir is a home or holds one. What lies in /home beside
// the homes of people, as Linuxbrew does, is not one.
func (t *tools) holdsHome(dir string) bool {
	return dir == "/" || slices.ContainsFunc(t.homes, func(home string) bool { return below(home, dir) }) || filepath.Dir(dir) == "/home"
}

func (t *tools) covered(dir string) bool {
	return slices.ContainsFunc(t.dirs, func(d string) bool { return below(dir, d) })
}

// chosen returns the directories, sorted, without those that lie in another.
func (t *tools) chosen() []string {
	slices.Sort(t.dirs)
	var list []string
	for _, dir := range t.dirs {
		if len(list) == 0 || !below(dir, list[len(list)-1]) {
			list = append(list, dir)
		}
	}
	return list
}

// below reports whether path is dir or lies in it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}
