package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// toolHome is a home with the tools that people install there.
func toolHome(t *testing.T) string {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{
		"go/bin/gopls", ".nvm/versions/node/v20/lib/npm/cli.js", ".nvm/versions/node/v20/bin/node", ".cargo/bin/rustup",
		".cargo/credentials.toml", ".local/bin/own", ".local/share/pipx/venvs/black/bin/black", ".local/state/insightscli/state.db",
		".config/gcloud/bin/gcloud", ".ssh/bin/x", "bin/mine", ".pyenv/shims/python",
	} {
		path := filepath.Join(home, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		".nvm/versions/node/v20/bin/npm": "../lib/npm/cli.js",
		".local/bin/black":               "../share/pipx/venvs/black/bin/black",
		".local/bin/gone":                "nowhere",
		".local/bin/ls":                  "/bin/ls",
		".nvm/current":                   "versions/node/v20",
	} {
		if err := os.Symlink(target, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

func TestFindTools(t *testing.T) {
	home := toolHome(t)
	in := func(names ...string) string {
		for i, n := range names {
			if !filepath.IsAbs(n) {
				names[i] = filepath.Join(home, n)
			}
		}
		return strings.Join(names, ":")
	}
	tests := []struct{ name, path, dirs, search string }{
		{"an installation", in("go/bin"), "go", "go/bin"},
		{"not one that holds credentials", in(".cargo/bin"), ".cargo/bin", ".cargo/bin"},
		{"what links lead to", in(".local/bin"), ".local/bin .local/share/pipx/venvs/black", ".local/bin"},
		{"a directory that is a link", in(".nvm/current/bin"), ".nvm/current .nvm/versions/node/v20", ".nvm/current/bin"},
		{"shims", in(".pyenv/shims"), ".pyenv", ".pyenv/shims"},
		{"not the home itself", in("bin"), "bin", "bin"},
		{"denied names", in(".config/gcloud/bin", ".ssh/bin"), "", ""},
		{"what is visible needs nothing", in("/usr/bin", "/usr/bin", "go/bin"), "go", "/usr/bin go/bin"},
		{"relative, empty and missing", "bin::" + in("missing/bin"), "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dirs, search := findTools(tt.path, home, filepath.Join(home, ".local/state/insightscli"))
			want := func(names string) (list []string) {
				for n := range strings.FieldsSeq(names) {
					list = append(list, strings.Split(in(n), ":")...)
				}
				return list
			}
			if !slices.Equal(dirs, want(tt.dirs)) {
				t.Errorf("dirs = %q, want %q", dirs, want(tt.dirs))
			}
			if got := filepath.SplitList(search); !slices.Equal(got, want(tt.search)) {
				t.Errorf("search = %q, want %q", got, want(tt.search))
			}
		})
	}
}

// The state directory is never shown to a sandbox, whatever PATH says.
func TestFindToolsKeepsTheStateOut(t *testing.T) {
	home := toolHome(t)
	state := filepath.Join(home, "tool", "state")
	if err := os.MkdirAll(filepath.Join(home, "tool", "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	dirs, _ := findTools(filepath.Join(home, "tool", "bin"), home, state)
	if !slices.Equal(dirs, []string{filepath.Join(home, "tool", "bin")}) {
		t.Errorf("dirs = %q", dirs)
	}
	if dirs, search := findTools(filepath.Join(state, "bin"), home, state); len(dirs) > 0 || search != "" {
		t.Errorf("dirs = %q, search %q", dirs, search)
	}
}
