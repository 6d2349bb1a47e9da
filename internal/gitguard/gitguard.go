// Package gitguard is the git that an agent finds first in its PATH: it refuses to commit
// and to push, because commits are signed and published by a tool, and becomes the real
// git for everything else.
//
// It is a guide rail and no wall. It sees through options and aliases, those for a shell
// among them as far as their text tells; it does not see what a script, a hook or a git
// that was called by its path does, nor plumbing such as send-pack, and it never hinders
// commands that commit on the way (merge, rebase, revert). What gets past it cannot be
// published: there is no credential in a sandbox.
//
// The real git is executed in the guard's place, with its environment. Only for a word
// that is none of git's well-known commands is it asked before, once, for the aliases.
package gitguard

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Refusal is what whoever commits or pushes is told.
const Refusal = `git commit is disabled in Insights Desktop: commits must be signed.
To commit: stage changes with 'git add', then call the git_signed_commit tool.
To force-push after a rebase/conflict fix: call the git_signed_rewrite tool.
`

// AllowVariable turns the guard off where it is 1.
const AllowVariable = "INSIGHTS_ALLOW_UNSIGNED_GIT"

// Exit codes of the guard itself, the last two as a shell has them.
const (
	exitRefused = 1
	exitCannot  = 126
	exitNoGit   = 127
)

// Process is an invocation of git.
type Process struct {
	Args    []string // what follows the program's name
	Environ []string
	Stderr  io.Writer
	// Self are paths of the guard's own program. One that is missing, or that may not be
	// looked at, does no harm.
	Self []string
}

// Run refuses p or becomes the real git. It returns an exit code only where it did not.
func Run(ctx context.Context, p Process) int {
	env := environment(p.Environ)
	git := Next(env, "git", p.Self)
	if git == "" {
		_, _ = fmt.Fprintln(p.Stderr, "git: there is no git in this sandbox: install it in the image")
		return exitNoGit
	}
	args := p.Args
	if env.get(AllowVariable) != "1" {
		var refused bool
		if args, refused = check(ctx, args, &realGit{path: git, environ: env}); refused {
			_, _ = io.WriteString(p.Stderr, Refusal)
			return exitRefused
		}
	}
	err := syscall.Exec(git, append([]string{"git"}, args...), p.Environ)
	_, _ = fmt.Fprintf(p.Stderr, "git: %s: %v\n", git, err)
	return exitCannot
}

// environment is a list of NAME=value.
type environment []string

// get returns the value of a variable: of two the first, as getenv does.
func (e environment) get(name string) string {
	for _, kv := range e {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v
		}
	}
	return ""
}

// Next returns the program of that name whose place another one has taken, or "": what
// comes behind that in the PATH. Self are paths of the other one. What comes before it is no
// candidate, because it may be a wrapper that has called it. Nor is a relative directory:
// that would be the repository's own.
func Next(environ []string, name string, self []string) string {
	guard := identities(self)
	dirs := filepath.SplitList(environment(environ).get("PATH"))
	for i, dir := range dirs {
		if info := program(dir, name); info != nil && guard.has(info) {
			dirs = dirs[i+1:]
			break
		}
	}
	for _, dir := range append(dirs, "/usr/bin", "/usr/local/bin", "/bin") {
		if info := program(dir, name); info != nil && !guard.has(info) {
			return filepath.Join(dir, name)
		}
	}
	return ""
}

// program looks at a program in an absolute directory; nil is for none.
func program(dir, name string) os.FileInfo {
	if !filepath.IsAbs(dir) {
		return nil
	}
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return nil
	}
	return info
}

type files []os.FileInfo

func identities(paths []string) files {
	var list files
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			list = append(list, info)
		}
	}
	return list
}

func (f files) has(info os.FileInfo) bool {
	for _, other := range f {
		if os.SameFile(info, other) {
			return true
		}
	}
	return false
}
