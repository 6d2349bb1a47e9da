package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/term"
)

// What an agent cannot work with is told before anything is made: one line, one hint.
func TestRunRefusesAnAgentThatCannotWork(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := "ANTHROPIC_API_KEY=sk-ant-api03-x"
	tests := map[string]struct {
		env  []string
		args []string
		want string
	}{
		"a key of another maker":   {[]string{"ANTHROPIC_API_KEY=sk-proj-x"}, []string{"fix"}, "ANTHROPIC_API_KEY holds a key of another provider"},
		"a subscription":           {[]string{"ANTHROPIC_API_KEY=sk-ant-oat01-x"}, []string{"fix"}, "ANTHROPIC_API_KEY holds a token of a Claude subscription"},
		"a key for the other":      {[]string{"OPENAI_API_KEY=sk-ant-api03-x"}, []string{"--agent", "codex", "fix"}, "OPENAI_API_KEY holds a key of Anthropic's"},
		"no such schema":           {[]string{key}, []string{"--schema", filepath.Join(dir, "none"), "fix"}, "read the schema: "},
		"a schema that is none":    {[]string{key}, []string{"--schema", write("a.json", `{"type":"nope"}`), "fix"}, "a.json: "},
		"a schema elsewhere":       {[]string{key}, []string{"--schema", write("b.json", `{"$ref":"http://h.example/s"}`), "fix"}, "http://h.example/s"},
		"a server that is unknown": {[]string{key}, []string{"--require-mcp", "nope", "fix"}, `--require-mcp: there is no MCP server "nope"`},
		"a server's bad address":   {[]string{key, `INSIGHTS_MCP_SERVERS={"x":{"url":"localhost:1"}}`}, []string{"fix"}, `INSIGHTS_MCP_SERVERS: server "x": not an http:// or https:// URL`},
		"a server's variable": {
			[]string{key, `INSIGHTS_MCP_SERVERS={"x":{"url":"http://h.example","headers":{"A":"${NOT_THERE}"}}}`},
			[]string{"fix"},
			"INSIGHTS_MCP_SERVERS: server x: NOT_THERE is not set",
		},
		"a bad pattern": {[]string{key, "INSIGHTS_EXEC_PERMISSION_REGEX=("}, []string{"fix"}, "INSIGHTS_EXEC_PERMISSION_REGEX: "},
		"no program":    {[]string{key, "PATH=" + dir}, []string{"--provider", "local", "fix"}, "claude"},
		"no program for our image": {
			[]string{key, "PATH=" + dir},
			[]string{"--provider", "docker", "fix"},
			"claude",
		},
		"no ACP agent": {[]string{key, "PATH=" + dir}, []string{"--provider", "local", "--agent", "acp:nowhere --x", "fix"}, `no program "nowhere" for agent acp:nowhere --x`},
		"bad prices":   {[]string{key, "INSIGHTS_LLM_PRICES=x"}, []string{"fix"}, `INSIGHTS_LLM_PRICES: cannot read "x"`},
		"a skill without front matter": {
			[]string{key, "INSIGHTSCLI_SKILLS=" + filepath.Dir(filepath.Dir(writeSkill(t, "# no front matter\n")))},
			[]string{"--agent", "acp:/bin/sh", "fix"},
			"there are no skills: ",
		},
	}
	never := func(context.Context, task.Spec, map[string]secret.String, task.Sink) (task.Result, error) {
		t.Error("a run was started")
		return task.Result{}, nil
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := fakeRunIn(t, never, append(tt.env, "INSIGHTSCLI_STATE_DIR="+t.TempDir()), append([]string{"run"}, tt.args...)...)
			first, rest, _ := strings.Cut(stderr, "\n")
			if code != 2 || !strings.HasPrefix(first, "error: ") || !strings.Contains(first, tt.want) || stdout != "" {
				t.Errorf("code %d, %q, stdout %q; want %q", code, stderr, stdout, tt.want)
			}
			if !strings.HasPrefix(rest, "hint: ") || strings.Count(rest, "\n") != 1 {
				t.Errorf("not one line and one hint: %q", stderr)
			}
		})
	}
}

// writeSkill makes a folder with one skill and returns the path of its SKILL.md.
func writeSkill(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mine", "SKILL.md")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Some editors begin a file with a byte order mark.
func TestSchemaFileWithAMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(path, []byte("\ufeff{\"type\":\"object\"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if raw, err := readSchema(path); err != nil || string(raw) != `{"type":"object"}` {
		t.Errorf("%q, %v", raw, err)
	}
}

// A prompt of 2 MB is not read to its end, so its length is not told either.
func TestPromptOnStandardInputIsBounded(t *testing.T) {
	o := &runOptions{app: &app{streams: &term.Streams{In: strings.NewReader(strings.Repeat("x", 2<<20))}}}
	err := o.readPrompt()
	if errs.KindOf(err) != errs.Usage || !strings.HasPrefix(err.Error(), "the prompt on standard input has more than 983040 bytes") {
		t.Error(err)
	}
}
