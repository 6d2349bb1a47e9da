package ghapp

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v62/github"

	"github.com/Insights/insightscli/internal/errs"
)

// missing tells the reasons for a 404 apart: no installation at all, one on other
// repositories, no such repository.
func (in *Installations) missing(ctx context.Context, w Want) error {
	client, err := in.ask()
	if err != nil {
		return err
	}
	full := w.Owner + "/" + w.Repos[0]
	found, _, err := client.Apps.FindOrganizationInstallation(ctx, w.Owner)
	if statusOf(err) == http.StatusNotFound {
		found, _, err = client.Apps.FindUserInstallation(ctx, w.Owner)
	}
	switch {
	case err == nil && found.GetRepositorySelection() == "selected":
		return errs.New(opMint, errs.Auth, "add the repository at "+found.GetHTMLURL(),
			"the GitHub App is installed on other repositories of %s, not on %s", w.Owner, full)
	case err == nil:
		return errs.New(opMint, errs.NotFound, "check the name", "there is no repository %s that the GitHub App can see", full)
	case statusOf(err) == http.StatusNotFound:
		return errs.New(opMint, errs.Auth, in.installHint(ctx, client), "the GitHub App is not installed on %s", full)
	}
	return errs.New(opMint, errs.Unavailable, "check the connection to "+in.api, "ask GitHub for a token: %w", plain(err))
}

// installHint has the link on which the app is installed.
func (in *Installations) installHint(ctx context.Context, client *github.Client) string {
	slug := in.c.Slug
	if slug == "" {
		if app, _, err := client.Apps.Get(ctx, ""); err == nil {
			slug = app.GetSlug()
		}
	}
	if slug == "" {
		return "install the app from its settings page"
	}
	return "install it at " + webOf(in.api) + "/apps/" + url.PathEscape(slug) + "/installations/new"
}

// webOf is where the pages of an API's GitHub are; see newSite.
func webOf(api string) string {
	if web, ok := strings.CutSuffix(api, "/api/v3"); ok {
		return web
	}
	return strings.Replace(api, "://api.", "://", 1)
}
