package ghapp

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/Insights/insightscli/internal/errs"
)

// What an app of ours is made with, unless Options say otherwise.
const (
	// DefaultSetupURL is where GitHub leads after an installation.
	DefaultSetupURL = "http://localhost:8010/integrations/github/callback"
	// DefaultCallbackURL is where it leads after a person authorized the app.
	DefaultCallbackURL = "http://localhost:8010/complete/github-link/"
	homepage           = "http://localhost:8010"
)

// maxName is GitHub's limit for the name of an app.
const maxName = 34

// manifest is what GitHub makes an app from. It has no hook_attributes: even a webhook
// that is off would need an address that the internet can reach.
type manifest struct {
	Name                  string            `json:"name"`
	URL                   string            `json:"url"`
	RedirectURL           string            `json:"redirect_url"`
	CallbackURLs          []string          `json:"callback_urls"`
	SetupURL              string            `json:"setup_url"`
	SetupOnUpdate         bool              `json:"setup_on_update"`
	Description           string            `json:"description"`
	Public                bool              `json:"public"`
	RequestOAuthOnInstall bool              `json:"request_oauth_on_install"`
	DefaultPermissions    map[string]string `json:"default_permissions"`
}

// encodeManifest is the field of the form.
func (o *Options) encodeManifest(redirect string) (string, error) {
	text, err := json.Marshal(manifest{
		Name: o.Name, URL: homepage, Description: "Background agents on a developer's machine",
		RedirectURL: redirect, CallbackURLs: []string{o.CallbackURL}, SetupURL: o.SetupURL, SetupOnUpdate: true,
		RequestOAuthOnInstall: true, DefaultPermissions: o.Permissions(),
	})
	return string(text), err
}

// Permissions are those that the app asks for, by GitHub's names.
func (o *Options) Permissions() map[string]string {
	p := map[string]string{"contents": "write", "pull_requests": "write", "metadata": "read"}
	if o.Issues {
		p["issues"] = "write"
	}
	if o.Workflows {
		p["workflows"] = "write"
	}
	if o.Checks {
		maps.Copy(p, map[string]string{"checks": "read", "actions": "read", "statuses": "read"})
	}
	return p
}

// checkName refuses a name that GitHub would, with a vague message.
func checkName(name string) error {
	bad := func(what string) error {
		return errs.New("ghapp.Start", errs.Usage, "give another name, or none", "the name %q %s", name, what)
	}
	switch {
	case utf8.RuneCountInString(name) > maxName:
		return bad("is longer than the 34 characters that GitHub allows")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return bad("has characters that are not text")
	case strings.TrimSpace(name) == "":
		return bad("is blank")
	}
	return nil
}

// newName makes a name that nobody else has: names are unique among all of GitHub's
// users.
func newName(who string) string {
	const prefix, suffix = "insights-dev-", "-123456"
	var random [3]byte
	_, _ = rand.Read(random[:]) // never fails
	who = strings.Map(func(r rune) rune {
		if alphanumeric(r) {
			return unicode.ToLower(r)
		}
		return '-'
	}, who)
	who = strings.Join(strings.FieldsFunc(who, func(r rune) bool { return r == '-' }), "-")
	if room := maxName - len(prefix) - len(suffix); len(who) > room {
		who = strings.TrimRight(who[:room], "-")
	}
	if who == "" {
		who = "app"
	}
	return prefix + who + "-" + hex.EncodeToString(random[:])
}
