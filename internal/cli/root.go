package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/term"
)

// The groups of commands in `insightscli --help`.
const (
	groupRuns   = "runs"
	groupSetup  = "setup"
	groupRunner = "runner"
	groupOther  = "other"
)

// Tree returns the command tree, for the program that writes its man pages.
func Tree() *cobra.Command { return newRootCmd(newApp(Process{Streams: &term.Streams{}})) }

func newRootCmd(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "insightscli",
		Short: "Run background agents in sandboxes on your own machine",
		Long: `insightscli runs a task in an isolated sandbox, streams what happens and leaves
nothing behind. Nothing ever runs outside a sandbox.`,
		Example: `  insightscli run --repo . -- make test
  insightscli diff latest`,
		Version:           build.Get().Version,
		Args:              noSubcommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.alone(cmd) },
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(a.streams.In)
	root.SetOut(a.streams.Out)
	root.SetErr(a.streams.Err)
	root.SetVersionTemplate("insightscli {{.Version}}\n")
	root.SetUsageTemplate(usageTemplate)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError("%w", err) })
	root.PersistentFlags().BoolVar(&a.debug, "debug", false, "show with an error which operations it went through")
	root.AddGroup(
		&cobra.Group{ID: groupRuns, Title: "Runs:"},
		&cobra.Group{ID: groupSetup, Title: "Setting up a machine:"},
		&cobra.Group{ID: groupRunner, Title: "Background runner:"},
		&cobra.Group{ID: groupOther, Title: "Other:"},
	)
	root.SetHelpCommand(newHelpCmd())
	inGroup(root, groupRuns, newRunCmd(a, nil), newPsCmd(a, nil), newShowCmd(a, nil), newLogsCmd(a, nil), newStatsCmd(a, nil),
		newTUICmd(a, nil), newWaitCmd(a, nil), newSendCmd(a, nil), newCancelCmd(a, nil), newExecCmd(a, nil), newCpCmd(a, nil),
		newDiffCmd(a, nil), newApplyCmd(a, nil), newPruneCmd(a, nil))
	inGroup(root, groupSetup, newSetupBackgroundAgentsCmd(a, nil), newCreateGitHubAppCmd(a, nil),
		newSetupTasksOAuthCmd(a, nil), newDoctorCmd(a, nil))
	inGroup(root, groupRuns, newSessionCmd(a))
	inGroup(root, groupRunner, newStartCmd(a, nil), newStopCmd(a, nil))
	inGroup(root, groupOther, newImageCmd(a, nil), newSkillsCmd(a), newEnvCmd(a), newConfigCmd(a), newVersionCmd(a), newCompletionCmd(a))
	root.AddCommand(newEnvironmentTopic(), newExitCodesTopic())
	return root
}

// alone is the program without a command: the table of runs, or the help where there is no
// screen for it.
func (a *app) alone(cmd *cobra.Command) error {
	if _, _, ok := a.streams.Terminal(); !ok {
		return cmd.Help()
	}
	c, err := a.config(nil)
	if err != nil {
		return err
	}
	if !a.hasScreen(c) {
		return cmd.Help()
	}
	return runTUI(cmd.Context(), &tuiOptions{app: a})
}

// inGroup adds commands to root below one heading of its help.
func inGroup(root *cobra.Command, group string, cmds ...*cobra.Command) {
	for _, cmd := range cmds {
		cmd.GroupID = group
		root.AddCommand(cmd)
	}
}

// newGroup returns a noun that only holds other commands. Without one of them, or
// with an unknown one, it is a usage error; cobra alone would exit with 0.
func newGroup(use, short string, cmds ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: use + " COMMAND", Short: short, Args: noSubcommand}
	group.RunE = func(*cobra.Command, []string) error {
		return usageError("%s needs a command: %s", use, strings.Join(names(group), ", "))
	}
	group.AddCommand(cmds...)
	return group
}

// noSubcommand refuses the words that cobra could not resolve to a command.
func noSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += fmt.Sprintf("; did you mean %q?", near[0])
	}
	return usageError("%s", text)
}

// names lists the visible commands below cmd.
func names(cmd *cobra.Command) []string {
	var list []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			list = append(list, c.Name())
		}
	}
	return list
}

// takes validates the number of arguments and names them in the error: min of them
// must be there, and no more than max (-1: any number).
func takes(min, max int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < min:
			return usageError("%s needs %s", cmd.CommandPath(), what)
		case max == 0 && len(args) > 0:
			return usageError("%s takes no argument, got %q", cmd.CommandPath(), args[0])
		case max >= 0 && len(args) > max:
			return usageError("%s takes only %s, got %q", cmd.CommandPath(), what, args[max])
		}
		if err := cmd.ValidateFlagGroups(); err != nil { // else it is told as no fault of usage
			return usageError("%w", err)
		}
		return nil
	}
}
