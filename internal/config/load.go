package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/viper"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
)

// LoadOptions say where Load looks.
type LoadOptions struct {
	Environ []string          // of the process, as os.Environ gives it
	Dir     string            // the working directory, absolute
	Flags   map[string]string // settings given on the command line: name → text
}

// layer is one source of values.
type layer struct {
	name    string // for people; a file as it is shown
	file    bool
	project bool // a file that may have come with a repository
	got     entries
}

// Load reads every source and returns the merged settings. Its errors have kind
// Config (Usage for a flag) and name the source.
func Load(o LoadOptions) (Config, error) {
	at := place{dir: o.Dir, home: homeDir(o.Environ)}
	layers, notices, err := readLayers(o, at)
	if err != nil {
		return Config{}, err
	}
	v := viper.New()
	values := make([]Value, 0, len(Settings()))
	for _, s := range Settings() {
		value, err := s.resolve(v, layers, at)
		if err != nil {
			return Config{}, err
		}
		values = append(values, value)
		if value.Over != "" {
			notices = append(notices, fmt.Sprintf("%s: %s is not taken from here, your own %s allows less", value.Over, s.Key, value.Source))
		}
	}
	c := Config{values: values}
	if err := v.UnmarshalExact(&c); err != nil {
		return Config{}, errs.New("config.Load", errs.Internal, "", "decode settings: %w", err)
	}
	c.Machine.Home, c.Notices = at.home, notices
	return c, nil
}

// readLayers returns the sources, the strongest first, and what is odd about them.
func readLayers(o LoadOptions, at place) (layers []layer, notices []string, err error) {
	dotenv := func(path string) (entries, error) {
		got, odd, err := readDotenv(path)
		for _, n := range odd {
			notices = append(notices, shown(o.Dir, path)+n)
		}
		return got, err
	}
	layers = []layer{
		{name: "flag", got: fromFlags(o.Flags)},
		{name: "environment", got: fromEnviron(o.Environ)},
	}
	files := []struct {
		path    string
		read    func(string) (entries, error)
		project bool
	}{
		{findUp(o.Dir, ".env.local"), dotenv, true},
		{findUp(o.Dir, ".env"), dotenv, true},
		{findUp(o.Dir, "insights.yaml"), readProjectYAML, true},
		{userConfig(o.Environ, at), readUserYAML, false},
	}
	for _, f := range files {
		if f.path == "" {
			continue
		}
		name := shown(o.Dir, f.path)
		got, err := f.read(f.path)
		if err != nil {
			return nil, nil, fileError(name, err)
		}
		layers = append(layers, layer{name: name, file: true, project: f.project, got: got})
	}
	return layers, notices, nil
}

// resolve hands the value of s from the strongest layer to viper.
func (s Setting) resolve(v *viper.Viper, layers []layer, at place) (Value, error) {
	value := Value{Setting: s, Text: s.Default, Source: sourceDefault}
	if s.Default != "" {
		parsed, err := s.parse(s.Default, at)
		if err != nil {
			return Value{}, errs.New("config.Load", errs.Internal, "", "default of %s: %w", s.Name, err)
		}
		v.SetDefault(s.viperKey(), parsed)
	}
	if l, over := s.winner(layers); l != nil {
		e := l.got[s.Name]
		parsed, err := s.parse(e.text, at)
		if err != nil {
			return Value{}, l.valueError(s, e, err)
		}
		v.Set(s.viperKey(), parsed)
		value.Text, value.Source, value.Project = e.text, l.source(s, e), l.project
		if over != nil {
			value.Over = over.source(s, over.got[s.Name])
		}
	}
	value.Text = s.shown(value.Text)
	return value, nil
}

// shown is the text of a setting as people are told it.
func (s Setting) shown(text string) string {
	switch {
	case s.Secret && text != "":
		return secret.Hidden
	case s.Type == TypeURL, s.Type == TypeOrigin:
		return HideUserinfo(text)
	case s.Type == TypeEndpoint:
		if _, err := parseURL(text); err != nil && text != "" {
			return secret.Hidden // whatever it is
		}
		return HideUserinfo(text)
	case s.mapping():
		return mappedNames(text)
	}
	return text
}

// source tells where an entry of this layer was found.
func (l layer) source(s Setting, e entry) string {
	switch {
	case l.file && e.line > 0:
		return fmt.Sprintf("%s:%d", l.name, e.line)
	case l.name == "flag":
		return "flag --" + s.Flag
	}
	return l.name
}

func (l layer) valueError(s Setting, e entry, err error) error {
	switch {
	case l.name == "flag":
		return errs.New("config.Load", errs.Usage, "", "--%s: %w", s.Flag, err)
	case l.file:
		return errs.New("config.Load", errs.Config, "correct the line", "%s: %s: %w", l.source(s, e), s.Name, err)
	}
	return errs.New("config.Load", errs.Config, "see 'insightscli help environment'", "%s: %w", s.Name, err)
}

func fileError(name string, err error) error {
	hint := "correct the file or remove it"
	if errors.Is(err, fs.ErrPermission) {
		hint = "make it readable for you: run 'chmod u+r' as its owner"
	}
	var at *lineError
	if errors.As(err, &at) && at.line > 0 {
		if strings.Contains(err.Error(), "unknown key") {
			hint = "known keys are " + strings.Join(Keys(), ", ")
		}
		if strings.Contains(err.Error(), "unknown variable") {
			hint = "see 'insightscli help environment'"
		}
		return errs.New("config.Load", errs.Config, hint, "%s:%d: %w", name, at.line, at.err)
	}
	return errs.New("config.Load", errs.Config, hint, "%s: %w", name, err)
}

func fromFlags(flags map[string]string) entries {
	got := entries{}
	for name, text := range flags {
		got[name] = entry{text: text}
	}
	return got
}

func fromEnviron(environ []string) entries {
	got := entries{}
	for _, s := range Settings() {
		text, given := lookup(environ, s.Name)
		if text == "" && strings.HasSuffix(s.Name, "_PROXY") {
			text, _ = lookup(environ, strings.ToLower(s.Name)) // as everybody else does
		}
		relativeBase := strings.HasPrefix(s.Name, "XDG_") && !filepath.IsAbs(text) // counts as unset, says XDG
		if (text != "" || given && s.Empty) && !relativeBase {
			got[s.Name] = entry{text: text}
		}
	}
	return got
}

// homeDir is the user's home as the environment has it.
func homeDir(environ []string) string {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	home, _ := lookup(environ, name)
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Clean(home)
}

// userConfig is the path of the user's own config.yaml, or "". A relative
// XDG_CONFIG_HOME does not count, as its specification says.
func userConfig(environ []string, at place) string {
	base, _ := lookup(environ, "XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		base = filepath.Join(at.home, ".config")
		if runtime.GOOS == "windows" {
			base, _ = lookup(environ, "APPDATA")
		}
	}
	if base == "" || at.home == "" && !filepath.IsAbs(base) {
		return ""
	}
	return filepath.Join(base, "insightscli", "config.yaml")
}
