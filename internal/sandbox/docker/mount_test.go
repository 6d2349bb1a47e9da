package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/testenv"
)

// overlayMount returns an overlay on a small checkout that belongs to the agent.
func overlayMount(t testing.TB, dir string) sandbox.Mount {
	t.Helper()
	m := sandbox.Mount{
		Kind: sandbox.MountOverlay, Source: filepath.Join(dir, "lower"), Target: "/tmp/workspace/repos/o/r",
		Upper: filepath.Join(dir, "work/0/upper"), Work: filepath.Join(dir, "work/0/work"),
	}
	for _, d := range []string{m.Source + "/sub", m.Upper, m.Work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(m.Source+"/sub/file", []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{m.Source, m.Source + "/sub", m.Source + "/sub/file", m.Upper} {
		if err := os.Chown(p, agentID(), agentID()); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestOverlay(t *testing.T) {
	p := realEngine(t, TransportAuto)
	r := newRequest(t, baseImage(t, p), networkLink)
	testenv.Need(t, "a local disk for overlays", p.CanOverlay(t.Context(), r.Dir))
	m := overlayMount(t, r.Dir)
	r.Mounts = []sandbox.Mount{m}
	box := mustCreate(t, p, r)
	c := mustConnect(t, box, r.key)
	wantSh(t, c, "cd /tmp/workspace/repos/o/r && cat sub/file && mv sub moved && echo new >moved/file && rm -rf gone; mkdir -m 0 shut; ls", "old\nmoved\nshut")
	destroy(t, box)
	nothingLeft(t, p, r.Labels[sandbox.LabelRun])
	for _, dir := range []string{m.Upper, m.Work} {
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Errorf("%s holds %v (%v)", dir, names, err)
		}
	}
	if data, err := os.ReadFile(m.Source + "/sub/file"); err != nil || string(data) != "old\n" {
		t.Errorf("the checkout was touched: %q, %v", data, err)
	}
}

// Where this process may not empty the directories, a container does.
func TestEmptyByContainer(t *testing.T) {
	p := realEngine(t, TransportAuto)
	image := baseImage(t, p)
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/a/b", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := p.engine.emptyByContainer(within(t, time.Minute), []string{dir}, image); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("left: %v (%v)", names, err)
	}
}

func TestEmptyDirsKeepsToTheDirectory(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(outside+"/kept", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := emptyDirs([]string{dir, dir + "/missing"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(outside + "/kept"); err != nil {
		t.Error(err)
	}
	if names, _ := os.ReadDir(dir); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}

// A volume whose container is gone is found and removed (C4).
func TestLeftoverVolume(t *testing.T) {
	p := realEngine(t, TransportAuto)
	r := newRequest(t, baseImage(t, p), networkLink)
	r.Mounts = []sandbox.Mount{overlayMount(t, r.Dir)}
	box := mustCreate(t, p, r)
	labels := map[string]string{sandbox.LabelState: r.Labels[sandbox.LabelState]}
	if left := volumesIn(t, p, labels); len(left) > 0 {
		t.Errorf("the volume of a live container is a leftover: %v", left)
	}
	if err := p.engine.removeContainer(within(t, time.Minute), box.ID()); err != nil {
		t.Fatal(err)
	}
	left := volumesIn(t, p, labels)
	if len(left) != 1 || left[0].Run != r.Labels[sandbox.LabelRun] {
		t.Fatalf("leftovers: %v", left)
	}
	for range 2 {
		if err := p.Remove(within(t, time.Minute), left[0]); err != nil {
			t.Fatal(err)
		}
	}
	nothingLeft(t, p, r.Labels[sandbox.LabelRun])
}

// volumesIn returns the leftovers that are volumes: the network is shared with
// whatever else runs on this engine.
func volumesIn(t testing.TB, p *Provider, labels map[string]string) []Leftover {
	t.Helper()
	all, err := p.Leftovers(within(t, time.Minute), labels)
	if err != nil {
		t.Fatal(err)
	}
	var left []Leftover
	for _, l := range all {
		if l.Kind == LeftoverVolume {
			left = append(left, l)
		}
	}
	return left
}

// A private directory of the user, with a mount below another, is the agent's to
// use, and what it makes is the user's (C7).
func TestBinds(t *testing.T) {
	eachTransport(t, func(t *testing.T, p *Provider) {
		r := newRequest(t, baseImage(t, p), networkLink)
		outer, inner := t.TempDir(), t.TempDir()
		for _, dir := range []string{outer, inner} {
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(dir, agentID(), agentID()); err != nil {
				t.Fatal(err)
			}
		}
		r.Mounts = []sandbox.Mount{
			{Kind: sandbox.MountBind, Source: outer, Target: "/tmp/workspace/repos/o/r"},
			{Kind: sandbox.MountBind, Source: inner, Target: "/tmp/workspace/repos/o/r/inner", ReadOnly: true},
		}
		c := mustConnect(t, mustCreate(t, p, r), r.key)
		wantSh(t, c, "cd /tmp/workspace/repos/o/r && echo made >file && touch inner/x 2>/dev/null || echo read-only", "read-only")
		out, err := exec.Command("stat", "-c", "%u %s", outer+"/file").Output()
		if err != nil || strings.TrimSpace(string(out)) != strconv.Itoa(agentID())+" 5" {
			t.Errorf("the file outside: %q, %v", out, err)
		}
	})
}

// A source that is missing is an error, never an empty directory of root (C7).
func TestMissingMountSource(t *testing.T) {
	for _, kind := range []sandbox.MountKind{sandbox.MountBind, sandbox.MountOverlay} {
		t.Run(string(kind), func(t *testing.T) {
			missing := filepath.Join(t.TempDir(), "missing")
			r := newRequest(t, "any", networkLink)
			r.Mounts = []sandbox.Mount{{Kind: kind, Source: missing, Target: "/x", Upper: t.TempDir(), Work: t.TempDir()}}
			_, err := New(Options{Host: "unix:///nowhere"}).Create(t.Context(), r.Spec)
			if errs.KindOf(err) != errs.Usage || !strings.Contains(err.Error(), missing) {
				t.Errorf("Create: %v", err)
			}
			if _, err := os.Stat(missing); !os.IsNotExist(err) {
				t.Error("the source was made")
			}
		})
	}
}
