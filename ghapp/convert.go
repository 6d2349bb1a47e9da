package ghapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
)

// Result is a new app, with what GitHub shows of it only once.
type Result struct {
	ClientID     string // begins with Iv
	ClientSecret secret.String
	Slug         string
	PrivateKey   secret.String // as NormalKey returns it

	ID         int64 // the App ID, which is not the client ID
	Name       string
	Owner      string
	HTMLURL    string
	InstallURL string // where a person installs it
	APIURL     string // of the GitHub it lives on
}

const (
	// maxAnswer bounds what is read of an answer; a whole one has 5 KB.
	maxAnswer = 1 << 20
	// apiTimeout bounds one call.
	apiTimeout = 30 * time.Second
)

// trade is what listening and pasting have in common: one code for one app.
type trade struct {
	o      Options
	site   site
	states stateKey
	kept   string // where the answer is, once there is one
}

func newTrade(o Options) (*trade, error) {
	s, err := o.complete()
	if err != nil {
		return nil, err
	}
	return &trade{o: o, site: s, states: newStateKey()}, checkKeep(o.Keep)
}

// Confirm says that the result is safe elsewhere: the kept answer is removed. It may
// be called more than once.
func (t *trade) Confirm() error {
	if t.kept == "" {
		return nil
	}
	if err := os.Remove(t.kept); err != nil && !errors.Is(err, os.ErrNotExist) {
		return errs.New("ghapp.Confirm", errs.Incomplete, "remove "+t.kept, "remove GitHub's answer: %w", err)
	}
	t.kept = ""
	return nil
}

// convert trades the code. It is called once: GitHub takes a code once, and an answer
// that is lost stays lost.
func (t *trade) convert(ctx context.Context, code string) (Result, error) {
	answer, err := t.exchange(ctx, code)
	if err != nil {
		return Result{}, t.explain(ctx, err)
	}
	// A cut answer is not worth keeping, and one that is whole is kept before anything
	// else can go wrong with it.
	if t.o.Keep != "" && json.Valid(answer) {
		if t.kept, err = keep(t.o.Keep, answer); err != nil {
			t.o.Notify(fmt.Errorf("keep a copy of GitHub's answer: %w", err))
		}
	}
	r, err := t.site.parseAnswer(answer)
	if err == nil {
		return r, nil
	}
	hint := t.recovery()
	switch {
	case errors.Is(err, errNoKey): // nothing in the answer is of use
		err = errors.Join(err, t.Confirm())
	case t.kept != "":
		hint += "; its answer is in " + t.kept
	}
	return Result{}, errs.New("ghapp.Convert", errs.Incomplete, hint, "%w", err)
}

// exchange is the one call.
func (t *trade) exchange(ctx context.Context, code string) ([]byte, error) {
	client, err := newClient(t.o.Client, t.site.api)
	if err != nil {
		return nil, err
	}
	req, err := client.NewRequest(http.MethodPost, "app-manifests/"+url.PathEscape(code)+"/conversions", nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.BareDo(ctx, req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the answer was cut: %w", err)
	}
	return answer, nil
}

// newClient asks the API at api. Redirects are not followed: they could lead a code or
// a token elsewhere.
func newClient(c *http.Client, api string) (*github.Client, error) {
	base, err := url.Parse(api + "/")
	if err != nil {
		return nil, err
	}
	client := github.NewClient(httpClient(c))
	client.BaseURL, client.UserAgent = base, "insightscli"
	return client, nil
}

// httpClient is c, or one with a time limit, that stays where it is sent.
func httpClient(c *http.Client) *http.Client {
	own := http.Client{Timeout: apiTimeout}
	if c != nil {
		own = *c
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// explain says why there is no app in our hands, and what to do about the one on GitHub.
func (t *trade) explain(ctx context.Context, err error) error {
	const op = "ghapp.Convert"
	if ctx.Err() != nil {
		return interrupted(ctx, op, t.recovery(), "while GitHub was asked for the app")
	}
	switch status := statusOf(err); {
	case status == http.StatusNotFound:
		return errs.New(op, errs.Conflict, t.recovery(), "GitHub does not know the code: it was used before, or is older than an hour")
	case status == http.StatusTooManyRequests || isRateLimit(err):
		return errs.New(op, errs.Unavailable, t.recovery(), "GitHub limits how often it may be asked: %w", plain(err))
	case status >= http.StatusInternalServerError || status == 0:
		return errs.New(op, errs.Unavailable, t.recovery(), "ask GitHub for the app: %w", plain(err))
	default:
		return errs.New(op, errs.Conflict, t.recovery(), "GitHub refuses to hand out the app: %w", plain(err))
	}
}

// interrupted is the error of a context that ended: by a signal, or by its time limit.
func interrupted(ctx context.Context, op, hint, when string) error {
	cause := context.Cause(ctx)
	kind := errs.KindOf(cause)
	if errors.Is(cause, context.DeadlineExceeded) {
		kind = errs.Timeout
	}
	return errs.New(op, kind, hint, "interrupted %s: %w", when, cause)
}

// recovery is what to do when the click was made and the answer never came.
func (t *trade) recovery() string {
	return fmt.Sprintf("the app %q may exist on GitHub all the same: delete it at %s (Advanced), then create it again",
		t.o.Name, t.site.appsURL(t.o.Org))
}

// errNoKey is an answer whose pem is null: GitHub made an app without a key.
var errNoKey = errors.New("GitHub's answer has no private key")

// parseAnswer reads GitHub's answer. No error quotes it: it holds a key.
func (s site) parseAnswer(answer []byte) (Result, error) {
	var c github.AppConfig
	if err := json.Unmarshal(answer, &c); err != nil {
		return Result{}, errors.New("GitHub's answer is not what was expected, or was cut")
	}
	r := Result{
		ClientID: c.GetClientID(), ClientSecret: secret.New(c.GetClientSecret()), Slug: c.GetSlug(),
		ID: c.GetID(), Name: c.GetName(), Owner: c.GetOwner().GetLogin(), HTMLURL: c.GetHTMLURL(), APIURL: s.api,
	}
	switch {
	case c.GetPEM() == "":
		return Result{}, errNoKey
	case !strings.HasPrefix(r.ClientID, clientIDPrefix):
		return Result{}, fmt.Errorf("GitHub's answer has the client ID %q, which should begin with %s", r.ClientID, clientIDPrefix)
	case r.ClientSecret.Empty():
		return Result{}, errors.New("GitHub's answer has no client secret")
	case r.Slug == "":
		return Result{}, errors.New("GitHub's answer has no slug")
	}
	// The address is opened in a browser: only a page of this GitHub will do. Where it
	// lies differs between github.com, ghe.com and a server.
	if !strings.HasPrefix(r.HTMLURL, s.web+"/") {
		r.HTMLURL = s.web + "/apps/" + url.PathEscape(r.Slug)
	}
	r.InstallURL = r.HTMLURL + "/installations/new"
	var err error
	r.PrivateKey, err = NormalKey(secret.New(c.GetPEM()))
	return r, err
}

// clientIDPrefix begins every client ID, and no App ID.
const clientIDPrefix = "Iv"

// statusOf is the HTTP status of an error of the API, or 0.
func statusOf(err error) int {
	var e *github.ErrorResponse
	if errors.As(err, &e) && e.Response != nil {
		return e.Response.StatusCode
	}
	return 0
}

func isRateLimit(err error) bool {
	var primary *github.RateLimitError
	var secondary *github.AbuseRateLimitError
	return errors.As(err, &primary) || errors.As(err, &secondary)
}

// plain is an error of the API without its URL, in which the code stands.
func plain(err error) error {
	var e *github.ErrorResponse
	var u *url.Error
	switch {
	case errors.As(err, &e) && e.Response != nil:
		return fmt.Errorf("%d %s", e.Response.StatusCode, strings.TrimSpace(e.Message))
	case isRateLimit(err):
		return errors.New("try again later")
	case errors.As(err, &u):
		return u.Err
	}
	return err
}
