package signing

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/Insights/insightscli/internal/errs"
)

// The modes of a tree that are treated in their own way.
const (
	modeNone   = "000000"
	modeFile   = "100644"
	modeLink   = "120000"
	modeTree   = "040000"
	modeModule = "160000"
)

// change is a path that differs between two trees. Renames are a deletion and an
// addition.
type change struct {
	path        string
	was, mode   string // modeNone where there is none
	wasOID, oid string
}

func (c *change) deleted() bool { return c.mode == modeNone }

// kind is what GitHub calls the thing behind a mode.
func kind(mode string) string {
	switch mode {
	case modeModule:
		return "commit"
	case modeTree:
		return "tree"
	}
	return "blob"
}

// changes are the differences between two trees or commits.
func (g *git) changes(ctx context.Context, bare, from, to string) ([]change, error) {
	var out answer
	err := g.run(ctx, call{bare: bare, out: &out, args: []string{
		"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", from, to, "--",
	}})
	if err := out.instead(err); err != nil {
		return nil, fmt.Errorf("compare trees: %w", err)
	}
	fields := strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00")
	var all []change
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("compare trees: git says %q", fields[i])
		}
		all = append(all, change{path: fields[i+1], was: f[0], mode: f[1], wasOID: f[2], oid: f[3]})
	}
	return all, nil
}

// checkPaths refuses names that GitHub's API has no way to say.
func checkPaths(op string, all []change) error {
	for _, c := range all {
		if !utf8.ValidString(c.path) {
			return errs.New(op, errs.Conflict, "rename the file", "the name %q is not UTF-8: GitHub's API cannot carry it", c.path)
		}
	}
	return nil
}

// clash reports whether a file took the place of a folder or a folder that of a file.
func clash(all []change) bool {
	gone := map[string]bool{}    // files that are no more
	emptied := map[string]bool{} // folders that lost a file
	for _, c := range all {
		if c.deleted() {
			gone[c.path] = true
			eachFolder(c.path, func(dir string) { emptied[dir] = true })
		}
	}
	found := false
	for _, c := range all {
		if c.deleted() {
			continue
		}
		found = found || emptied[c.path]
		eachFolder(c.path, func(dir string) { found = found || gone[dir] })
	}
	return found
}

func eachFolder(path string, f func(dir string)) {
	for i := strings.IndexByte(path, '/'); i >= 0; {
		f(path[:i])
		next := strings.IndexByte(path[i+1:], '/')
		if next < 0 {
			return
		}
		i += next + 1
	}
}

// blob is a file's content that GitHub may not have.
type blob struct {
	oid, path string
	size      int64
}

// newBlobs are the contents that came with changes, one set after the other.
func (g *git) newBlobs(ctx context.Context, bare string, sets ...[]change) ([]blob, error) {
	seen := map[string]bool{}
	var blobs []blob
	for _, all := range sets {
		for _, c := range all {
			seen[c.wasOID] = true // GitHub has it: renamed, or moved away and copied
		}
		for _, c := range all {
			if c.deleted() || c.mode == modeModule || seen[c.oid] {
				continue
			}
			seen[c.oid] = true
			blobs = append(blobs, blob{oid: c.oid, path: c.path})
		}
	}
	return blobs, g.measure(ctx, bare, blobs)
}

// measure finds out how long contents are.
func (g *git) measure(ctx context.Context, bare string, blobs []blob) error {
	if len(blobs) == 0 {
		return nil
	}
	var out bytes.Buffer
	err := g.run(ctx, call{bare: bare, in: names(blobs), out: &out, args: []string{
		"cat-file", "--batch-check=%(objecttype) %(objectsize)",
	}})
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if err == nil && len(lines) != len(blobs) {
		err = fmt.Errorf("git answers %d times", len(lines))
	}
	if err != nil {
		return fmt.Errorf("look at %d files: %w", len(blobs), err)
	}
	for i, line := range lines {
		size, isBlob := strings.CutPrefix(line, "blob ")
		if blobs[i].size, err = strconv.ParseInt(size, 10, 64); !isBlob || err != nil {
			return fmt.Errorf("the content of %q is not there", blobs[i].path)
		}
	}
	return nil
}

// names are the objects of blobs, one on each line.
func names(blobs []blob) *strings.Reader {
	var ask strings.Builder
	for _, b := range blobs {
		ask.WriteString(b.oid + "\n")
	}
	return strings.NewReader(ask.String())
}

// contents reads blobs that were measured.
func (g *git) contents(ctx context.Context, bare string, blobs []blob) ([][]byte, error) {
	if len(blobs) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	if err := g.run(ctx, call{bare: bare, in: names(blobs), out: &out, args: []string{"cat-file", "--batch=%(objectname)"}}); err != nil {
		return nil, fmt.Errorf("read %d files: %w", len(blobs), err)
	}
	all := make([][]byte, 0, len(blobs))
	for _, b := range blobs {
		line, err := out.ReadString('\n')
		data := out.Next(int(b.size) + 1)
		if err != nil || strings.TrimSuffix(line, "\n") != b.oid || int64(len(data)) != b.size+1 {
			return nil, fmt.Errorf("the content of %q cannot be read", b.path)
		}
		all = append(all, data[:b.size])
	}
	return all, nil
}
