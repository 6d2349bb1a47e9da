package memory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/Insights/insightscli/internal/sandbox"
)

func TestPathsAreMovedOnce(t *testing.T) {
	// A root that holds the name of the workspace itself.
	at, err := newPlace(sandbox.Spec{Dir: filepath.Join(t.TempDir(), "tmp", "workspace")})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"/tmp/workspace":                      at.root + "/tmp/workspace",
		"cd /tmp/workspace/a; ls /home/agent": "cd " + at.root + "/tmp/workspace/a; ls " + at.root + "/home/agent",
		"/etc/passwd":                         "/etc/passwd",
	} {
		once := at.path(in)
		if once != want || at.path(once) != want {
			t.Errorf("%s became %s, then %s", in, once, at.path(once))
		}
	}
}

func TestMissingMountSourceIsRefused(t *testing.T) {
	spec := sandbox.Spec{Dir: t.TempDir(), Mounts: []sandbox.Mount{
		{Kind: sandbox.MountBind, Source: filepath.Join(t.TempDir(), "none"), Target: "/tmp/workspace/repos/o/r"},
	}}
	if _, err := newPlace(spec); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(spec.Dir, "root")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("something was left behind: %v", err)
	}
}

func TestOverlayIsRefused(t *testing.T) {
	spec := sandbox.Spec{Dir: t.TempDir(), Mounts: []sandbox.Mount{{Kind: sandbox.MountOverlay, Target: "/tmp/workspace/x"}}}
	if _, err := newPlace(spec); err == nil {
		t.Fatal("an overlay was made")
	}
}
