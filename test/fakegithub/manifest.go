package fakegithub

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Manifest is what an app may be made from. Its fields are those of GitHub's
// documentation; any other is refused.
type Manifest struct {
	Name                  string            `json:"name"`
	URL                   string            `json:"url"`
	HookAttributes        *HookAttributes   `json:"hook_attributes"`
	RedirectURL           string            `json:"redirect_url"`
	CallbackURLs          []string          `json:"callback_urls"`
	SetupURL              string            `json:"setup_url"`
	Description           string            `json:"description"`
	Public                bool              `json:"public"`
	DefaultEvents         []string          `json:"default_events"`
	DefaultPermissions    map[string]string `json:"default_permissions"`
	RequestOAuthOnInstall bool              `json:"request_oauth_on_install"`
	SetupOnUpdate         bool              `json:"setup_on_update"`
}

// HookAttributes are the webhook of a manifest.
type HookAttributes struct {
	URL    string `json:"url"`
	Active bool   `json:"active"`
}

// parseManifest applies GitHub's rules but the one on names, which a person can mend
// on the page.
func (s *Server) parseManifest(text string) (Manifest, error) {
	var m Manifest
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return m, fmt.Errorf("the manifest: %w", err)
	}
	if m.URL == "" || m.HookAttributes != nil && m.HookAttributes.URL == "" {
		return m, errors.New(`"url" wasn't supplied`) // GitHub does not say which
	}
	if len(m.CallbackURLs) > 10 {
		return m, errors.New("more than ten callback URLs")
	}
	for _, u := range append([]string{m.URL, m.RedirectURL, m.SetupURL}, m.CallbackURLs...) {
		if p, err := url.Parse(u); u != "" && (err != nil || p.Host == "" || p.Scheme != "http" && p.Scheme != "https") {
			return m, fmt.Errorf("%q is not a valid URL", u)
		}
	}
	return m, s.spec.permissions(m.DefaultPermissions)
}

// maxName is the longest name of an app.
const maxName = 34

// checkName says what is wrong with the name of a new app, or nothing.
func (s *Server) checkName(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "Name can't be blank"
	case len([]rune(name)) > maxName:
		return "Name is too long (maximum is 34 characters)"
	}
	for _, a := range s.apps {
		if a.Slug == slugOf(name) {
			return "Name is already taken"
		}
	}
	return ""
}

func slugOf(name string) string {
	return strings.Trim(regexp.MustCompile(`[^a-z0-9_]+`).ReplaceAllString(strings.ToLower(name), "-"), "-")
}
