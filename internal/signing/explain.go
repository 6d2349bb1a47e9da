package signing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v62/github"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/ghclient"
)

const permissionHint = "give the GitHub App write access to contents and pull requests (and to workflows, for files" +
	" in .github/workflows), and accept that where it is installed"

// statusError is a refusal by its HTTP status.
type statusError struct {
	status  int
	message string
}

// Error implements error.
func (e *statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", e.status, e.message))
}

// explain turns what stands in the way of a request into what is wrong. What is
// "upload a file", for example.
func explain(ctx context.Context, op, what string, h http.Header, err error) error {
	var known *errs.Error
	if errors.As(err, &known) {
		return err // of the source of tokens
	}
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		k := errs.KindOf(cause)
		if errors.Is(cause, context.DeadlineExceeded) {
			k = errs.Timeout
		}
		return errs.New(op, k, "", "interrupted: %s: %w", what, cause)
	}
	if page := ghclient.SSO(h); page != "" {
		return errs.New(op, errs.Auth, "authorize the token at "+page, "%s: the organization asks for single sign-on", what)
	}
	err = plain(err)
	var refused *statusError
	if !errors.As(err, &refused) {
		return errs.New(op, errs.Unavailable, "check the connection to GitHub, then try again", "%s: %w", what, err)
	}
	switch s := refused.status; {
	case s == http.StatusTooManyRequests, strings.Contains(refused.message, "rate limit"):
		return errs.New(op, errs.Unavailable, "wait a while, then try again", "%s: GitHub limits how often it may be asked", what)
	case s >= http.StatusMultipleChoices && s < http.StatusBadRequest:
		return errs.New(op, errs.Conflict, "set the address of origin to its new name, then try again", "%s: the repository was renamed or moved", what)
	case strings.Contains(refused.message, "archived"):
		return errs.New(op, errs.Conflict, "unarchive it in its settings", "%s: the repository is archived: it can only be read", what)
	case s == http.StatusUnauthorized:
		return errs.New(op, errs.Auth, "check the GitHub App's key", "%s: GitHub does not take the token: %w", what, err)
	case s == http.StatusForbidden:
		return errs.New(op, errs.Auth, permissionHint, "%s: GitHub refuses: %w", what, err)
	case s == http.StatusNotFound:
		return errs.New(op, errs.NotFound, permissionHint, "%s: GitHub refuses: %w", what, err)
	case s >= http.StatusInternalServerError:
		return errs.New(op, errs.Unavailable, "try again", "%s: GitHub is in trouble: %w", what, err)
	}
	return errs.New(op, errs.Conflict, "", "%s: GitHub refuses: %w", what, err)
}

// plain is an error of the API as a statusError where it is one, and without
// addresses.
func plain(err error) error {
	var e *github.ErrorResponse
	var primary *github.RateLimitError
	var secondary *github.AbuseRateLimitError
	var u *url.Error
	switch {
	case errors.As(err, &e) && e.Response != nil:
		said := []string{e.Message}
		for _, one := range e.Errors {
			said = append(said, one.Message)
		}
		return &statusError{e.Response.StatusCode, strings.TrimSpace(strings.Join(said, " "))}
	case errors.As(err, &primary), errors.As(err, &secondary):
		return &statusError{http.StatusTooManyRequests, "rate limit"}
	case errors.As(err, &u):
		return u.Err
	}
	return err
}

// statusOf is the HTTP status of an error, or 0.
func statusOf(err error) int {
	var e *statusError
	if errors.As(plain(err), &e) {
		return e.status
	}
	return 0
}

// headerOf is the header of an answer, which may be nil.
func headerOf(resp *github.Response) http.Header {
	if resp == nil || resp.Response == nil {
		return nil
	}
	return resp.Header
}
