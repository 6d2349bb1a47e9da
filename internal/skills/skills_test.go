package skills

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
)

// world has sources and a state directory.
type world struct {
	t    *testing.T
	root string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t, t.TempDir()}
}

func (w *world) path(name string) string { return filepath.Join(w.root, filepath.FromSlash(name)) }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(name, content string) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.path(name)), 0o755))
	w.must(os.WriteFile(w.path(name), []byte(content), 0o644))
}

// skill writes a skill of the folder's name.
func (w *world) skill(dir, description string) {
	w.t.Helper()
	w.write(dir+"/SKILL.md", "---\nname: "+filepath.Base(dir)+"\ndescription: "+description+"\n---\nDo it.\n")
}

func (w *world) options(sources ...string) Options {
	o := Options{Dir: w.path("state")}
	for _, s := range sources {
		o.Sources = append(o.Sources, w.path(s))
	}
	return o
}

func (w *world) build(o Options) Bundle {
	w.t.Helper()
	b, err := Build(w.t.Context(), o)
	w.must(err)
	return b
}

func names(b Bundle) string {
	var all []string
	for _, s := range b.Skills {
		all = append(all, s.Name)
	}
	return strings.Join(all, " ")
}

// disk is every file below dir with its content and time.
func (w *world) disk(dir string) map[string]string {
	w.t.Helper()
	files := map[string]string{}
	w.must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		content := []byte("dir")
		if !d.IsDir() {
			content, err = os.ReadFile(path)
		}
		files[filepath.ToSlash(name)] = info.ModTime().String() + " " + string(content)
		return err
	}))
	return files
}

func TestBuild(t *testing.T) {
	w := newWorld(t)
	w.skill("products/a/skills/query-data", "Queries.")
	w.write("products/a/skills/query-data/scripts/deep/run.sh", "#!/bin/sh\n")
	w.must(os.Chmod(w.path("products/a/skills/query-data/scripts/deep/run.sh"), 0o700))
	w.skill("products/b/skills/make-chart", "\"Charts: all of them\"")
	w.write("products/b/skills/make-chart/__pycache__/x.pyc", "x")
	w.write("products/b/skills/make-chart/.DS_Store", "x")
	w.write("products/b/skills/README.md", "not a skill")
	w.skill("alone", "A folder that is a skill itself.")

	b := w.build(w.options("products/*/skills", "alone", "products/a/skills"))
	if names(b) != "alone make-chart query-data" || len(b.Warnings) > 0 {
		t.Fatalf("skills %q, warnings %q", names(b), b.Warnings)
	}
	if b.Dir != filepath.Join(w.path("state"), "skills", b.Hash) || b.Skills[1].Description != "Charts: all of them" {
		t.Errorf("bundle %+v", b)
	}
	got := slices.Sorted(maps.Keys(w.disk(b.Dir)))
	want := []string{
		".", "plugin.json", "skills", "skills/alone", "skills/alone/SKILL.md", "skills/make-chart", "skills/make-chart/SKILL.md",
		"skills/query-data", "skills/query-data/SKILL.md", "skills/query-data/scripts", "skills/query-data/scripts/deep",
		"skills/query-data/scripts/deep/run.sh",
	}
	if !slices.Equal(got, want) {
		t.Errorf("files %q", got)
	}
	var plugin map[string]string
	content, err := os.ReadFile(filepath.Join(b.Dir, "plugin.json"))
	w.must(err)
	w.must(json.Unmarshal(content, &plugin))
	if plugin["name"] != "insights" || plugin["version"] != "1.0.0" || plugin["description"] == "" {
		t.Errorf("plugin.json: %s", content)
	}
	current, err := Current(w.path("state"))
	if err != nil || current.Hash != b.Hash || !slices.Equal(current.Skills, b.Skills) {
		t.Errorf("current %+v, %v", current, err)
	}
}

// The agent may have another uid than the user: a umask must not lock it out.
func TestModesInABundle(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no modes")
	}
	w := newWorld(t)
	w.skill("s/one", "x")
	w.write("s/one/run.sh", "")
	w.must(os.Chmod(w.path("s/one/run.sh"), 0o700))
	w.must(os.Chmod(w.path("s/one/SKILL.md"), 0o600))
	b := w.build(w.options("s"))
	for name, want := range map[string]fs.FileMode{".": 0o755, "skills": 0o755, "skills/one": 0o755, "skills/one/run.sh": 0o755, "skills/one/SKILL.md": 0o644, "plugin.json": 0o644} {
		info, err := os.Stat(filepath.Join(b.Dir, name))
		w.must(err)
		if info.Mode().Perm() != want {
			t.Errorf("%s: %v", name, info.Mode())
		}
	}
}

func TestUnchangedWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.skill("s/one", "x")
	first := w.build(w.options("s"))
	before := w.disk(w.path("state"))
	if again := w.build(w.options("s")); again.Hash != first.Hash {
		t.Errorf("another hash")
	}
	if after := w.disk(w.path("state")); !maps.Equal(before, after) {
		t.Errorf("before %v\nafter %v", before, after)
	}
}

// Everything that an agent can see of a skill is in the hash.
func TestWhatChangesTheHash(t *testing.T) {
	w := newWorld(t)
	w.skill("s/one", "x")
	w.write("s/one/a", "1")
	seen := map[string]string{w.build(w.options("s")).Hash: "the beginning"}
	steps := []struct {
		name string
		do   func()
	}{
		{"content", func() { w.write("s/one/a", "2") }},
		{"a name", func() { w.must(os.Rename(w.path("s/one/a"), w.path("s/one/b"))) }},
		{"a mode", func() { w.must(os.Chmod(w.path("s/one/b"), 0o755)) }},
		{"a new file", func() { w.write("s/one/c/d", "") }},
		{"a new skill", func() { w.skill("s/two", "x") }},
	}
	for _, step := range steps {
		if step.name == "a mode" && runtime.GOOS == "windows" {
			continue
		}
		step.do()
		h := w.build(w.options("s")).Hash
		if other, taken := seen[h]; taken {
			t.Errorf("after %s the hash is that after %s", step.name, other)
		}
		seen[h] = step.name
	}
}

func TestBadSkills(t *testing.T) {
	long := strings.Repeat("x", 1025)
	for name, tt := range map[string]struct{ text, says string }{
		"no front matter":   {"# Title\n", `no front matter: the first line is not "---"`},
		"an empty file":     {"", "no front matter"},
		"not closed":        {"---\nname: one\ndescription: x\n", `a line "---" is missing`},
		"no name":           {"---\ndescription: x\n---\n", "has no name"},
		"no description":    {"---\nname: one\ndescription: '  '\n---\n", "has no description"},
		"a bad name":        {"---\nname: One_Two\ndescription: x\n---\n", `the name "One_Two" is not made of`},
		"a name with /":     {"---\nname: ../x\ndescription: x\n---\n", "is not made of"},
		"a long name":       {"---\nname: " + long[:65] + "\ndescription: x\n---\n", "65 characters, and 64 is the most"},
		"a long text":       {"---\nname: one\ndescription: " + long + "\n---\n", "1025 characters, and 1024 is the most"},
		"bad YAML":          {"---\nname: [\n---\n", "front matter: yaml: "},
		"YAML of two kinds": {"---\n- a\n- b\n---\n", "front matter: yaml: "},
		"a list as name":    {"---\nname: [a]\ndescription: x\n---\n", "front matter: yaml: "},
		"no text":           {"---\nname: \xff\n---\n", "not UTF-8"},
		"a huge file":       {"---\nname: one\ndescription: x\n---\n" + strings.Repeat("x", 1<<20), "larger than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("s/one/SKILL.md", tt.text)
			_, err := Build(t.Context(), w.options("s"))
			if err == nil || !strings.Contains(err.Error(), tt.says) || errs.KindOf(err) != errs.Config {
				t.Fatalf("it says %v", err)
			}
			if !strings.Contains(err.Error(), w.path("s/one")) || strings.Contains(err.Error(), "\n") {
				t.Errorf("not one line with the folder: %v", err)
			}
		})
	}
}

func TestFrontMatterAsPeopleWriteIt(t *testing.T) {
	for name, text := range map[string]string{
		"lines of Windows": "\ufeff---\r\nname: one\r\ndescription: what it does\r\n---\r\nDo it.\r\n",
		"folded, more keys": "--- \nname: 'one'\ndescription: >-\n  what\n  it does\nlicense: MIT\nmetadata:\n  a: [b]\n" +
			"allowed-tools: Bash\n---\n---\n",
	} {
		w := newWorld(t)
		w.write("s/another-folder/SKILL.md", text)
		if b := w.build(w.options("s")); len(b.Skills) != 1 || b.Skills[0].Name != "one" || b.Skills[0].Description != "what it does" {
			t.Errorf("%s: %+v", name, b.Skills)
		}
	}
}

func TestLinksInASkill(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("making links needs a privilege")
	}
	for name, tt := range map[string]struct{ link, target, says string }{
		"out of the folder": {"s/one/x", "../../secret", "leads out of the folder or nowhere"},
		"absolute":          {"s/one/x", "/etc/hostname", "leads out of the folder or nowhere"},
		"nowhere":           {"s/one/x", "none", "leads out of the folder or nowhere"},
		"a folder":          {"s/one/x", ".", "link to a folder"},
		"within":            {"s/one/x", "SKILL.md", ""},
	} {
		w := newWorld(t)
		w.write("secret", "x")
		w.skill("s/one", "x")
		w.must(os.Symlink(tt.target, w.path(tt.link)))
		b, err := Build(t.Context(), w.options("s"))
		if tt.says == "" {
			info, err2 := os.Lstat(filepath.Join(b.Dir, "skills/one/x"))
			if err != nil || err2 != nil || !info.Mode().IsRegular() {
				t.Errorf("%s: %v, %v", name, err, err2)
			}
		} else if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDuplicatesAreNamed(t *testing.T) {
	w := newWorld(t)
	w.skill("a/one", "x")
	w.skill("b/one", "x")
	w.write("b/two/SKILL.md", "no")
	_, err := Build(t.Context(), w.options("a", "b"))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{`two skills have the name "one"`, filepath.Join("a", "one"), filepath.Join("b", "one"), "and 1 more"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}

func TestOverlay(t *testing.T) {
	w := newWorld(t)
	w.skill("s/one", "old")
	w.skill("s/two", "kept")
	w.skill("mine/one", "new")
	w.skill("mine/three", "added")
	o := w.options("s")
	o.Overlay = w.path("mine")
	b := w.build(o)
	if names(b) != "one three two" || b.Skills[0].Description != "new" {
		t.Errorf("%+v", b.Skills)
	}
}

func TestSourcesWithoutSkills(t *testing.T) {
	w := newWorld(t)
	w.write("s/docs/README.md", "x")
	w.must(os.MkdirAll(w.path("empty/.git"), 0o755))
	b := w.build(w.options("s", "empty", "none/*"))
	all := strings.Join(b.Warnings, "; ")
	for _, part := range []string{"docs has no SKILL.md", "empty has no skills", "nothing matches"} {
		if !strings.Contains(all, part) {
			t.Errorf("%q is not in %q", part, all)
		}
	}
	if len(b.Skills) != 0 || b.Hash == "" {
		t.Errorf("%+v", b)
	}
	if b := w.build(w.options()); len(b.Warnings) != 1 {
		t.Errorf("no sources: %q", b.Warnings)
	}
	if _, err := Build(t.Context(), w.options("nowhere")); errs.KindOf(err) != errs.Config || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a source that is not there: %v", err)
	}
}

func TestEnsure(t *testing.T) {
	w := newWorld(t)
	if b, err := Ensure(t.Context(), w.options()); err != nil || b.Hash != "" {
		t.Errorf("without sources: %+v, %v", b, err)
	}
	w.write("s/one/SKILL.md", "no")
	if _, err := Ensure(t.Context(), w.options("s")); errs.KindOf(err) != errs.Config || errs.HintOf(err) != "insightscli skills build" {
		t.Errorf("nothing was ever built: %v", err)
	}
	w.skill("s/one", "x")
	good, err := Ensure(t.Context(), w.options("s"))
	w.must(err)
	w.write("s/one/SKILL.md", "no")
	b, err := Ensure(t.Context(), w.options("s"))
	if err != nil || b.Hash != good.Hash || names(b) != "one" {
		t.Fatalf("%+v, %v", b, err)
	}
	if len(b.Warnings) != 1 || !strings.Contains(b.Warnings[0], "no front matter") {
		t.Errorf("warnings %q", b.Warnings)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.skill("s/one", "y")
	if _, err := Ensure(ctx, w.options("s")); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestCurrentWithoutOne(t *testing.T) {
	w := newWorld(t)
	if _, err := Current(w.path("state")); errs.KindOf(err) != errs.NotFound {
		t.Errorf("never built: %v", err)
	}
	w.skill("s/one", "x")
	b := w.build(w.options("s"))
	for _, record := range []string{"", "{}", `{"hash":"../../etc"}`} {
		w.write("state/skills/current", record)
		if _, err := Current(w.path("state")); err == nil {
			t.Errorf("record %q was accepted", record)
		}
		if again := w.build(w.options("s")); again.Hash != b.Hash {
			t.Errorf("after record %q: %+v", record, again)
		}
	}
	w.must(os.RemoveAll(b.Dir))
	if _, err := Current(w.path("state")); errs.KindOf(err) != errs.NotFound {
		t.Errorf("somebody removed it: %v", err)
	}
	w.build(w.options("s"))
	if _, err := Current(w.path("state")); err != nil {
		t.Error(err)
	}
}

// A build that died between any two of its steps leaves the bundle of before, and does
// not disturb the next one.
func TestCrashBetweenSteps(t *testing.T) {
	w := newWorld(t)
	w.skill("s/one", "x")
	old := w.build(w.options("s"))
	w.skill("s/one", "y")
	next, err := pack(t.Context(), mustCollect(t, w.options("s")), "")
	w.must(err)
	for name, leave := range map[string]string{
		"while it was copied":       "state/skills/.new-123/skills/one/SKILL.md",
		"a half removed bundle":     "state/skills/" + next + "/skills/one/other",
		"before the record renamed": "state/skills/current.new",
	} {
		w.write(leave, "half")
		if b, err := Current(w.path("state")); err != nil || b.Hash != old.Hash {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
	b := w.build(w.options("s"))
	if b.Hash != next || names(b) != "one" {
		t.Errorf("%+v", b)
	}
	if _, err := os.Stat(filepath.Join(b.Dir, "skills/one/other")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the half bundle was taken: %v", err)
	}
	// A bundle that was renamed, and then the power went: it is used as it is.
	w.must(os.Remove(w.path("state/skills/current")))
	before := w.disk(b.Dir)
	if again := w.build(w.options("s")); again.Hash != b.Hash || !maps.Equal(before, w.disk(b.Dir)) {
		t.Errorf("it was written again")
	}
}

func mustCollect(t *testing.T, o Options) []folder {
	t.Helper()
	found, _, err := collect(o)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestPrune(t *testing.T) {
	w := newWorld(t)
	var hashes []string
	for _, d := range []string{"used", "old", "young", "now"} {
		w.skill("s/one", d)
		hashes = append(hashes, w.build(w.options("s")).Hash)
	}
	long := time.Now().Add(-25 * time.Hour)
	w.write("state/skills/.new-1/x", "")
	for _, name := range []string{hashes[0], hashes[1], hashes[3], ".new-1"} {
		w.must(os.Chtimes(w.path("state/skills/"+name), long, long))
	}
	o := w.options("s")
	o.Keep = hashes[:1]
	w.skill("s/one", "newest")
	b := w.build(o)
	for i, want := range map[int]bool{0: true, 1: false, 2: true, 3: false} {
		_, err := os.Stat(w.path("state/skills/" + hashes[i]))
		if (err == nil) != want {
			t.Errorf("bundle %d: %v", i, err)
		}
	}
	if _, err := os.Stat(w.path("state/skills/.new-1")); err == nil {
		t.Error("what a dead build left is still there")
	}
	if _, err := os.Stat(b.Dir); err != nil {
		t.Error(err)
	}
}

func TestBuildsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.skill("s/one", "x")
	o, done := w.options("s"), make(chan error)
	for range 8 {
		go func() {
			_, err := Build(t.Context(), o)
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestWriteTar(t *testing.T) {
	w := newWorld(t)
	w.skill("s/one", "x")
	w.write("s/one/a/run.sh", "go")
	w.must(os.Chmod(w.path("s/one/a/run.sh"), 0o755))
	b := w.build(w.options("s"))
	var first, second bytes.Buffer
	w.must(b.WriteTar(&first))
	w.must(b.WriteTar(&second))
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two streams of one bundle differ")
	}
	var got []string
	for r := tar.NewReader(&first); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		w.must(err)
		content, err := io.ReadAll(r)
		w.must(err)
		got = append(got, h.Name)
		if h.Name == "one/a/run.sh" && (string(content) != "go" || runtime.GOOS != "windows" && h.Mode != 0o755) {
			t.Errorf("%q, mode %o", content, h.Mode)
		}
	}
	if want := []string{"one/", "one/SKILL.md", "one/a/", "one/a/run.sh"}; !slices.Equal(got, want) {
		t.Errorf("entries %q", got)
	}
}
