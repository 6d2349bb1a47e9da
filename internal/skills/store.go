package skills

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// keepTime is how long a bundle that is no longer current is kept: a run that is being
// provisioned may have chosen it.
const keepTime = 24 * time.Hour

// tempTime is when what a build left that died is removed.
const tempTime = time.Hour

// plugin is the content of plugin.json.
func plugin() []byte {
	b, _ := json.MarshalIndent(map[string]string{ // of strings: cannot fail
		"name": "insights", "description": "Skills of this machine's insightscli", "version": "1.0.0",
	}, "", "  ")
	return append(b, '\n')
}

// record is what the file `current` holds.
type record struct {
	Hash   string  `json:"hash"`
	Skills []Skill `json:"skills"`
}

func (r record) bundle(home string) Bundle {
	return Bundle{Hash: r.Hash, Dir: filepath.Join(home, r.Hash), Skills: r.Skills}
}

func readRecord(home string) (record, error) {
	var r record
	b, err := os.ReadFile(filepath.Join(home, currentName))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("%s: %w", currentName, err)
	}
	if raw, err := hex.DecodeString(r.Hash); err != nil || len(raw) != sha256.Size {
		return r, fmt.Errorf("%s names no bundle", currentName)
	}
	return r, nil
}

// store makes the bundle of found, unless it is there, and records it.
func store(ctx context.Context, home string, found []folder, keep []string) (Bundle, error) {
	want, err := pack(ctx, found, "")
	if err != nil {
		return Bundle{}, err
	}
	r := record{Hash: want}
	for _, skill := range found {
		r.Skills = append(r.Skills, skill.Skill)
	}
	_, err = os.Stat(filepath.Join(home, want, pluginName))
	there := err == nil
	last, err := readRecord(home)
	if there && err == nil && last.Hash == want && slices.Equal(last.Skills, r.Skills) {
		return last.bundle(home), nil
	}
	if !there {
		// What is written is what names it: a file may have changed since.
		if r.Hash, err = write(ctx, home, found); err != nil {
			return Bundle{}, err
		}
	}
	b, _ := json.Marshal(r) // of strings: cannot fail
	if err := replaceFile(filepath.Join(home, currentName), b); err != nil {
		return Bundle{}, err
	}
	prune(home, append(slices.Clone(keep), r.Hash))
	return r.bundle(home), nil
}

// write makes a bundle beside its place and moves it there.
func write(ctx context.Context, home string, found []folder) (string, error) {
	temp, err := os.MkdirTemp(home, tempPrefix)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(temp) }() // it is gone when all went well
	if err := mkdir(temp); err != nil {
		return "", err
	}
	name, err := pack(ctx, found, temp)
	if err != nil {
		return "", err
	}
	if err := writeFile(filepath.Join(temp, pluginName), plugin(), 0o644); err != nil {
		return "", err
	}
	if err := syncTree(temp); err != nil {
		return "", err
	}
	place := filepath.Join(home, name)
	if _, err := os.Stat(filepath.Join(place, pluginName)); err == nil {
		return name, nil
	}
	if err := os.RemoveAll(place); err != nil { // one without its plugin.json: nobody's
		return "", err
	}
	if err := os.Rename(temp, place); err != nil {
		return "", err
	}
	return name, syncDir(home)
}

// pack returns the hash of the skills, and copies them into the directory to unless it
// is empty.
func pack(ctx context.Context, found []folder, to string) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "insightscli skills 1\n%s", plugin())
	if to != "" {
		if err := mkdir(filepath.Join(to, skillsName)); err != nil {
			return "", err
		}
	}
	for i := range found {
		if err := packOne(ctx, &found[i], to, sum); err != nil {
			return "", fmt.Errorf("skill %s: %w", found[i].Source, err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func packOne(ctx context.Context, skill *folder, to string, sum hash.Hash) error {
	root, err := os.OpenRoot(skill.Source)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	place := ""
	if to != "" {
		place = filepath.Join(to, skillsName, skill.Name)
		for _, dir := range append([]string{"."}, skill.dirs()...) {
			if err := mkdir(filepath.Join(place, filepath.FromSlash(dir))); err != nil {
				return err
			}
		}
	}
	for _, f := range skill.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %v %d\n", skill.Name+"/"+f.path, f.executable, f.size)
		out := io.Writer(sum)
		var copied *os.File
		if place != "" {
			if copied, err = create(filepath.Join(place, filepath.FromSlash(f.path)), f.mode()); err != nil {
				return err
			}
			out = io.MultiWriter(sum, copied)
		}
		err := copyFile(out, root, f)
		if copied != nil {
			err = errors.Join(err, copied.Sync(), copied.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies exactly the bytes that f had when it was looked at.
func copyFile(out io.Writer, root *os.Root, f file) error {
	in, err := root.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	n, err := io.Copy(out, io.LimitReader(in, f.size+1))
	if err == nil && n != f.size {
		err = fmt.Errorf("%s changed while it was read", f.path)
	}
	return err
}

// prune removes the bundles that are neither kept nor young, and what builds left that
// died. It is only tidying: an error leaves something for the next time.
func prune(home string, keep []string) {
	entries, _ := os.ReadDir(home)
	for _, e := range entries {
		limit := keepTime
		switch {
		case !e.IsDir() || slices.Contains(keep, e.Name()):
			continue
		case strings.HasPrefix(e.Name(), tempPrefix):
			limit = tempTime
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > limit {
			_ = os.RemoveAll(filepath.Join(home, e.Name()))
		}
	}
}
