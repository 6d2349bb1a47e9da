// Package skills makes bundles of skill folders for agents. A skill is a folder with a
// SKILL.md that begins with YAML front matter; a bundle is the plugin "insights" that
// holds all skills of a machine's sources, under the hash of what is in it.
//
// It does not install anything: who provisions a sandbox mounts a bundle, or takes it
// as a tar stream.
//
// # State
//
// All is below skills/ of the state directory: one directory for each bundle, and the
// record `current` that names the last good one. A bundle is written beside, synced and
// renamed, and the record after it, so that a crash leaves the bundle of before; builds
// of several processes wait for each other. A bundle never changes.
//
// go.yaml.in/yaml/v3 reads the front matter, which is YAML with all its quotes and
// folded lines.
package skills

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/filelock"
)

// Options say what a bundle is made of.
type Options struct {
	// Sources are folders of skill folders, or skill folders themselves; patterns of
	// filepath.Match are allowed.
	Sources []string
	// Overlay is a folder of skill folders that replace those of the same name and are
	// added to the others; "" is none.
	Overlay string
	Dir     string   // the state directory
	Keep    []string // hashes of bundles that running sandboxes use
}

// Bundle is a set of skills on the disk.
type Bundle struct {
	Hash     string
	Dir      string // holds plugin.json and skills/NAME; nothing in it changes any more
	Skills   []Skill
	Warnings []string // of the build: what was found and is no skill
}

// Skill is one skill of a bundle.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Source      string `json:"source"` // the folder that it was made of
}

// The files of a bundle and of the directory of all bundles.
const (
	pluginName  = "plugin.json"
	skillsName  = "skills"
	currentName = "current"
	lockName    = "lock"
	tempPrefix  = ".new-"
)

// hint is the command that shows what is wrong and repairs it.
const hint = "insightscli skills build"

// Build makes the bundle of the sources, unless the last one is the same, and records it
// as the current one. Its errors name the folder or the file that is wrong.
func Build(ctx context.Context, o Options) (Bundle, error) {
	const op = "skills.Build"
	home := filepath.Join(o.Dir, skillsName)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return Bundle{}, fmt.Errorf("build skills: %w", err)
	}
	lock, err := filelock.LockPath(ctx, filepath.Join(home, lockName), filelock.Exclusive)
	if err != nil {
		return Bundle{}, fmt.Errorf("build skills: %w", err)
	}
	defer func() { _ = lock.Close() }()
	found, warnings, err := collect(o)
	if err != nil {
		return Bundle{}, errs.New(op, errs.Config, "", "%w", err)
	}
	b, err := store(ctx, home, found, o.Keep)
	if err != nil {
		return Bundle{}, errs.New(op, errs.KindOf(err), "", "build skills: %w", err)
	}
	if len(o.Sources) == 0 && o.Overlay == "" {
		warnings = append(warnings, "no source of skills is set")
	}
	b.Warnings = warnings
	return b, nil
}

// Ensure is Build for those who can do with what was built before: a build that fails
// leaves the last good bundle, with a warning that says why. Without sources it is the
// zero Bundle. The error is of kind errs.Config when there is no bundle at all.
func Ensure(ctx context.Context, o Options) (Bundle, error) {
	if len(o.Sources) == 0 && o.Overlay == "" {
		return Bundle{}, nil
	}
	b, failure := Build(ctx, o)
	if failure == nil || ctx.Err() != nil {
		return b, failure
	}
	b, err := Current(o.Dir)
	if err != nil {
		return Bundle{}, errs.New("skills.Ensure", errs.Config, hint, "there are no skills: %w", failure)
	}
	b.Warnings = append(b.Warnings, fmt.Sprintf("the skills of before are used: %v", failure))
	return b, nil
}

// At is the bundle of that hash in a state directory, without a look at the disk.
func At(dir, hash string) Bundle {
	return Bundle{Hash: hash, Dir: filepath.Join(dir, skillsName, hash)}
}

// Current returns the last good bundle. The error is of kind errs.NotFound when there is
// none.
func Current(dir string) (Bundle, error) {
	home := filepath.Join(dir, skillsName)
	r, err := readRecord(home)
	if err == nil {
		_, err = os.Stat(filepath.Join(home, r.Hash, pluginName))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Bundle{}, errs.New("skills.Current", errs.NotFound, hint, "no skills have been built")
	case err != nil:
		return Bundle{}, errs.New("skills.Current", errs.Internal, hint, "read the skills: %w", err)
	}
	return r.bundle(home), nil
}

// WriteTar writes the skills as a tar stream of NAME/..., for the directories in which
// agents look for skills. It is the same for the same bundle.
func (b Bundle) WriteTar(w io.Writer) error {
	out := tar.NewWriter(w)
	if b.Dir == "" {
		return out.Close() // no bundle
	}
	root := os.DirFS(filepath.Join(b.Dir, skillsName))
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		return writeEntry(out, root, name, d)
	})
	if err != nil {
		return fmt.Errorf("pack skills: %w", err)
	}
	return out.Close()
}

func writeEntry(out *tar.Writer, root fs.FS, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: time.Unix(0, 0), Typeflag: tar.TypeDir}
	if d.IsDir() {
		h.Name = path.Clean(name) + "/"
		return out.WriteHeader(h)
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(out, f)
	return err
}
