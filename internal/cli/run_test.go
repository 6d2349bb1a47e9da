package cli

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/term"
)

// parseRun parses a command line of `run` and returns the options that would be
// carried out.
func parseRun(t *testing.T, line ...string) (*runOptions, error) {
	t.Helper()
	streams, _, _, _ := term.Test()
	a := newApp(Process{Streams: streams, Dir: t.TempDir()})
	var got *runOptions
	cmd := newRunCmd(a, func(_ context.Context, o *runOptions) error { got = o; return nil })
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(line)
	err := cmd.ExecuteContext(t.Context())
	return got, err
}

func TestRunParses(t *testing.T) {
	o, err := parseRun(t, "--repo", "a/b", "--repo=.", "--branch", "x/y", "--timeout=5m", "--cpus", "2",
		"--env-var", "A=1", "--secret", "B=2", "--keep", "--json", "--exit-code", "--publish-agent", "--", "make", "-k", "--json")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.command, []string{"make", "-k", "--json"}) || !slices.Equal(o.repos, []string{"a/b", "."}) || o.branch != "x/y" {
		t.Errorf("command %q, repos %q, branch %q", o.command, o.repos, o.branch)
	}
	if o.settings["INSIGHTSCLI_TIMEOUT"] != "5m" || o.settings["INSIGHTSCLI_CPUS"] != "2" || len(o.settings) != 2 {
		t.Errorf("settings %q", o.settings)
	}
	if !o.keep || !o.json || !o.exitCode || o.publishAgent != "127.0.0.1:0" || o.envVars[0] != "A=1" || o.secrets[0] != "B=2" {
		t.Errorf("got %+v", o)
	}
}

func TestRunDefaults(t *testing.T) {
	o, err := parseRun(t, "fix the flaky test")
	if err != nil {
		t.Fatal(err)
	}
	if o.prompt != "fix the flaky test" || o.agent != "" || o.originProduct != "user_created" || o.mode != "background" || !o.createPR {
		t.Errorf("got %+v", o)
	}
}

// A comma in a value is part of it: these flags are repeated, never split.
func TestRunKeepsCommas(t *testing.T) {
	o, err := parseRun(t, "--env-var", "A=1,2", "--repo", "./a,b", "--", "true")
	if err != nil || o.envVars[0] != "A=1,2" || o.repos[0] != "./a,b" {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestRunRefuses(t *testing.T) {
	tests := []struct {
		line string // words, separated by |
		want string
	}{
		{"", "run needs a PROMPT, or a command after --"},
		{"--", "-- needs a COMMAND behind it"},
		{"--| ", "COMMAND is empty"},
		{" ", "PROMPT is empty"},
		{"fix|it", `the prompt is one argument: quote it, or put -- before a command (got "fix", "it")`},
		{"fix|--|true", "give a PROMPT or -- COMMAND, not both"},
		{"--agent|exec|fix", "agent exec runs a command: put it after --"},
		{"--agent|claude|--|true", "agent claude takes a PROMPT, not a command"},
		{"--agent|clod|--|true", `unknown agent "clod"`},
		{"--bogus|--|true", "unknown flag: --bogus"},
		{"--json|--quiet|--|true", "give --json or --quiet, not both"},
		{"-d|--no-start|--|true", "give --detach or --no-start, not both"},
		{"-d|--exit-code|--|true", "--exit-code needs the run to end here: leave out --detach and --no-start"},
		{"--exit-code|fix", "--exit-code needs a command after --"},
		{"--start|abc|--|true", "--start takes the run as it was recorded: no PROMPT, COMMAND, --repo or settings beside it"},
		{"--start|abc|--timeout|1m", "--start takes the run as it was recorded: no PROMPT, COMMAND, --repo or settings beside it"},
		{"--start|abc|--dry-run", "--start cannot be combined with --no-start or --dry-run"},
		{"--origin-product|x|--|true", `unknown origin product "x"`},
		{"--mode|x|--|true", `unknown mode "x"; there are background and interactive`},
		{"--mode|interactive|--|true", "--mode interactive needs an agent that takes messages, which a command does not"},
		{"--publish-agent=x|--|true", `--publish-agent: "x" is not an address such as 127.0.0.1:0`},
		{"--branch|main|--|true", "--branch needs --repo"},
		{"--repo|.|--branch|--upload-pack=x|--|true", `"--upload-pack=x" is not the name of a branch`},
		{"--mount|--|true", "--mount and --uncommitted need --repo with a local path"},
		{"--repo|.|--mount|--uncommitted|--|true", "a mounted repository has its uncommitted work already: give --mount or --uncommitted, not both"},
		{"--repo|.|--mount|--branch|b|--|true", "--branch would switch the branch of your own checkout: give --mount or --branch, not both"},
		{"--create-pr|--|true", "--create-pr needs an agent that publishes, which a command does not"},
		{"--schema|x.json|--|true", "--schema needs an agent that replies, which a command does not"},
		{"--mode|interactive|fix", "--mode interactive needs a terminal to ask at"},
		{strings.Repeat("x", 1<<20), "the prompt has 1048576 bytes; at most 983040 are taken: put the rest into a file of the repository"},
		{"\xff", "the prompt is not text in UTF-8"},
		{"--title|" + strings.Repeat("é", 256) + "|--|true", "the title has more than 255 characters"},
	}
	for _, tt := range tests {
		var words []string
		if tt.line != "" {
			words = strings.Split(tt.line, "|")
		}
		_, err := parseRun(t, words...)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q: err = %v, want %q", tt.line, err, tt.want)
		}
		if tt.want != "unknown flag: --bogus" && errs.KindOf(err) != errs.Usage {
			t.Errorf("%q: kind %s", tt.line, errs.KindOf(err))
		}
	}
}

func TestRunAcceptsCreatePROff(t *testing.T) {
	if _, err := parseRun(t, "--create-pr=false", "--", "true"); err != nil {
		t.Error(err)
	}
}

func TestValidBranch(t *testing.T) {
	for _, name := range []string{"main", "insights/x", "v1.2", "ünï"} {
		if !validBranch(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"-x", "/x", "x/", "x..y", "x y", "x~1", "x^", "x:y", "x.lock", "x@{1}", "x\n", "x//y", "x.", "a*", strings.Repeat("x", 251)} {
		if validBranch(name) {
			t.Errorf("%q is accepted", name)
		}
	}
}
