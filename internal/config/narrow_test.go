package config_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// What a repository brings may ask for less than the user's own file allows, not for more.
func TestProjectFilesOnlyNarrow(t *testing.T) {
	for _, c := range []struct{ name, key, project, users, want string }{
		{"INSIGHTSCLI_NETWORK", "network", "full", "trusted", "trusted"},
		{"INSIGHTSCLI_NETWORK", "network", "link", "custom", "custom"},
		{"INSIGHTSCLI_NETWORK", "network", "custom", "full", "custom"},
		{"INSIGHTSCLI_NETWORK", "network", "full", "", "full"},
		{"INSIGHTSCLI_SCOPES", "scopes", "full", "read_only", "read_only"},
		{"INSIGHTSCLI_SCOPES", "scopes", "query:write", "query:read", "query:read"},
		{"INSIGHTSCLI_SCOPES", "scopes", "query:read", "full", "query:read"},
		{"INSIGHTSCLI_MAX_COST", "max-cost", "0", "2", "2"},
		{"INSIGHTSCLI_MAX_COST", "max-cost", "3", "2", "2"},
		{"INSIGHTSCLI_MAX_COST", "max-cost", "1", "2", "1"},
		{"INSIGHTSCLI_MAX_COST", "max-cost", "9", "0", "9"},
		{"INSIGHTSCLI_MAX_TOKENS", "max-tokens", "0", "100", "100"},
		{"INSIGHTSCLI_AGENT", "agent", "codex", "claude", "codex"}, // neither allows more
	} {
		for _, file := range []string{"insights.yaml", ".env"} {
			p := newPlace(t)
			text := c.key + ": '" + c.project + "'\n"
			if file == ".env" {
				text = c.name + "='" + c.project + "'\n"
			}
			p.write(filepath.Join(p.sub, file), text)
			if c.users != "" {
				p.write(filepath.Join(p.home, ".config", "insightscli", "config.yaml"), c.key+": '"+c.users+"'\n")
			}
			got, err := p.load(nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, from := source(t, got, c.name); text != c.want {
				t.Errorf("%s, %+v: %q from %s", file, c, text, from)
			}
			told := strings.Contains(strings.Join(got.Notices, "\n"), file+":1: "+c.key+" is not taken")
			if told != (c.want != c.project) {
				t.Errorf("%s, %+v: notices %q", file, c, got.Notices)
			}
			// Whoever says it to this command means it.
			got, err = p.load(nil, c.name+"="+c.project)
			if err != nil {
				t.Fatal(err)
			}
			if text, _ := source(t, got, c.name); text != c.project {
				t.Errorf("%+v: %q in spite of the environment", c, text)
			}
		}
	}
}
