package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTheCopyIsCurrent: nobody has changed it by hand, and it is of the version in go.mod.
func TestTheCopyIsCurrent(t *testing.T) {
	made, kept := t.TempDir(), filepath.Join("..", "jsonschema")
	if err := write(made); err != nil {
		t.Fatal(err)
	}
	want, have := files(t, made), files(t, kept)
	have = slices.DeleteFunc(have, func(name string) bool {
		return strings.HasSuffix(name, "doc.go") || strings.HasPrefix(name, "message")
	})
	if !slices.Equal(want, have) {
		t.Errorf("it has the files\n%s\nnot\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
	for _, name := range want {
		if !bytes.Equal(read(t, made, name), read(t, kept, name)) {
			t.Errorf("%s is not as jsonschemagen makes it: go generate ./internal/reply", name)
		}
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, filepath.FromSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// read is a file as it is in the repository, whatever line ends this checkout has.
func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
}
