package jail

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
)

// Whatever an image or a snapshot has there, the guard takes its place.
func TestPlaceGuard(t *testing.T) {
	for name, before := range map[string]func(path string) error{
		"nothing":      func(string) error { return nil },
		"a program":    func(path string) error { return os.WriteFile(path, []byte("#!/bin/sh"), 0o755) },
		"another link": func(path string) error { return os.Symlink("/usr/bin/git", path) },
		"the guard":    func(path string) error { return os.Symlink(filepath.Base(wire.ServerPath), path) },
	} {
		root := t.TempDir()
		err := errors.Join(os.MkdirAll(root+wire.BinDir, 0o755), before(root+wire.GitPath), placeGuard(root), placeGuard(root))
		gh, _ := os.Readlink(root + wire.GHPath)
		if to, _ := os.Readlink(root + wire.GitPath); err != nil || to != "insights-agent-server" || gh != to {
			t.Errorf("%s: a link to %q, %v", name, to, err)
		}
	}
	if err := placeGuard(t.TempDir()); err == nil {
		t.Error("a place that is missing is our mistake")
	}
}

// A login shell has our programs first, once, whatever its start-up file does.
func TestKeepPath(t *testing.T) {
	for before, want := range map[string]string{
		"":                                 wire.BinDir + ":/given",
		"PATH=/usr/bin:/bin\n":             wire.BinDir + ":/usr/bin:/bin",
		"PATH=/bin":                        wire.BinDir + ":/bin",
		"PATH=" + wire.BinDir + ":/bin\n":  wire.BinDir + ":/bin",
		"PATH=/bin:" + wire.BinDir + "\n":  wire.BinDir + ":/bin:" + wire.BinDir,
		"PATH=\n":                          wire.BinDir,
		"unset PATH; set -u\n":             wire.BinDir,
		"PATH=" + wire.BinDir + "x:/bin\n": wire.BinDir + ":" + wire.BinDir + "x:/bin",
	} {
		profile := filepath.Join(t.TempDir(), "profile")
		if before != "" {
			if err := os.WriteFile(profile, []byte(before), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(keepPath(profile), keepPath(profile)); err != nil {
			t.Errorf("%q: %v", before, err)
		}
		text, _ := os.ReadFile(profile)
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", ". "+profile+"; echo \"$PATH\"")
		cmd.Env = []string{"PATH=/given"}
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != want+"\n" || strings.Count(string(text), "come first") != 1 {
			t.Errorf("%q: %q, %v\n%s", before, out, err, text)
		}
	}
}

// A link that an image plants leads root nowhere.
func TestKeepPathFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "profile")
	if err := errors.Join(os.WriteFile(target, nil, 0o644), os.Symlink(target, link), keepPath(link), keepPath(dir)); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(target); err != nil || len(text) > 0 {
		t.Errorf("%q, %v", text, err)
	}
}
