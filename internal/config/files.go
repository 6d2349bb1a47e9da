package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxFile bounds what is read: a larger file is not a configuration.
const maxFile = 1 << 20

// findUp returns the nearest name in dir or its parents, not above the root of
// the repository that dir lies in, or "". Directories do not count: many a Python
// project has its virtual environment at .env.
func findUp(dir, name string) string {
	for _, d := range upToRepository(dir) {
		path := filepath.Join(d, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return path // reading it gives the reason
		}
	}
	return ""
}

// upToRepository returns dir and its parents up to the one that holds .git; dir
// alone if none does.
func upToRepository(dir string) []string {
	var dirs []string
	for d := dir; ; {
		dirs = append(dirs, d)
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return dirs
		}
		parent := filepath.Dir(d)
		if parent == d {
			return dirs[:1]
		}
		d = parent
	}
}

// readFile reads a configuration file; nil means that there is none.
func readFile(path string) ([]byte, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && info.IsDir():
		return nil, errors.New("it is a directory")
	case err == nil && !info.Mode().IsRegular(): // to open a pipe would wait for whoever writes it
		return nil, errors.New("it is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxFile {
		return nil, errors.New("it is larger than 1 MiB")
	}
	return []byte(strings.TrimPrefix(string(b), "\ufeff")), nil
}

// shown is path as people are told it: relative where it lies below dir.
func shown(dir, path string) string {
	rel, err := filepath.Rel(dir, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return path
	}
	return rel
}
