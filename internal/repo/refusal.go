package repo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// refusals are what every source of keys came to.
type refusals []refusedKey

type refusedKey struct {
	source string // empty: no key
	err    error
	tried  bool // the server said so, not the source
}

// refusal says why none of the keys opens a repository, and what would. The last of
// them was no key at all, or the helper's, so there is one at least.
func (a *access) refusal(address string, no refusals) error {
	const op = "repo.Resolve"
	for _, one := range no {
		var sso *ssoError
		if errors.As(one.err, &sso) {
			return one.err
		}
	}
	if !a.onGitHub(address) {
		return no[len(no)-1].err
	}
	org, name := ownerAndName(address)
	what := fmt.Sprintf("repository %s/%s is private or does not exist", org, name)
	for _, one := range no {
		if kind := errs.KindOf(one.err); !denied(one.err) {
			return errs.New(op, kind, errs.HintOf(one.err), "%s, and %s cannot be asked: %w", what, one.source, one.err)
		}
	}
	if a.App == nil {
		return errs.New(op, errs.Auth, "check the name; log in with gh auth login, set GH_TOKEN, or make an App: insightscli create-github-app",
			"%s%s%w", what, no.tried(), no.says())
	}
	if app := no[0]; app.source == a.appName() && !app.tried && errs.HintOf(app.err) != "" {
		return errs.New(op, errs.Auth, errs.HintOf(app.err), "%s: %w", what, app.err)
	}
	return errs.New(op, errs.Auth, fmt.Sprintf("check the name, or give the App access to %s/%s: %s", org, name, a.installPage()),
		"%s%s%w", what, no.tried(), no.says())
}

// serverWords are what a server had to say about a key, to stand at the end of a
// sentence.
type serverWords string

// Error implements error.
func (w serverWords) Error() string {
	if w == "" {
		return ""
	}
	return ": the server says: " + string(w)
}

// serverSays finds the words of a server in what git complained.
func serverSays(stderr string) serverWords {
	var words []string
	for line := range strings.SplitSeq(stderr, "\n") {
		said, ok := strings.CutPrefix(line, "remote: ")
		if said = strings.TrimSpace(said); ok && said != "" && !strings.EqualFold(said, "Repository not found.") {
			words = append(words, said)
		}
	}
	return serverWords(clip(strings.Join(words, " ")))
}

// says is what a server said about one of the keys.
func (r refusals) says() serverWords {
	for _, one := range r {
		var words serverWords
		if one.source != "" && errors.As(one.err, &words) && words != "" {
			return words
		}
	}
	return ""
}

// tried names the keys that were refused.
func (r refusals) tried() string {
	var names []string
	for _, one := range r {
		if one.source != "" && one.tried {
			names = append(names, one.source)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; it was not opened by " + strings.Join(names, ", ")
}

func (a *access) base() string {
	if a.GitHub == "" {
		return defaultGitHub
	}
	return strings.TrimRight(a.GitHub, "/")
}

// installPage is where a person chooses what the App may see.
func (a *access) installPage() string {
	if a.AppSlug == "" {
		return a.base() + "/settings/installations"
	}
	return a.base() + "/apps/" + url.PathEscape(a.AppSlug) + "/installations/new"
}

// ssoError is a key that its owner has yet to authorize for an organization.
type ssoError struct{ error }

// Unwrap gives the cause to errors.As.
func (e *ssoError) Unwrap() error { return e.error }

// singleSignOn recognises what GitHub says about a key that single sign-on keeps out.
func singleSignOn(address string, err error) error {
	says := stderrOf(err)
	low := strings.ToLower(says)
	if !strings.Contains(low, "saml sso") && !strings.Contains(low, "single sign-on") {
		return nil
	}
	page := ""
	for _, word := range strings.Fields(says) {
		if strings.HasPrefix(word, "https://") && strings.Contains(word, "/sso") {
			page = clip(strings.Trim(word, ".,'\"<>()"))
		}
	}
	org, _ := ownerAndName(address)
	if u, uerr := url.Parse(address); page == "" && uerr == nil {
		page = u.Scheme + "://" + u.Host + "/orgs/" + url.PathEscape(org) + "/sso"
	}
	return errs.New("repo.Resolve", errs.Auth, "authorize the token for the organization: "+page,
		"%w", &ssoError{fmt.Errorf("organization %s asks for single sign-on, and the token is not authorized for it: %w", org, err)})
}

func saysCode(err error, codes ...string) bool {
	low := strings.ToLower(stderrOf(err))
	for _, c := range codes {
		if strings.Contains(low, "returned error: "+c) {
			return true
		}
	}
	return false
}

// rateLimited recognises a server that was asked too often.
func rateLimited(err error) bool {
	return saysCode(err, "429") || saysCode(err, "403") && strings.Contains(strings.ToLower(stderrOf(err)), "rate limit")
}

// movedAway recognises a redirect that git was not to follow.
func movedAway(err error) bool { return saysCode(err, "301", "302", "303", "307", "308") }

// newAddress asks a server where it has put a repository. The answer is taken only
// where it stays on that server: the key is for no other.
func (a *access) newAddress(ctx context.Context, s server) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	const ask = "/info/refs?service=git-upload-pack"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+ask, nil)
	if err != nil {
		return "", fmt.Errorf("ask for the new address of %s: %w", s.url, err)
	}
	if !s.grant.anonymous() {
		req.Header.Set("Authorization", s.grant.header.Reveal())
	}
	client := http.Client{Timeout: askBound}
	if a.Client != nil {
		client = *a.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return "", errs.New("repo.Resolve", errs.Unavailable, "check the address and the network", "repository %s did not answer: %w", s.url, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read only
	to, err := resp.Location()
	if err != nil {
		return "", errs.New("repo.Resolve", errs.Unavailable, "try again", "repository %s has moved, but its server does not say where", s.url)
	}
	next := strings.TrimSuffix(strings.TrimSuffix(to.String(), ask), "/")
	if !sameOrigin(next, s.url) || next == s.url {
		return "", errs.New("repo.Resolve", errs.Conflict, "give the new address if you trust it",
			"the server of %s redirects to %s, where no credential of it is sent", s.url, to.Scheme+"://"+to.Host)
	}
	r, err := Parse(next)
	if err != nil {
		return "", err
	}
	return r.URL, nil
}
