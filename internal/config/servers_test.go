package config_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/config"
)

// A repository that is merely checked out must not decide which program of the host is
// started, nor to which address a key is sent.
func TestARepositoryDecidesNothingAboutTheHost(t *testing.T) {
	for _, s := range config.Settings() {
		if !s.UserFile {
			continue
		}
		text, want := sample(s, "/home/me")
		p := newPlace(t)
		p.write(filepath.Join(p.sub, ".env"), s.Name+"='"+text+"'\n")
		c, err := p.load(nil)
		if err != nil {
			t.Fatal(err)
		}
		if f, _ := field(reflect.ValueOf(&c).Elem(), strings.ToLower(s.Name)); reflect.DeepEqual(f.Interface(), want) {
			t.Errorf("%s is taken from .env", s.Name)
		}
		p.write(filepath.Join(p.sub, "insights.yaml"), s.Key+": '"+text+"'\n")
		if _, err := p.load(nil); err == nil || !strings.Contains(err.Error(), "insights.yaml:1: ") {
			t.Errorf("%s in insights.yaml: %v", s.Key, err)
		}
	}
}

// Servers are written as a mapping, in the form that other tools have.
func TestServersInTheUsersFile(t *testing.T) {
	p := newPlace(t)
	p.write(filepath.Join(p.home, ".config", "insightscli", "config.yaml"), `
mcp-servers:
  docs:
    url: https://docs.example/mcp
    headers: {Authorization: "Bearer ${DOCS_TOKEN}"}
`)
	c, err := p.load(nil)
	want := map[string]config.MCPServer{"docs": {URL: "https://docs.example/mcp", Headers: map[string]string{"Authorization": "Bearer ${DOCS_TOKEN}"}}}
	if err != nil || !reflect.DeepEqual(c.Agents.MCPServers, want) {
		t.Errorf("%+v, %v", c.Agents.MCPServers, err)
	}
}

// Headers and variables of servers may hold secrets: the names are all that is shown.
func TestServersAreShownByName(t *testing.T) {
	p := newPlace(t)
	c, err := p.load(nil, `INSIGHTS_MCP_SERVERS={"b":{"url":"http://h","headers":{"A":"canary"}},"a":{"command":"c"}}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range c.Values() {
		if v.Name == "INSIGHTS_MCP_SERVERS" && v.Text != "a, b" {
			t.Errorf("shown as %q", v.Text)
		}
	}
}
