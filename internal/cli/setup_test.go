package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/term"
)

func TestSetupFlags(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want setupOptions
		kind errs.Kind
	}{
		"none":            {nil, setupOptions{}, ""},
		"all":             {[]string{"--env-file=x", "--dry-run", "-y", "--json"}, setupOptions{envFile: "x", dryRun: true, yes: true, json: true}, ""},
		"steps":           {[]string{"--only", "env,image", "--only=engine"}, setupOptions{only: []string{"env", "image", "engine"}}, ""},
		"no step":         {[]string{"--only", ""}, setupOptions{}, errs.Usage},
		"no file":         {[]string{"--env-file="}, setupOptions{}, errs.Usage},
		"an unknown step": {[]string{"--only", "nothing"}, setupOptions{}, errs.Usage},
		"a word":          {[]string{"env"}, setupOptions{}, errs.Usage},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _, _, _ := term.Test()
			var got *setupOptions
			cmd := newSetupBackgroundAgentsCmd(newApp(Process{Streams: streams}), func(_ context.Context, o *setupOptions) error {
				got = o
				return nil
			})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(tt.args)
			err := cmd.ExecuteContext(t.Context())
			if tt.kind != "" {
				if errs.KindOf(err) != tt.kind {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || got.envFile != tt.want.envFile || got.dryRun != tt.want.dryRun || got.yes != tt.want.yes ||
				got.json != tt.want.json || !slices.Equal(got.only, tt.want.only) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// Questions are put to somebody at a terminal only; --yes answers those that need
// nobody.
func TestSetupAsksOnATerminalOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		options     setupOptions
		terminal    bool
		answer      string
		person      bool
		want, asked bool
	}{
		"yes":                       {setupOptions{}, true, "y\n", false, true, true},
		"no":                        {setupOptions{}, true, "n\n", false, false, true},
		"an end is no":              {setupOptions{}, true, "", false, false, true},
		"no terminal":               {setupOptions{}, false, "y\n", false, false, false},
		"JSON":                      {setupOptions{json: true}, true, "y\n", false, false, false},
		"--yes":                     {setupOptions{yes: true}, false, "", false, true, false},
		"--yes, and nobody there":   {setupOptions{yes: true}, false, "", true, false, false},
		"--yes, and somebody there": {setupOptions{yes: true}, true, "", true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			streams, in, _, errOut := term.Test()
			streams.InTTY, streams.ErrTTY = tt.terminal, tt.terminal
			in.WriteString(tt.answer)
			o := tt.options
			o.app = newApp(Process{Streams: streams})
			got, err := o.confirm(t.Context(), "image", "build it?", tt.person)
			if err != nil || got != tt.want || (errOut.String() == "build it? [y/N] ") != tt.asked {
				t.Errorf("%v, %v, asked %q", got, err, errOut)
			}
		})
	}
}

// .env.example is the one beside the file, else the project's.
func TestSetupFindsTheExample(t *testing.T) {
	project := t.TempDir()
	for _, dir := range []string{".git", "sub", "other"} {
		if err := os.Mkdir(filepath.Join(project, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".env.example", "other/.env.example"} {
		if err := os.WriteFile(filepath.Join(project, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	streams, _, _, _ := term.Test()
	o := &setupOptions{app: newApp(Process{Streams: streams, Dir: filepath.Join(project, "sub")})}
	for path, want := range map[string]string{".env": ".env.example", "sub/.env": ".env.example", "other/dev.env": "other/.env.example"} {
		if got := o.example(filepath.Join(project, path)); got != filepath.Join(project, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := o.path(); got != filepath.Join(project, ".env") {
		t.Errorf("a new .env would be %s", got)
	}
}

func TestSetupInstructionsNameWhatAnAppNeeds(t *testing.T) {
	text := appInstructions("/x/.env")
	for _, want := range append(appNames(), "http://localhost:8010/integrations/github/callback",
		"http://localhost:8010/complete/github-link/", "during installation", "/x/.env", "Iv23") {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in it", want)
		}
	}
	for line := range bytes.Lines([]byte(text)) {
		if len(line) > 100 {
			t.Errorf("long line %q", line)
		}
	}
}

func TestAPIURL(t *testing.T) {
	for base, want := range map[string]string{
		"": "", "https://github.com/": "", "github.com": "", "https://www.github.com": "",
		"https://Acme.ghe.com": "https://api.acme.ghe.com", "git.example.com": "https://git.example.com/api/v3",
		"https://git.example.com/": "https://git.example.com/api/v3",
	} {
		if got := apiURL(base); got != want {
			t.Errorf("%q: %q, want %q", base, got, want)
		}
	}
}
