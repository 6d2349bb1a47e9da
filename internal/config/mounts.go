package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// RepoMount is one entry of SANDBOX_REPO_MOUNT_MAP.
type RepoMount struct {
	Org, Name string // lower case
	Path      string // absolute; whether it exists is asked when the entry is used
}

// ParseMounts reads a repository mount map, "org/repo:/path,org2/repo2:~/x". An
// entry ends at the next comma and its key at the first colon, so a path may hold
// colons and spaces but no comma. Blank entries are skipped, as is an entry that
// repeats another; everything else that is not understood is an error that names
// the entry.
func ParseMounts(text, home string) ([]RepoMount, error) {
	var mounts []RepoMount
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		m, err := parseMount(entry, home)
		if err != nil {
			return nil, fmt.Errorf("entry %q %w", entry, err)
		}
		switch old, found := FindMount(mounts, m.Org, m.Name); {
		case !found:
			mounts = append(mounts, m)
		case old.Path != m.Path:
			return nil, fmt.Errorf("entry %q gives %s/%s a second path beside %s", entry, m.Org, m.Name, old.Path)
		}
	}
	return mounts, nil
}

// FindMount returns the entry for a repository; letter case does not count.
func FindMount(mounts []RepoMount, org, name string) (RepoMount, bool) {
	for _, m := range mounts {
		if strings.EqualFold(m.Org, org) && strings.EqualFold(m.Name, name) {
			return m, true
		}
	}
	return RepoMount{}, false
}

func parseMount(entry, home string) (RepoMount, error) {
	key, path, ok := strings.Cut(entry, ":")
	if !ok {
		return RepoMount{}, fmt.Errorf("has no path; write org/repo:/path")
	}
	org, name, ok := strings.Cut(strings.ToLower(strings.TrimSpace(key)), "/")
	if !ok || !validRepoWord(org) || !validRepoWord(name) {
		return RepoMount{}, fmt.Errorf("does not begin with org/repo")
	}
	path, err := absolute(strings.TrimSpace(path), home)
	if err != nil {
		return RepoMount{}, err
	}
	return RepoMount{Org: org, Name: name, Path: path}, nil
}

// validRepoWord accepts what GitHub does; the words become path elements.
func validRepoWord(s string) bool {
	if s == "" || s == "." || s == ".." || strings.HasPrefix(s, "-") {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	}) < 0
}

// absolute expands a leading ~ and wants an absolute path: what a relative one is
// relative to would depend on where the command is started.
func absolute(path, home string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("has no path; write org/repo:/path")
	}
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		if rest != "" && rest[0] != '/' && rest[0] != filepath.Separator {
			return "", fmt.Errorf("names the home of another user, which is not supported")
		}
		if home == "" {
			return "", fmt.Errorf("uses ~, but HOME is not set")
		}
		path = home + rest
	}
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("holds a NUL byte")
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("has a relative path; write an absolute one or ~/…")
	}
	return filepath.Clean(path), nil
}
