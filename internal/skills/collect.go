package skills

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// collect finds the skills of the options, sorted by name, and says what it left out.
func collect(o Options) (found []folder, warnings []string, err error) {
	c := collection{byName: map[string]folder{}, seen: map[string]bool{}}
	for _, source := range o.Sources {
		c.source(source)
	}
	base := c.byName
	if o.Overlay != "" {
		c.byName = map[string]folder{}
		c.source(o.Overlay)
		for name, skill := range c.byName {
			base[name] = skill
		}
	}
	for _, skill := range base {
		found = append(found, skill)
	}
	slices.SortFunc(found, func(a, b folder) int { return strings.Compare(a.Name, b.Name) })
	return found, c.warnings, c.err()
}

// collection goes through all sources, whatever is wrong with one of them.
type collection struct {
	byName   map[string]folder
	seen     map[string]bool // folders, so that patterns may overlap
	warnings []string
	errors   []error
}

func (c *collection) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// err is the first error, and how many more there are: one line.
func (c *collection) err() error {
	switch len(c.errors) {
	case 0:
		return nil
	case 1:
		return c.errors[0]
	}
	return fmt.Errorf("%w (and %d more like it)", c.errors[0], len(c.errors)-1)
}

func (c *collection) source(pattern string) {
	dirs := []string{pattern}
	if strings.ContainsAny(pattern, "*?[") {
		var err error
		if dirs, err = filepath.Glob(pattern); err != nil {
			c.errors = append(c.errors, fmt.Errorf("source of skills %q: %w", pattern, err))
			return
		}
		if len(dirs) == 0 {
			c.warn("nothing matches the source of skills %q", pattern)
		}
	}
	for _, dir := range dirs {
		if err := c.dir(dir); err != nil {
			c.errors = append(c.errors, err)
		}
	}
}

// dir takes one folder: a skill, or a folder of skills.
func (c *collection) dir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("source of skills: %w", err)
	}
	if isSkill(dir) {
		return c.skill(dir)
	}
	skills := 0
	for _, e := range entries {
		sub := filepath.Join(dir, e.Name())
		info, err := os.Stat(sub) // a link to a skill elsewhere is the user's own doing
		switch {
		case ignored(e.Name()), err == nil && !info.IsDir():
		case err != nil:
			c.errors = append(c.errors, fmt.Errorf("source of skills: %w", err))
		case !isSkill(sub):
			c.warn("%s has no SKILL.md and is no skill", sub)
		default:
			skills++
			if err := c.skill(sub); err != nil {
				c.errors = append(c.errors, err)
			}
		}
	}
	if skills == 0 {
		c.warn("%s has no skills", dir)
	}
	return nil
}

// skill takes one skill folder.
func (c *collection) skill(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return fmt.Errorf("skill %s: %w", dir, err)
	}
	if c.seen[real] {
		return nil
	}
	c.seen[real] = true
	skill, err := read(real)
	if err != nil {
		return fmt.Errorf("skill %s: %w", dir, err)
	}
	if other, taken := c.byName[skill.Name]; taken {
		return fmt.Errorf("two skills have the name %q: %s and %s", skill.Name, other.Source, skill.Source)
	}
	c.byName[skill.Name] = skill
	return nil
}

func isSkill(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, manifestName))
	return !errors.Is(err, fs.ErrNotExist)
}

// ignored are names that no bundle holds: traces of tools and of editors.
func ignored(name string) bool {
	return strings.HasPrefix(name, ".") || name == "__pycache__"
}
