package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/setup"
)

type setupOAuthOptions struct {
	app *app

	dryRun bool
	json   bool
}

func newSetupTasksOAuthCmd(a *app, runF func(context.Context, *setupOAuthOptions) error) *cobra.Command {
	o := &setupOAuthOptions{app: a}
	cmd := &cobra.Command{
		Use:   "setup-tasks-oauth",
		Short: "Make the OAuth applications of a development machine",
		Long: `Makes the applications "Array Dev App" and "Insights AI Dev App" in the state
directory and mends their redirect URIs. Nothing is deleted, and a client id that
is there stays. In the regions US and EU (CLOUD_DEPLOYMENT) there is nothing to
do. 'insightscli setup-background-agents' does this, too.` + exits("0", "1", "2", "3"),
		Example: `  insightscli setup-tasks-oauth
  insightscli setup-tasks-oauth --dry-run --json`,
		Args:              takes(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runSetupTasksOAuth(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "tell what would be done, and do nothing")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

func runSetupTasksOAuth(ctx context.Context, o *setupOAuthOptions) error {
	c, err := o.app.config(nil)
	if err != nil {
		return err
	}
	step := setup.OAuthApps{Region: c.CloudDeployment, Apps: []setup.App{setup.ArrayApp(true), setup.InsightsAIApp()}}
	if !setup.Managed(c.CloudDeployment) {
		if step.Store, err = o.app.storeOf(ctx, c, o.dryRun); err != nil {
			return err
		}
	}
	results, err := setup.Run(ctx, []setup.Step{step}, setup.Options{DryRun: o.dryRun})
	if err != nil {
		return err
	}
	return o.app.printSetup(results, o.json)
}
