package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/config"
)

// newHelpCmd is cobra's help command with an error for what does not exist.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "Show the help of a command or topic",
		Long:  "Shows the help of a command, or one of the topics environment and exit-codes." + exits("0", "2"),
		Example: `  insightscli help run
  insightscli help exit-codes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || found == nil || len(rest) > 0 {
				return usageError("no help on %q", strings.Join(args, " "))
			}
			return found.Help()
		},
	}
}

// newTopic returns a help topic: a command that only has help.
func newTopic(use, short string, write func(io.Writer)) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { write(cmd.OutOrStdout()) })
	return cmd
}

func newEnvironmentTopic() *cobra.Command {
	return newTopic("environment", "Every setting and the environment variables that set it", writeEnvironment)
}

func newExitCodesTopic() *cobra.Command {
	return newTopic("exit-codes", "What the exit codes mean", writeExitCodes)
}

func writeEnvironment(w io.Writer) {
	fmt.Fprint(w, `A setting is taken from the first of these that has it:
flag > environment > .env.local > .env > insights.yaml > config.yaml > default.
.env.local, .env and insights.yaml are looked for from the working directory up to
the root of the repository; config.yaml lies in $XDG_CONFIG_HOME/insightscli.
An empty variable counts as unset. 'insightscli config' shows what is in force.
`)
	for _, s := range config.Settings() {
		fmt.Fprintf(w, "\n%s  (%s)\n", s.Name, strings.Join(traits(s), ", "))
		for _, line := range wrap(s.Doc, 76) {
			fmt.Fprintf(w, "    %s\n", line)
		}
	}
}

// traits says in a few words what kind of setting s is.
func traits(s config.Setting) []string {
	words := []string{string(s.Type)}
	if s.Default != "" {
		words = append(words, "default "+s.Default)
	}
	if s.Key != "" {
		words = append(words, "key "+s.Key)
	}
	if s.Flag != "" {
		words = append(words, "flag --"+s.Flag)
	}
	if s.Secret {
		words = append(words, "secret")
	}
	if s.EnvOnly {
		words = append(words, "environment only")
	}
	return words
}

func writeExitCodes(w io.Writer) {
	fmt.Fprint(w, "Every command ends with one of these; its own help says which.\n\n")
	for _, e := range exitCodes() {
		fmt.Fprintf(w, "  %-4s %s\n", e.code, e.meaning)
	}
	fmt.Fprint(w, `
A command line or setting that is wrong always gives 2 before anything is started.
A run that ended because nothing happened any more (--idle-timeout) is a success.
With --json an error is one object on standard error: type, kind, code, message, hint.
`)
}

// environmentMarkdown is the table of README.
func environmentMarkdown() string {
	var b strings.Builder
	b.WriteString("| variable | what | type | default | key in YAML | flag |\n|---|---|---|---|---|---|\n")
	for _, s := range config.Settings() {
		kind := string(s.Type)
		if s.Secret {
			kind = "secret"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", s.Name, s.Doc, kind,
			code(s.Default), code(s.Key), code(prefixed("--", s.Flag)))
	}
	return b.String()
}

// exitCodesMarkdown is the table of README.
func exitCodesMarkdown() string {
	var b strings.Builder
	b.WriteString("| code | meaning |\n|---|---|\n")
	for _, e := range exitCodes() {
		fmt.Fprintf(&b, "| %s | %s |\n", e.code, e.meaning)
	}
	return b.String()
}

// code sets a word in code type, nothing for none.
func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// wrap breaks text between words into lines of at most width bytes.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
