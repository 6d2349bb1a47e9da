package skills

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const manifestName = "SKILL.md"

// Bounds of one skill. An agent reads the whole of a SKILL.md into its context, and a
// bundle is copied into sandboxes.
const (
	maxManifest    = 1 << 20  // bytes of a SKILL.md
	maxFile        = 16 << 20 // bytes of one file
	maxSkill       = 64 << 20 // bytes of all files
	maxFiles       = 2000
	maxName        = 64
	maxDescription = 1024 // characters
)

// folder is a skill that was read and found in order.
type folder struct {
	Skill
	files []file // sorted by path, as fs.WalkDir goes
}

// file is one file of a skill. Of its mode only the leave to execute it is kept.
type file struct {
	path       string // within the folder, with slashes
	size       int64
	executable bool
}

func (f file) mode() fs.FileMode {
	if f.executable {
		return 0o755
	}
	return 0o644
}

// read reads the skill in dir. Its files are not opened, but for the manifest.
func read(dir string) (folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return folder{}, err
	}
	defer func() { _ = root.Close() }()
	skill := folder{Skill: Skill{Source: dir}}
	if skill.files, err = list(root); err != nil {
		return folder{}, err
	}
	if err := skill.manifest(root); err != nil {
		return folder{}, fmt.Errorf("%s: %w", manifestName, err)
	}
	return skill, nil
}

// list finds the files of a skill and checks its bounds.
func list(root *os.Root) ([]file, error) {
	var files []file
	var size int64
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && ignored(d.Name()) && d.IsDir():
			return fs.SkipDir
		case d.IsDir() || ignored(d.Name()):
			return nil
		}
		info, err := root.Stat(name) // follows a link that stays within the folder
		switch {
		case err != nil && d.Type()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a symbolic link that leads out of the folder or nowhere", name)
		case err != nil:
			return err
		case info.IsDir():
			return fmt.Errorf("%s is a symbolic link to a folder", name)
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is neither a file nor a folder", name)
		case info.Size() > maxFile:
			return fmt.Errorf("%s has %d bytes, and %d is the most", name, info.Size(), maxFile)
		}
		size += info.Size()
		files = append(files, file{name, info.Size(), info.Mode().Perm()&0o100 != 0})
		if size > maxSkill || len(files) > maxFiles {
			return fmt.Errorf("it is larger than %d bytes or %d files", maxSkill, maxFiles)
		}
		return nil
	})
	return files, err
}

// manifest reads the front matter of SKILL.md.
func (s *folder) manifest(root *os.Root) error {
	f, err := root.Open(manifestName)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	switch {
	case err != nil:
		return err
	case len(text) > maxManifest:
		return fmt.Errorf("it is larger than %d bytes", maxManifest)
	}
	matter, err := frontMatter(text)
	if err != nil {
		return err
	}
	var fields struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	}
	if err := yaml.Unmarshal(matter, &fields); err != nil {
		return fmt.Errorf("front matter: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	s.Name, s.Description = fields.Name, strings.TrimSpace(fields.Description)
	return s.check()
}

// frontMatter cuts out what lies between the first line, "---", and the next one.
func frontMatter(text []byte) ([]byte, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // the mark that editors of Windows write
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8 text")
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if string(bytes.TrimRight(first, " \t\r")) != "---" {
		return nil, errors.New(`it has no front matter: the first line is not "---"`)
	}
	for at := 0; at < len(rest); {
		line, _, _ := bytes.Cut(rest[at:], []byte("\n"))
		if string(bytes.TrimRight(line, " \t\r")) == "---" {
			return rest[:at], nil
		}
		at += len(line) + 1
	}
	return nil, errors.New(`its front matter has no end: a line "---" is missing`)
}

func (s *folder) check() error {
	switch {
	case s.Name == "":
		return errors.New("the front matter has no name")
	case len(s.Name) > maxName:
		return fmt.Errorf("the name has %d characters, and %d is the most", len(s.Name), maxName)
	case !regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`).MatchString(s.Name):
		return fmt.Errorf("the name %q is not made of lower-case letters, digits and hyphens", s.Name)
	case s.Description == "":
		return errors.New("the front matter has no description")
	case utf8.RuneCountInString(s.Description) > maxDescription:
		return fmt.Errorf("the description has %d characters, and %d is the most",
			utf8.RuneCountInString(s.Description), maxDescription)
	}
	return nil
}

// dirs are the folders that the files need, each after the one above it.
func (s *folder) dirs() []string {
	var dirs []string
	seen := map[string]bool{".": true}
	for _, f := range s.files {
		var above []string
		for dir := path.Dir(f.path); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			above = append([]string{dir}, above...)
		}
		dirs = append(dirs, above...)
	}
	return dirs
}
