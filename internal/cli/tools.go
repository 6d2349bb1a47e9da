package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/sandbox/local"
)

// systemPath ends every PATH of a local sandbox: what its shell needs is there.
const systemPath = "/usr/local/bin:/usr/bin:/bin"

// localTools returns the directories of tools that a local sandbox gets, and the
// PATH that finds them there. Our own state is never among them.
func localTools(c config.Config) (dirs []string, path string) {
	m := c.Machine
	state, _ := c.StateDir() // without one nothing is run
	dirs = slices.DeleteFunc(local.ToolDirs(m.Path, m.Home), func(dir string) bool {
		return state != "" && (below(dir, state) || below(state, dir))
	})
	return dirs, sandboxPath(m.Path, m.Home, dirs)
}

// sandboxPath is the caller's PATH without what a sandbox does not see: homes, but
// for the directories that it gets.
func sandboxPath(path, home string, dirs []string) string {
	seen := func(dir string) bool {
		for _, hidden := range []string{home, "/root", "/home"} {
			if hidden != "" && below(dir, hidden) {
				return slices.ContainsFunc(dirs, func(d string) bool { return below(dir, d) })
			}
		}
		return filepath.IsAbs(dir)
	}
	var list []string
	for dir := range strings.SplitSeq(path+":"+systemPath, ":") {
		if dir = filepath.Clean(dir); seen(dir) && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return strings.Join(list, ":")
}

// below reports whether path is dir or lies in it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
