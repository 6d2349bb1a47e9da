// Package agentcli finds the program of an agent on the host, so that it can be mounted
// into a sandbox whose image has none. It looks where a user says, in the PATH, and in
// the npm packages to which a launcher in the PATH belongs, because the native program
// that a launcher starts is all that a sandbox needs: it has no Node.
//
// It reads files and never runs one. It takes only a program that runs in a sandbox of
// the given platform: an ELF of its machine and of its C library.
package agentcli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// The agents that this package knows.
const (
	Claude = "claude"
	Codex  = "codex"
)

// Options say where to look and for what.
type Options struct {
	Path     string // value of PATH
	Explicit string // the program, as the user named it; nothing else is looked at then
	Platform string // of the sandbox, "linux/amd64"
	Musl     bool   // the sandbox's C library is musl, not glibc
}

// Program is a program that can be mounted.
type Program struct {
	Name string
	// Source is what to mount, without symbolic links: a file, or a directory that has
	// the program in bin/Name where the program needs what lies beside it.
	Source  string
	Version string // "" if unknown
}

// Find finds the program of the agent name. Its errors are of kind errs.Config and say
// what to install.
func Find(name string, o Options) (Program, error) {
	a, ok := agents(name)
	if !ok {
		return Program{}, errs.New(op, errs.Config, "", "no program is known for agent %q", name)
	}
	arch, err := archOf(o.Platform)
	if err != nil {
		return Program{}, errs.New(op, errs.Config, "", "%w", err)
	}
	s := search{agent: a, arch: arch, musl: o.Musl}
	if o.Explicit != "" {
		return s.explicit(o.Explicit, a.hint(o.Platform))
	}
	p, found := s.inPath(filepath.SplitList(o.Path))
	if !found {
		return Program{}, errs.New(op, errs.Config, a.hint(o.Platform), "%s", s.notFound(o.Platform))
	}
	return p, CheckVersion(name, p.Version)
}

const op = "agentcli.Find"

// agent is what there is to know about one agent's program.
type agent struct {
	name     string
	npm      string // package with the launcher
	variable string // by which a user names the program
	floor    string // oldest version that is driven
	// candidates are the paths of the native program below a node_modules, the best
	// first.
	candidates func(a arch, musl bool) []string
}

func agents(name string) (agent, bool) {
	switch name {
	case Claude:
		return agent{Claude, "@anthropic-ai/claude-code", "CLAUDE_CODE_EXECUTABLE", "2.1.0", claudeCandidates}, true
	case Codex:
		return agent{Codex, "@openai/codex", "CODEX_PATH", "0.100.0", codexCandidates}, true
	}
	return agent{}, false
}

func claudeCandidates(a arch, musl bool) []string {
	platform := "@anthropic-ai/claude-code-linux-" + a.npm
	if musl {
		platform += "-musl"
	}
	return []string{platform + "/claude", "@anthropic-ai/claude-code/bin/claude.exe"}
}

// codexCandidates: its program is static, so that one does for every C library.
func codexCandidates(a arch, _ bool) []string {
	program := "/vendor/" + a.triple + "-unknown-linux-musl/bin/codex"
	return []string{"@openai/codex-linux-" + a.npm + program, "@openai/codex" + program}
}

// hint is the command that makes Find succeed.
func (a agent) hint(platform string) string {
	flags := ""
	if system, cpu, _ := strings.Cut(platform, "/"); platform != runtime.GOOS+"/"+runtime.GOARCH {
		known, _ := archOf(platform)
		flags = fmt.Sprintf("--os=%s --cpu=%s ", system, cmp.Or(known.npm, cpu))
	}
	return fmt.Sprintf("npm install -g %s%s@latest, or set %s to its native program", flags, a.npm, a.variable)
}

// search is one look for one program. Its methods note why they took nothing.
type search struct {
	agent
	arch   arch
	musl   bool
	reason string // why the first program of that name was not taken
}

func (s *search) refuse(format string, args ...any) {
	if s.reason == "" {
		s.reason = fmt.Sprintf(format, args...)
	}
}

func (s *search) notFound(platform string) string {
	text := fmt.Sprintf("this machine has no program of agent %s for a sandbox of %s", s.name, platform)
	if s.reason != "" {
		text += ": " + s.reason
	}
	return text
}

// explicit takes the program that the user named, or nothing.
func (s *search) explicit(path, hint string) (Program, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Program{}, errs.New(op, errs.Config, hint, "%s: %w", s.variable, err)
	}
	if info, err := os.Stat(abs); err == nil && info.IsDir() {
		abs = filepath.Join(abs, "bin", s.name)
	}
	if p, ok := s.take(abs); ok {
		return p, CheckVersion(s.name, p.Version)
	}
	return Program{}, errs.New(op, errs.Config, hint, "%s: %s", s.variable, s.reason)
}

// inPath looks at the programs of that name in dirs, then at packages that npm installed
// beside dirs without a launcher. Entries that are not absolute are passed over: they
// mean another place in every directory.
func (s *search) inPath(dirs []string) (Program, bool) {
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, s.name)
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			continue
		}
		if p, ok := s.take(path); ok {
			return p, true
		}
	}
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			continue
		}
		if p, ok := s.inModules(filepath.Join(filepath.Dir(dir), "lib", "node_modules")); ok {
			return p, true
		}
	}
	return Program{}, false
}

// take takes the program at path, or the one that the launcher at path starts.
func (s *search) take(path string) (Program, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		s.refuse("%v", err)
		return Program{}, false
	}
	native, err := s.runs(real)
	switch {
	case err != nil:
		s.refuse("%s %v", path, err)
		return Program{}, false
	case native:
		return s.program(real), true
	}
	return s.behindLauncher(real)
}

// program describes the native program at path. One that lies in a layout of its own is
// mounted with it.
func (s *search) program(path string) Program {
	p := Program{Name: s.name, Source: path, Version: s.version(path)}
	if dir := filepath.Dir(filepath.Dir(path)); s.name == Codex && layout(dir, path) {
		p.Source = dir
	}
	return p
}

// layout reports whether dir is codex's own: its bin, and beside it what the program
// looks for there. Any other directory above a bin, such as /usr/local, is not.
func layout(dir, program string) bool {
	if program != filepath.Join(dir, "bin", Codex) {
		return false
	}
	for _, beside := range []string{"codex-resources", "codex-path", "codex-package.json"} {
		if _, err := os.Stat(filepath.Join(dir, beside)); err == nil {
			return true
		}
	}
	return false
}
