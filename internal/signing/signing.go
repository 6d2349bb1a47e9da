package signing

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/ghclient"
	"github.com/Insights/insightscli/internal/secret"
)

// Repo names a repository on GitHub.
type Repo struct{ Owner, Name string }

// String is owner/name.
func (r Repo) String() string { return r.Owner + "/" + r.Name }

// Options say which GitHub is published to, and as whom.
type Options struct {
	APIURL string // "" is that of github.com
	// Token is asked for before every request: an installation token with write access
	// to contents, and to pull requests for PullRequest.
	Token func(context.Context) (secret.String, error)
	// Refused is told that GitHub does not take a token any more, before Token is asked
	// once more; nil is nobody.
	Refused func()
	// UserToken says that the tokens are a person's and not an installation's. GitHub
	// signs their commits only where it makes them itself, so less can be published:
	// see [ErrUserToken].
	UserToken bool

	Git     string   // the git program; "" is the one on PATH
	Environ []string // what git may find its way by: PATH, proxies, certificates

	Client *http.Client // nil is one with a time limit for each request
	Notify func(string) // told of a wait that the user would wonder about; nil is nobody
	// Pause waits; nil is a timer.
	Pause func(context.Context, time.Duration) error
}

// Client publishes to one GitHub.
type Client struct {
	o       Options
	http    *http.Client
	rest    *github.Client
	graphql string // address
	payload int    // bytes that one request of createCommitOnBranch takes
	web     string // where the pages and the repositories are
	git     *git
}

// New checks the options, and asks nobody.
func New(o Options) (*Client, error) {
	if o.APIURL == "" {
		o.APIURL = "https://api.github.com"
	}
	api := strings.TrimRight(o.APIURL, "/")
	base, err := url.Parse(api + "/")
	if err != nil || base.Host == "" || base.User != nil {
		return nil, errs.New("signing.New", errs.Config, "give an address such as https://api.github.com", "%q is not the address of an API", o.APIURL)
	}
	c := &Client{o: o, graphql: api + "/graphql", payload: maxPayload, git: newGit(o.Git, o.Environ)}
	c.web = strings.Replace(api, "://api.", "://", 1)
	if server, ok := strings.CutSuffix(api, "/api/v3"); ok {
		c.graphql, c.web = server+"/api/graphql", server
	}
	c.http = c.talk(o.Client)
	c.rest = github.NewClient(c.http)
	c.rest.BaseURL, c.rest.UserAgent = base, "insightscli"
	return c, nil
}

// talk is a client of the API over another.
func (c *Client) talk(base *http.Client) *http.Client {
	return ghclient.New(ghclient.Options{Token: c.o.Token, Refused: c.o.Refused, Base: base, Notify: c.o.Notify, Pause: c.o.Pause})
}

// Result is what was published.
type Result struct {
	SHA, URL string // of the last commit
	Verified bool
	// Commits are all that were made, the oldest first.
	Commits []Commit
	// Unchanged says that the branch had it all before.
	Unchanged bool
	// Warnings are what the user should know although it worked.
	Warnings []string
}

// Commit is a commit on GitHub.
type Commit struct{ SHA, URL string }

var (
	validName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	validOID  = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)
)

func (r Repo) check(op string) error {
	for _, name := range []string{r.Owner, r.Name} {
		if !validName.MatchString(name) || strings.Trim(name, ".") == "" {
			return errs.New(op, errs.Usage, "give it as owner/name", "%q is no repository on GitHub", r.String())
		}
	}
	return nil
}

// checkOIDs refuses what is not the full name of an object.
func checkOIDs(op string, oids ...string) error {
	for _, oid := range oids {
		if !validOID.MatchString(oid) {
			return errs.New(op, errs.Usage, "", "%q is not the full name of a git object", oid)
		}
	}
	return nil
}
