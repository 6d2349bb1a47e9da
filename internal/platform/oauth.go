package platform

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/statedb/dberr"
)

// OAuthApps are the OAuth applications that may ask for tokens.
type OAuthApps struct{ db *sql.DB }

// NewOAuthApps returns the applications in state.db.
func NewOAuthApps(db *sql.DB) *OAuthApps { return &OAuthApps{db} }

// OAuthApp is one application.
type OAuthApp struct {
	Name         string
	ClientID     string
	Public       bool // without a client secret
	RedirectURIs []string
}

// Get returns the application of that name.
func (o *OAuthApps) Get(ctx context.Context, name string) (OAuthApp, error) {
	app := OAuthApp{Name: name}
	var uris string
	err := o.db.QueryRowContext(ctx, `SELECT client_id, public, redirect_uris FROM oauth_apps WHERE name = ?`, name).
		Scan(&app.ClientID, &app.Public, &uris)
	app.RedirectURIs = strings.Fields(uris)
	return app, found(err, "OAuth application", name)
}

// Ensure makes the application if there is none of its name, else brings its kind
// and redirect URIs up to date. The client id of an existing one stays: others have
// stored it. It returns what is there now. clientSecret is empty for a public one.
func (o *OAuthApps) Ensure(ctx context.Context, app OAuthApp, clientSecret secret.String) (OAuthApp, error) {
	var hash []byte
	if !clientSecret.Empty() {
		sum := sha256.Sum256([]byte(clientSecret.Reveal()))
		hash = sum[:]
	}
	_, err := o.db.ExecContext(ctx, `
		INSERT INTO oauth_apps (name, client_id, public, secret_hash, redirect_uris, created) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET public = excluded.public, redirect_uris = excluded.redirect_uris,
		  secret_hash = COALESCE(excluded.secret_hash, secret_hash)`,
		app.Name, app.ClientID, app.Public, hash, strings.Join(app.RedirectURIs, " "), time.Now().UnixNano())
	if err != nil {
		return OAuthApp{}, dberr.Wrap("platform.Ensure", "create OAuth application "+app.Name, err)
	}
	return o.Get(ctx, app.Name)
}
