package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// shells are the shells that completion scripts exist for.
func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func newCompletionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the completion script for a shell",
		Long: `Prints a script that completes commands, flags and run ids in bash, zsh, fish or
powershell. Changes nothing.` + exits("0", "2"),
		Example: `  source <(insightscli completion bash)
  insightscli completion fish > ~/.config/fish/completions/insightscli.fish`,
		Args:      takes(1, 1, "a shell: "+strings.Join(shells(), ", ")),
		ValidArgs: shells(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runCompletion(cmd.Root(), args[0], a.streams.Out)
		},
	}
}

func runCompletion(root *cobra.Command, shell string, w io.Writer) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(w, true)
	case "zsh":
		return root.GenZshCompletion(w)
	case "fish":
		return root.GenFishCompletion(w, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(w)
	}
	known := slices.Clone(shells())
	return usageError("unknown shell %q; there are %s", shell, strings.Join(known, ", "))
}
