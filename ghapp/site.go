package ghapp

import (
	"net"
	"net/url"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// defaultBase is where the apps of most people live.
const defaultBase = "https://github.com"

// site is one GitHub: its pages and its API.
type site struct {
	web string // an origin, without a slash at the end
	api string // likewise, with its path
}

// newSite finds out where the API of base is, unless api says so. The API of
// github.com and of a tenant of ghe.com has a host of its own; a GitHub Enterprise
// Server's is a path.
func newSite(base, api string) (site, error) {
	web, err := parseOrigin("ghapp.Start", base, defaultBase)
	if err != nil {
		return site{}, err
	}
	if web.Hostname() == "www.github.com" {
		web.Host = "github.com"
	}
	if strings.HasPrefix(web.Hostname(), "api.") {
		return site{}, errs.New("ghapp.Start", errs.Usage, "give the address of the pages, such as "+defaultBase,
			"%q is the address of an API", base)
	}
	s := site{web: web.String()}
	switch host := web.Host; {
	case api != "":
		s.api, err = parseAPI(api)
	case host == "github.com" || strings.HasSuffix(host, ".ghe.com"):
		s.api = "https://api." + host
	default:
		s.api = s.web + "/api/v3"
	}
	return s, err
}

// parseAPI checks the address of an API; "" is that of github.com.
func parseAPI(api string) (string, error) {
	if api == "" {
		return "https://api.github.com", nil
	}
	u, err := parseHTTPS("ghapp.Verify", api)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// parseOrigin checks an address that has nothing but a host, and may lack the scheme.
func parseOrigin(op, text, def string) (*url.URL, error) {
	if text == "" {
		text = def
	}
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := parseHTTPS(op, text)
	if err != nil {
		return nil, err
	}
	if u.Path = strings.TrimRight(u.Path, "/"); u.Path != "" {
		return nil, errs.New(op, errs.Usage, "leave out all that comes after the host", "%q is more than the address of a GitHub", text)
	}
	u.Host = strings.ToLower(u.Host)
	return u, nil
}

// parseHTTPS refuses what would send a secret in the clear, other than to this machine.
func parseHTTPS(op, text string) (*url.URL, error) {
	hint := "give an address such as https://github.example.com"
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errs.New(op, errs.Usage, hint, "%q is not the address of a GitHub", text)
	case u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()):
		return u, nil
	}
	return nil, errs.New(op, errs.Usage, hint, "%q is not an https address", text)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// newAppURL is where a manifest is posted to.
func (s site) newAppURL(org, state string) string {
	return s.appsURL(org) + "/new?state=" + url.QueryEscape(state)
}

// appsURL is where a person finds the apps of an owner, and deletes one.
func (s site) appsURL(org string) string {
	if org == "" {
		return s.web + "/settings/apps"
	}
	return s.web + "/organizations/" + url.PathEscape(org) + "/settings/apps"
}

// parseOrg checks the name of an organization, which may be its address.
func (s site) parseOrg(text string) (string, error) {
	org := strings.TrimSuffix(strings.TrimPrefix(text, s.web+"/"), "/")
	if org == "" {
		if text == "" {
			return "", nil
		}
	} else if validOrg(org) {
		return org, nil
	}
	return "", errs.New("ghapp.Start", errs.Usage,
		"give the name as it stands in its address, "+s.web+"/NAME: letters, digits and single hyphens",
		"%q is not the name of an organization", text)
}

// maxOrg is the longest name of an organization.
const maxOrg = 39

func validOrg(org string) bool {
	if len(org) > maxOrg || strings.HasPrefix(org, "-") || strings.HasSuffix(org, "-") || strings.Contains(org, "--") {
		return false
	}
	for _, r := range org {
		if r != '-' && !alphanumeric(r) {
			return false
		}
	}
	return true
}

func alphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
