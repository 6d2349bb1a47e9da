package repo

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// gitDir describes a git directory of ours: a view on a source, or the bare
// repository of a run. It borrows objects and holds no configuration of the user's
// but how line ends are kept.
type gitDir struct {
	path    string
	format  string
	objects []string // borrowed
	shallow []byte
	config  map[string]string // section.key -> value, more of it
}

// lineEnds are the settings that decide what a file looks like in a checkout.
func (s *source) lineEnds() map[string]string {
	out := map[string]string{}
	for _, key := range []string{"core.autocrlf", "core.eol"} {
		if v := s.setting(key); v != "" {
			out[key] = v
		}
	}
	return out
}

// setting is a value of the repository's configuration, else of the user's.
func (s *source) setting(key string) string {
	if v, ok := s.config[key]; ok {
		return v
	}
	return s.global[key]
}

// shallowFile is the list of commits whose parents are not there, or nil.
func (s *source) shallowFile() []byte {
	if !s.shallow {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(s.commonDir, "shallow"))
	if err != nil {
		return nil
	}
	return raw
}

// make creates the directory, which must not exist.
func (d gitDir) make() error {
	if err := os.MkdirAll(filepath.Dir(d.path), 0o700); err != nil {
		return fmt.Errorf("make git directory: %w", err)
	}
	for _, dir := range []string{"", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "info"} {
		if err := os.Mkdir(filepath.Join(d.path, dir), 0o755); err != nil {
			return fmt.Errorf("make git directory: %w", err)
		}
	}
	config := map[string]string{"core.bare": "true"}
	for k, v := range d.config {
		config[k] = v
	}
	files := map[string]string{
		"HEAD":                    "ref: refs/heads/none\n",
		"config":                  configText(d.format, config),
		"objects/info/alternates": alternatesText(d.objects),
	}
	if len(d.shallow) > 0 {
		files["shallow"] = string(d.shallow)
	}
	return writeFiles(d.path, files)
}

func alternatesText(objects []string) string {
	var b strings.Builder
	for _, o := range objects {
		b.WriteString(quoteAlternate(o) + "\n")
	}
	return b.String()
}

// configText is a git configuration file. Keys are section.key or
// section.subsection.key; a subsection may hold dots.
func configText(format string, values map[string]string) string {
	all := map[string]string{"core.repositoryformatversion": "0"}
	if format == "sha256" {
		all["extensions.objectformat"] = "sha256"
	}
	for k, v := range values {
		all[k] = v
	}
	for k := range all {
		if strings.HasPrefix(k, "extensions.") {
			all["core.repositoryformatversion"] = "1"
		}
	}
	keys := make([]string, 0, len(all))
	for k := range all {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`)
	var b strings.Builder
	last := ""
	for _, k := range keys {
		dot := strings.LastIndexByte(k, '.')
		section, sub, has := strings.Cut(k[:dot], ".")
		if has {
			section += ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sub) + `"`
		}
		if section != last {
			fmt.Fprintf(&b, "[%s]\n", section)
			last = section
		}
		fmt.Fprintf(&b, "\t%s = \"%s\"\n", k[dot+1:], quote.Replace(all[k]))
	}
	return b.String()
}

// writeFiles writes small files below dir, making their directories. A name that
// ends in a slash is a directory.
func writeFiles(dir string, files map[string]string) error {
	for name, content := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(p, 0o755); err != nil {
				return fmt.Errorf("write %s: %w", name, err)
			}
			continue
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
