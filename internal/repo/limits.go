package repo

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// maxNamed is how many paths are named where there are more.
const maxNamed = 3

// limits tells what of a commit a sandbox does not get: git alone does not have it.
func (c *Cache) limits(ctx context.Context, s *source, commit string) []string {
	var out []string
	if paths := c.submodulesOf(ctx, s, commit); len(paths) > 0 {
		out = append(out, "submodules are empty in the sandbox: "+named(paths))
	}
	if paths := c.lfsOf(ctx, s, commit); len(paths) > 0 {
		out = append(out, "files that Git LFS keeps are pointers in the sandbox: "+named(paths))
	}
	if s.mirror && s.partial() {
		out = append(out, "old versions of files over 128 KB are not in the sandbox; git fetches them when it is asked for them")
	}
	return out
}

// submodulesOf are the paths that .gitmodules names.
func (c *Cache) submodulesOf(ctx context.Context, s *source, commit string) []string {
	out, err := c.git.text(ctx, s.call("config", "-z", "--blob", commit+":.gitmodules", "--get-regexp", `^submodule\..*\.path$`))
	if err != nil {
		return nil // there are none
	}
	var paths []string
	for entry := range strings.SplitSeq(out, "\x00") {
		if _, path, ok := strings.Cut(entry, "\n"); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// lfsOf are the patterns of the files that Git LFS keeps, as the top of the tree names
// them.
func (c *Cache) lfsOf(ctx context.Context, s *source, commit string) []string {
	out, err := c.git.text(ctx, s.call("cat-file", "blob", commit+":.gitattributes"))
	if err != nil {
		return nil // there are none
	}
	var patterns []string
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) > 1 && !strings.HasPrefix(words[0], "#") && slices.Contains(words[1:], "filter=lfs") {
			patterns = append(patterns, words[0])
		}
	}
	return patterns
}

// named lists paths, the first of many.
func named(paths []string) string {
	more := ""
	if n := len(paths) - maxNamed; n > 0 {
		paths, more = paths[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	return clip(strings.Join(paths, ", ")) + more
}
