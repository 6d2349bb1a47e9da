package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/ghapp"
)

type githubAppOptions struct {
	app  *app
	open func(address string) error // a page in a browser

	org       string
	githubURL string
	name      string
	issues    bool
	workflows bool
	checks    bool

	manual    bool
	force     bool
	check     bool
	noBrowser bool
	timeout   time.Duration
	envFile   string
	json      bool
}

func newCreateGitHubAppCmd(a *app, runF func(context.Context, *githubAppOptions) error) *cobra.Command {
	o := &githubAppOptions{app: a, open: ghapp.OpenBrowser}
	cmd := &cobra.Command{
		Use:   "create-github-app",
		Short: "Create the GitHub App that agents publish with",
		Long: `Opens a page that asks GitHub for an App with the permissions that agents need.
After the click on "Create GitHub App" the four GITHUB_APP_* values are written to
.env, the key is verified, and the page to install the App is opened.

Where no browser can reach this machine, forward the port that is named, or use
--manual: it writes a page to open anywhere, and takes the address on which GitHub
ends. An App that GitHub made is never lost: its keys are kept in the state
directory until they are in .env, and the next run goes on from there. With an
App in .env nothing is created, unless --force is given.` + exits("0", "1", "2", "3", "4", "5", "124", "130", "143"),
		Example: `  insightscli create-github-app --org my-company
  insightscli create-github-app --check`,
		Args:              takes(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := refuseEmpty(cmd.Flags(), "org", "github-url", "name", "env-file")
			if err == nil {
				err = o.validate(cmd.Flags().Changed("timeout"))
			}
			if err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runCreateGitHubApp(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.org, "org", "", "create it for the organization `NAME`, not for yourself")
	f.StringVar(&o.githubURL, "github-url", "", "`URL` of a GitHub Enterprise Server or a tenant of ghe.com; default: INSIGHTS_GITHUB_URL")
	f.StringVar(&o.name, "name", "", "`NAME` of the App, at most 34 characters; default: one that nobody has")
	f.BoolVar(&o.issues, "issues", false, "ask for write access to issues, too")
	f.BoolVar(&o.workflows, "workflows", false, "ask for write access to workflows, too")
	f.BoolVar(&o.checks, "checks", false, "ask for read access to checks, actions and statuses, too")
	f.BoolVar(&o.manual, "manual", false, "write a page to open anywhere, and take the address that it ends on")
	f.BoolVar(&o.force, "force", false, "create another App and replace the values that are there")
	f.BoolVar(&o.check, "check", false, "verify the App that is there, and create none")
	f.BoolVar(&o.noBrowser, "no-browser", false, "open no browser")
	f.DurationVar(&o.timeout, "timeout", time.Hour, "how long to wait for the click")
	f.StringVar(&o.envFile, "env-file", "", "the `FILE` to write to; default: the .env that is in force here")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

func (o *githubAppOptions) validate(timeoutGiven bool) error {
	creates := o.manual || o.force || o.org != "" || o.name != "" || o.issues || o.workflows || o.checks
	switch {
	case o.check && creates:
		return usageError("--check creates nothing: leave out what an App is created with")
	case o.manual && timeoutGiven:
		return usageError("--manual waits as long as you like: leave out --timeout")
	case o.timeout <= 0:
		return usageError("--timeout must be longer than nothing")
	case o.timeout > time.Hour:
		return usageError("--timeout: GitHub gives one hour at most")
	}
	return nil
}

// runCreateGitHubApp goes on with an App that an earlier run left, else leaves alone
// what is there, else creates one.
func runCreateGitHubApp(ctx context.Context, o *githubAppOptions) error {
	w, err := o.work()
	if err != nil {
		return err
	}
	if o.check {
		return w.verifyThere(ctx)
	}
	kept, pending, err := ghapp.Kept(w.keep, o.githubURL)
	if err != nil {
		return err
	}
	if pending {
		o.app.notef("GitHub made the App %s in an earlier run; its keys are taken from %s", kept.Slug, w.keep)
		return w.finish(ctx, kept, w.forget)
	}
	if there, err := w.there(); there || err != nil {
		return err
	}
	if err := w.prepare(); err != nil {
		return err
	}
	if o.manual {
		return w.createManually(ctx)
	}
	return w.create(ctx)
}
