package gitguard

import (
	"context"
	"path"
	"slices"
	"strings"
)

// What bounds aliases that call each other through shells, which no git does: how deep
// one is looked into, and at how many calls.
const (
	maxDepth = 10
	maxCalls = 100
)

// check returns the arguments for the real git, or that it must not get them.
func check(ctx context.Context, args []string, git asker) (pass []string, refused bool) {
	c := &checker{git: git}
	if c.refuses(ctx, invocation{args: args}) {
		return nil, true
	}
	if found := readings(args); c.guesses && len(found) == 1 {
		// git could take the word for a slip of the pen, and commit.
		r := found[0]
		return slices.Concat(r.options, []string{"-c", "help.autocorrect=0", r.command}, r.args), false
	}
	return args, false
}

// checker looks through one invocation.
type checker struct {
	git asker
	// guesses: a word was neither a command nor an alias, and git would guess.
	guesses bool
	calls   int
}

// invocation is a git that is called, by whom it may be.
type invocation struct {
	args    []string
	options []string // of the git that calls it by an alias
	aliases []string // that have led here
	depth   int
}

// refuses reports whether a git called with the arguments would commit or push.
func (c *checker) refuses(ctx context.Context, in invocation) bool {
	if c.calls++; in.depth > maxDepth || c.calls > maxCalls {
		return false
	}
	return slices.ContainsFunc(readings(in.args), func(r reading) bool {
		r.options = slices.Concat(in.options, r.options)
		return c.refusesCommand(ctx, r, in)
	})
}

func (c *checker) refusesCommand(ctx context.Context, r reading, in invocation) bool {
	switch {
	case r.command == "commit", r.command == "push":
		return true
	case isWellKnown(r.command):
		return false
	}
	config := c.git.config(ctx, r.options)
	value, ok := config.alias(r.command)
	if !ok {
		c.guesses = c.guesses || config.autocorrects()
		return false
	}
	if slices.Contains(in.aliases, r.command) {
		return false // a loop, of which git complains
	}
	next := invocation{options: r.options, aliases: append(slices.Clone(in.aliases), r.command), depth: in.depth + 1}
	var refused bool
	if script, shell := strings.CutPrefix(value, "!"); shell {
		next.aliases = nil // another process; what bounds it is the depth
		refused = c.refusesScript(ctx, script+` "$@"`, r.args, next)
	} else {
		next.args = append(split(value), r.args...)
		refused = c.refuses(ctx, next)
	}
	return refused && !c.git.isCommand(ctx, r.options, r.command)
}

// refusesScript reports whether a shell that runs the text calls a git that is refused.
func (c *checker) refusesScript(ctx context.Context, text string, args []string, from invocation) bool {
	if from.depth++; from.depth > maxDepth {
		return false
	}
	return slices.ContainsFunc(commands(text, args), func(words []string) bool {
		return c.refusesWords(ctx, words, from)
	})
}

// refusesWords is refusesScript for one simple command.
func (c *checker) refusesWords(ctx context.Context, words []string, from invocation) bool {
	words = called(words)
	if len(words) == 0 {
		return false
	}
	name := path.Base(words[0])
	verb, dashed := strings.CutPrefix(name, "git-")
	switch {
	case name == "git":
		from.args = words[1:]
		return c.refuses(ctx, from)
	case dashed: // they are in the PATH of an alias
		from.args = append([]string{verb}, words[1:]...)
		return c.refuses(ctx, from)
	case name == "eval":
		return c.refusesScript(ctx, strings.Join(words[1:], " "), nil, from)
	case slices.Contains(shells(), name):
		text, args := script(words[1:])
		return c.refusesScript(ctx, text, args, from)
	}
	return false
}

func shells() []string { return []string{"sh", "bash", "dash", "ash", "ksh", "zsh"} }

// script returns the text that a shell is given with -c, and what it sees as $1 and so on.
func script(args []string) (text string, rest []string) {
	for i, arg := range args {
		isOption := strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--")
		if !isOption || !strings.Contains(arg, "c") || i+1 >= len(args) {
			continue
		}
		rest = args[i+2:]
		return args[i+1], rest[min(1, len(rest)):] // the first is the shell's name
	}
	return "", nil
}

// called returns the words of a simple command from the program on, behind the shell's
// own words, assignments and programs that only run another.
func called(words []string) []string {
	for len(words) > 0 {
		word := words[0]
		switch {
		case word == "function":
			words = words[min(2, len(words)):]
		case isKeyword(word), isAssignment(word):
			words = words[1:]
		case runsAnother(path.Base(word)):
			at := slices.IndexFunc(words[1:], isProgram)
			if at < 0 {
				return nil
			}
			return words[1+at:]
		default:
			return words
		}
	}
	return nil
}

func isKeyword(word string) bool {
	return slices.Contains([]string{"if", "then", "else", "elif", "do", "while", "until", "!", "{"}, word)
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

func runsAnother(program string) bool {
	return slices.Contains([]string{
		"command", "builtin", "exec", "env", "sudo", "doas", "time", "nohup", "nice", "ionice", "timeout", "setsid", "stdbuf", "xargs",
	}, program)
}

// isProgram reports whether a word names a program of interest.
func isProgram(word string) bool {
	name := path.Base(word)
	return name == "git" || strings.HasPrefix(name, "git-") || name == "eval" || slices.Contains(shells(), name)
}
