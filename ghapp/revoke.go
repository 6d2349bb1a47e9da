package ghapp

import (
	"context"
	"fmt"
	"net/http"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
)

// Revoke ends a token of an installation before its time. One that has ended already is
// fine.
func Revoke(ctx context.Context, apiURL string, token secret.String, client *http.Client) error {
	api, err := parseAPI(apiURL)
	if err != nil {
		return err
	}
	c, err := newClient(client, api)
	if err != nil {
		return err
	}
	_, err = c.WithAuthToken(token.Reveal()).Apps.RevokeInstallationToken(ctx)
	switch status := statusOf(err); {
	case err == nil, status == http.StatusUnauthorized, status == http.StatusNotFound:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("revoke a token: %w", context.Cause(ctx))
	}
	return errs.New("ghapp.Revoke", errs.Unavailable, "it ends by itself within the hour", "revoke a token: %w", plain(err))
}
