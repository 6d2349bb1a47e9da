package ghapp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-github/v62/github"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
)

// Check says what to verify.
type Check struct {
	ClientID   string
	PrivateKey secret.String // in any form that NormalKey takes
	// AppID, if it is known, is tried as the issuer too: servers before 3.14 take no other.
	AppID  int64
	APIURL string // "" is that of github.com
	// Fresh says that the app was created a moment ago. GitHub may not know it yet, so
	// it is asked again for a while.
	Fresh bool
	// Slug, Owner and Permissions are what the app should have; what is left out is not
	// compared.
	Slug, Owner string
	Permissions map[string]string

	Client *http.Client // nil is one with a time limit
}

// App is an app as GitHub knows it.
type App struct {
	ID            int64
	Slug, Name    string
	Owner         string
	HTMLURL       string
	Permissions   map[string]string // name to read, write or admin
	Installations int

	// Skew is how far this machine's clock is ahead of GitHub's; 0 if that is little.
	Skew time.Duration
	// Differences say in what way the app is not the one that was asked for.
	Differences []Difference
}

// Difference is one thing that should be otherwise.
type Difference struct {
	What       string // slug, owner, or the name of a permission
	Have, Want string // Have may be ""
}

const (
	// tokenLife stays below the ten minutes that GitHub allows, by its own clock.
	tokenLife = 8 * time.Minute
	// tokenAge dates tokens back: a clock may be a little ahead.
	tokenAge = time.Minute
	// smallSkew is what tokenAge makes up for, and not worth a word.
	smallSkew = 30 * time.Second
)

// settling are the pauses while GitHub gets to know a new app.
func settling() []time.Duration {
	return []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second}
}

// Verify asks GitHub which app the key and the client ID belong to. It writes nothing,
// there or here.
func Verify(ctx context.Context, c Check) (App, error) {
	return verify(ctx, c, pause)
}

func verify(ctx context.Context, c Check, pause func(context.Context, time.Duration) error) (App, error) {
	if err := checkClientID(c.ClientID); err != nil {
		return App{}, err
	}
	api, err := parseAPI(c.APIURL)
	if err != nil {
		return App{}, err
	}
	_, key, err := readKey(c.PrivateKey)
	if err != nil {
		return App{}, err
	}
	v := verifier{Check: c, api: api, sign: func(claims jwt.Claims) (string, error) {
		return jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(key)
	}}
	found, err := v.ask(ctx)
	if c.Fresh {
		for _, d := range settling() {
			if err == nil || !mayPass(err) || pause(ctx, d) != nil {
				break
			}
			found, err = v.ask(ctx)
		}
	}
	if err != nil {
		return App{}, v.explain(ctx, err)
	}
	return v.compare(found)
}

// pause waits, or returns why it did not.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mayPass reports whether an error can be that of an app that is too new.
func mayPass(err error) bool {
	status := statusOf(err)
	return status == http.StatusUnauthorized || status == http.StatusNotFound || status >= http.StatusInternalServerError
}

// checkClientID knows the commonest mistake by its looks.
func checkClientID(id string) error {
	const op = "ghapp.Verify"
	const hint = "copy the Client ID, which begins with Iv, from the app's settings page"
	if _, err := strconv.ParseUint(id, 10, 64); err == nil {
		return errs.New(op, errs.Config, hint, "%q is the App ID, not the client ID", id)
	}
	if !strings.HasPrefix(id, clientIDPrefix) {
		return errs.New(op, errs.Config, hint, "%q is no client ID of a GitHub App", id)
	}
	return nil
}

// verifier asks with one key.
type verifier struct {
	Check
	api  string
	sign func(jwt.Claims) (string, error)
	skew time.Duration // of the last answer
}

// ask asks as the client ID, once more by GitHub's clock if ours is the trouble, and
// once more as the App ID if that is known.
func (v *verifier) ask(ctx context.Context) (*github.App, error) {
	found, err := v.get(ctx, v.ClientID, 0)
	if statusOf(err) == http.StatusUnauthorized && v.skew.Abs() > smallSkew {
		found, err = v.get(ctx, v.ClientID, v.skew)
	}
	if statusOf(err) == http.StatusUnauthorized && v.AppID != 0 {
		byID, errID := v.get(ctx, strconv.FormatInt(v.AppID, 10), v.skew)
		if errID == nil {
			return byID, nil
		}
	}
	return found, err
}

// get is one call. Ahead is how far our clock is ahead of the truth.
func (v *verifier) get(ctx context.Context, issuer string, ahead time.Duration) (*github.App, error) {
	now := time.Now()
	token, err := v.sign(newClaims(issuer, now.Add(-ahead)))
	if err != nil {
		return nil, err
	}
	client, err := newClient(v.Client, v.api)
	if err != nil {
		return nil, err
	}
	found, resp, err := client.WithAuthToken(token).Apps.Get(ctx, "")
	if resp != nil {
		v.skew = skewOf(resp.Header, now)
	}
	return found, err
}

// skewOf is how far now is ahead of the Date of an answer, which is in whole seconds.
func skewOf(h http.Header, now time.Time) time.Duration {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	if skew := now.Sub(date).Round(time.Second); skew.Abs() > smallSkew {
		return skew
	}
	return 0
}

// compare describes the app and how it differs from the one that was asked for.
func (v *verifier) compare(found *github.App) (App, error) {
	a := App{
		ID: found.GetID(), Slug: found.GetSlug(), Name: found.GetName(), Owner: found.GetOwner().GetLogin(),
		HTMLURL: found.GetHTMLURL(), Installations: found.GetInstallationsCount(), Skew: v.skew,
		Permissions: map[string]string{},
	}
	// go-github has a field for each permission; the names are in their tags.
	text, err := json.Marshal(found.GetPermissions())
	if err == nil {
		err = json.Unmarshal(text, &a.Permissions)
	}
	if err != nil {
		return a, fmt.Errorf("read the permissions of the app: %w", err)
	}
	a.Differences = v.differences(&a)
	return a, nil
}

// explain turns what GitHub says into what is wrong.
func (v *verifier) explain(ctx context.Context, err error) error {
	const op = "ghapp.Verify"
	if ctx.Err() != nil {
		return interrupted(ctx, op, "", "while GitHub was asked about the app")
	}
	switch status := statusOf(err); {
	case isRateLimit(err), status == http.StatusTooManyRequests:
		return errs.New(op, errs.Unavailable, "", "GitHub limits how often it may be asked: %w", plain(err))
	case status == http.StatusUnauthorized && v.skew != 0:
		return errs.New(op, errs.Auth, "set the clock of this machine, then check again",
			"GitHub refuses the key (%w), and the clock of this machine is %s", plain(err), Ahead(v.skew))
	case status == http.StatusUnauthorized:
		return errs.New(op, errs.Auth, "copy the client ID and a new private key from the settings page of one app",
			"GitHub refuses the key for the client ID %s: %w", v.ClientID, plain(err))
	case status == http.StatusNotFound:
		return errs.New(op, errs.Auth, "create the app, or copy the client ID from its settings page",
			"GitHub knows no app with the client ID %s", v.ClientID)
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError:
		return errs.New(op, errs.Auth, "", "GitHub refuses the app: %w", plain(err))
	}
	return errs.New(op, errs.Unavailable, "check the connection to "+v.api, "ask GitHub about the app: %w", plain(err))
}

// Ahead puts a skew in words.
func Ahead(skew time.Duration) string {
	if skew < 0 {
		return (-skew).String() + " behind GitHub's"
	}
	return skew.String() + " ahead of GitHub's"
}
