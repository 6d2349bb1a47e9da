package agentcli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxLauncher bounds what is read of a launcher; a bundle may be larger, but not the
// lines that start it.
const maxLauncher = 64 << 10

// behindLauncher takes the native program that the launcher at path, a script, starts.
func (s *search) behindLauncher(path string) (Program, bool) {
	script, ok := s.launcher(path)
	if !ok {
		s.refuse("%s is a script that does not belong to the npm package %s", path, s.npm)
		return Program{}, false
	}
	for dir := filepath.Dir(script); ; dir = filepath.Dir(dir) {
		modules := dir
		if filepath.Base(dir) != "node_modules" {
			modules = filepath.Join(dir, "node_modules")
		}
		if p, ok := s.inModules(modules); ok {
			return p, true
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	s.refuse("%s is the launcher of %s, whose native program for linux-%s is not installed", path, s.npm, s.arch.npm)
	return Program{}, false
}

// launcher returns the script of the npm package that path is, or that path, a shell
// script of a package manager, starts.
func (s *search) launcher(path string) (string, bool) {
	if m, ok := manifestOf(path); ok && m.Name == s.npm {
		return path, true
	}
	head, err := readHead(path)
	if err != nil {
		return "", false
	}
	mark := []byte("/" + s.npm + "/")
	at := bytes.Index(head, mark)
	if at < 0 {
		return "", false
	}
	// The path in which the mark is: to the left up to a quote or a blank.
	from := bytes.LastIndexAny(head[:at], "\"' \t\n=") + 1
	target := strings.NewReplacer("$basedir", filepath.Dir(path), "$(dirname", "").Replace(string(head[from:at+len(mark)]) + "x")
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(path), target)
	}
	real, err := filepath.EvalSymlinks(filepath.Dir(target))
	if err != nil {
		return "", false
	}
	return filepath.Join(real, "x"), true
}

// inModules takes the native program from the packages in modules, a node_modules.
func (s *search) inModules(modules string) (Program, bool) {
	for _, candidate := range s.candidates(s.arch, s.musl) {
		path, err := filepath.EvalSymlinks(filepath.Join(modules, filepath.FromSlash(candidate)))
		if err != nil {
			continue
		}
		native, err := s.runs(path)
		if err != nil {
			s.refuse("%s %v", path, err)
			continue
		}
		if native {
			return s.program(path), true
		}
	}
	return Program{}, false
}

func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxLauncher))
}
