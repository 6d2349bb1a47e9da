package gitguard

import (
	"context"
	"os/exec"
	"strings"
)

// asker answers for the real git. Options are those that came before the command.
type asker interface {
	// config returns aliases and the setting help.autocorrect.
	config(ctx context.Context, options []string) config
	// isCommand reports whether git has a command of that name, which goes before an alias.
	isCommand(ctx context.Context, options []string, name string) bool
}

// config holds values by key, the key in lower case; the last value counts.
type config map[string]string

// alias returns what name stands for. Aliases do not distinguish case, other than the
// newer form alias.NAME.command, for which this errs on the strict side.
func (c config) alias(name string) (string, bool) {
	name = strings.ToLower(name)
	for _, key := range []string{"alias." + name, "alias." + name + ".command"} {
		if value, ok := c[key]; ok {
			return value, true
		}
	}
	return "", false
}

// autocorrects reports whether git may run another command than the one it was given.
func (c config) autocorrects() bool {
	value := c["help.autocorrect"]
	return value != "" && value != "0"
}

// realGit asks the program at path.
type realGit struct {
	path    string
	environ environment
	asked   map[string]config
}

var _ asker = (*realGit)(nil)

func (g *realGit) config(ctx context.Context, options []string) config {
	key := strings.Join(options, "\x00")
	if c, ok := g.asked[key]; ok {
		return c
	}
	c := parseConfig(g.ask(ctx, options, "config", "-z", "--get-regexp", `^(alias\..*|help\.autocorrect)$`))
	if g.asked == nil {
		g.asked = map[string]config{}
	}
	g.asked[key] = c
	return c
}

// parseConfig reads entries that end with NUL; a newline comes between key and value.
func parseConfig(text string) config {
	c := config{}
	for entry := range strings.SplitSeq(text, "\x00") {
		if key, value, ok := strings.Cut(entry, "\n"); ok {
			c[strings.ToLower(key)] = value
		}
	}
	return c
}

func (g *realGit) isCommand(ctx context.Context, options []string, name string) bool {
	for line := range strings.Lines(g.ask(ctx, options, "--list-cmds=builtins,main,others")) {
		if strings.TrimSuffix(line, "\n") == name {
			return true
		}
	}
	return false
}

// ask returns what git says to the question. Where it fails it will fail in earnest too,
// and say why; here nothing is said.
func (g *realGit) ask(ctx context.Context, options []string, question ...string) string {
	args := append([]string{}, options...)
	cmd := exec.CommandContext(ctx, g.path, append(append(args, "--no-pager"), question...)...)
	for _, kv := range g.environ {
		// git config alone would heed the first, and the others record the question.
		if !strings.HasPrefix(kv, "GIT_CONFIG=") && !strings.HasPrefix(kv, "GIT_TRACE") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(out)
}
