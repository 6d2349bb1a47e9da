package repo

import (
	"context"

	"github.com/Insights/insightscli/internal/secret"
)

// GHLogin is the token of the login that the gh command keeps for the GitHub that the
// cache has access to, for who speaks to its API as that person. It is false without one.
func (c *Cache) GHLogin(ctx context.Context) (secret.String, bool) {
	token, err := c.access.ghToken(ctx)
	return token, err == nil
}
