package local

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// ToolDirs returns the host directories that hold the tools on PATH which a sandbox
// would not see otherwise, because they lie in a home directory: versions of nvm,
// pyenv, asdf, cargo, go, linuxbrew and the like, and what their links lead to. They
// are bound read-only at the same place. Nothing is returned that is, lies in, or
// holds something named like a store of credentials, nor a home itself.
func ToolDirs(pathEnv, home string) []string { return toolDirs(os.DirFS("/"), pathEnv, home) }

// hidesSecrets reports whether a file or directory of this name is a reason not to
// show what holds it.
func hidesSecrets(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case ".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".config", ".netrc", "_netrc", ".pgpass",
		".npmrc", ".pypirc", ".git-credentials", ".password-store", ".mozilla", ".thunderbird", ".claude", ".codex",
		".claude.json", ".bash_history", ".zsh_history", ".env", "credentials", "credentials.toml", "credentials.json",
		"keyrings", ".secrets", "secrets", ".terraform.d", ".vault-token", ".m2", ".gem", ".my.cnf", ".boto", ".s3cfg",
		".insightscli", ".gemini", ".gradle", ".terraformrc":
		return true
	}
	for _, ending := range []string{".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx"} {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	return strings.HasPrefix(name, ".env.") || strings.HasPrefix(name, "id_") && !strings.Contains(name, ".")
}

// showable reports whether a directory that has been resolved may be shown: it is not
// the machine's own, and neither its path nor its entries name a store of
// credentials. It is asked again when a sandbox is made: a link may have come to lead
// elsewhere.
func showable(fsys fs.FS, dir string) bool {
	for _, top := range []string{"/etc", "/proc", "/sys", "/dev", "/run", "/boot"} {
		if below(dir, top) {
			return false
		}
	}
	if slices.Contains([]string{"/", "/home", "/root", "/var", "/tmp"}, dir) || path.Dir(dir) == "/home" {
		return false
	}
	for name := range strings.SplitSeq(dir, "/") {
		if hidesSecrets(name) {
			return false
		}
	}
	entries, err := fs.ReadDir(fsys, rel(dir))
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return hidesSecrets(e.Name()) })
}

// managers are the directories below a home that belong to a version manager as a
// whole: their shims start what lies beside them.
func managers() []string {
	return []string{".pyenv", ".asdf", ".rbenv", ".nodenv", ".goenv", ".jenv", ".linuxbrew", ".volta", ".sdkman", ".local/share/mise"}
}

// linuxbrew is the one home of another user that holds tools for everybody.
const linuxbrew = "/home/linuxbrew/.linuxbrew"

type toolFinder struct {
	fsys  fs.FS // of the whole machine
	home  string
	found []string
}

func toolDirs(fsys fs.FS, pathEnv, home string) []string {
	f := toolFinder{fsys: fsys, home: path.Clean(home)}
	if !path.IsAbs(f.home) || f.home == "/" {
		return nil
	}
	for dir := range strings.SplitSeq(pathEnv, ":") {
		if !path.IsAbs(dir) {
			continue // relative, or empty: the working directory
		}
		dir = path.Clean(dir)
		f.add(dir)
		if !distribution(dir) {
			f.links(dir)
		}
	}
	slices.Sort(f.found)
	// A directory inside another that is shown is shown with it.
	return slices.DeleteFunc(f.found, func(dir string) bool {
		return slices.ContainsFunc(f.found, func(other string) bool { return other != dir && below(dir, other) })
	})
}

// distribution reports whether dir belongs to the distribution, whose links lead
// nowhere but into itself: looking at its thousands takes longer than a sandbox.
func distribution(dir string) bool {
	switch dir {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/games":
		return true
	}
	return false
}

// hidden reports whether dir lies in a home, so that a sandbox does not see it.
func (f *toolFinder) hidden(dir string) bool {
	return dir != f.home && below(dir, f.home) || below(dir, linuxbrew)
}

// add shows what the programs in dir need: the version manager or the prefix that
// dir is part of if that may be shown, else dir alone.
func (f *toolFinder) add(dir string) {
	if !f.hidden(dir) {
		return
	}
	for _, candidate := range f.candidates(dir) {
		if f.hidden(candidate) && f.clean(candidate) {
			if !slices.Contains(f.found, candidate) {
				f.found = append(f.found, candidate)
			}
			return
		}
	}
}

// candidates are the directories that would serve the programs in dir, the most
// useful first.
func (f *toolFinder) candidates(dir string) []string {
	if below(dir, linuxbrew) {
		return []string{linuxbrew}
	}
	for _, m := range managers() {
		if root := f.home + "/" + m; below(dir, root) {
			return []string{root, dir}
		}
	}
	parent := path.Dir(dir)
	shared := parent == f.home || path.Dir(parent) == f.home && path.Base(parent) != ".rustup"
	if path.Base(dir) == "bin" && !shared && f.prefix(parent) {
		return []string{parent, dir} // a prefix with its lib and share: ~/.nvm/versions/node/v22/bin
	}
	return []string{dir} // ~/.cargo/bin, ~/go/bin, ~/.local/bin: what lies beside is not theirs
}

// clean reports whether dir exists, is a directory, and may be shown, also as what its
// links lead to.
func (f *toolFinder) clean(dir string) bool {
	real := f.real(dir)
	for name := range strings.SplitSeq(strings.TrimPrefix(dir, f.home), "/") {
		if hidesSecrets(name) {
			return false
		}
	}
	return real != "" && real != f.home && showable(f.fsys, real)
}

// real resolves every link in an absolute path; "" when it leads nowhere or in a
// circle.
func (f *toolFinder) real(name string) string {
	const most = 40
	done, rest := "/", strings.TrimPrefix(name, "/")
	for links := 0; rest != ""; {
		first, after, _ := strings.Cut(rest, "/")
		next := path.Join(done, first)
		info, err := fs.Lstat(f.fsys, rel(next))
		switch {
		case err != nil:
			return ""
		case info.Mode()&fs.ModeSymlink == 0:
			done, rest = next, after
			continue
		}
		target, err := fs.ReadLink(f.fsys, rel(next))
		if links++; err != nil || links > most {
			return ""
		}
		if !path.IsAbs(target) {
			target = path.Join(done, target)
		}
		done, rest = "/", strings.TrimPrefix(path.Join(target, after), "/")
	}
	return done
}

// checkout reports whether dir lies in a checkout, which an agent may have written to:
// nothing it has put there may bring other directories into the next sandbox.
func (f *toolFinder) checkout(dir string) bool {
	for ; dir != f.home && below(dir, f.home); dir = path.Dir(dir) {
		if _, err := fs.Lstat(f.fsys, rel(dir+"/.git")); err == nil {
			return true
		}
	}
	return false
}

// prefix reports whether dir is a prefix of installed programs rather than a project
// that happens to have a bin.
func (f *toolFinder) prefix(dir string) bool {
	has := func(name string) bool {
		_, err := fs.Lstat(f.fsys, rel(dir+"/"+name))
		return err == nil
	}
	return !has(".git") && (has("lib") || has("libexec") || has("lib64") || has("share") || has("pyvenv.cfg"))
}

// links shows what the links in dir lead to, and the toolchains that rustup's
// programs start.
func (f *toolFinder) links(dir string) {
	entries, err := fs.ReadDir(f.fsys, rel(dir))
	if err != nil {
		return
	}
	foreign := f.checkout(dir)
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			if e.Name() == "rustup" {
				f.add(f.home + "/.rustup/toolchains")
			}
			continue
		}
		target := f.resolve(path.Join(dir, e.Name()), !foreign)
		if target != "" && (!foreign || path.Base(path.Dir(target)) == "bin") {
			f.add(path.Dir(target))
		}
	}
}

// resolve follows a link to a file; "" when it leads nowhere or in a circle. show says
// whether what lies on the way is shown too.
func (f *toolFinder) resolve(name string, show bool) string {
	const most = 16
	for range most {
		target, err := fs.ReadLink(f.fsys, rel(name))
		if err != nil {
			if _, err := fs.Lstat(f.fsys, rel(name)); err != nil {
				return ""
			}
			return name
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(name), target)
		}
		if show {
			f.add(path.Dir(name))
		}
		name = path.Clean(target)
	}
	return ""
}

// rel is the name of an absolute path in the file system of the whole machine.
func rel(abs string) string {
	if abs == "/" {
		return "."
	}
	return strings.TrimPrefix(abs, "/")
}

// below reports whether name is dir or lies in it.
func below(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}
