// Package ghclient is how this project talks to GitHub over HTTP: with a token that is
// asked for anew for each request, with patience where GitHub asks for it, and within
// bounds. It knows no operation of the API; those are of the packages that use it.
//
// # Invariants
//
// A request is tried again when it did not arrive, when its answer was lost or when
// the server broke, so it may have been done although an error is returned: callers
// send only what is harmless twice, or look afterwards. Every wait ends with the
// context. A redirect is followed on the same host only, since it would take the token
// along. The body of a request must be replayable (http.Request.GetBody).
package ghclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/secret"
)

// Options say how to talk. The zero value talks to anyone, without a token.
type Options struct {
	// Token is asked for before every request; nil sends none.
	Token func(context.Context) (secret.String, error)
	// Refused is told that GitHub did not take the token, which is asked for once more
	// then; nil tells nobody, and the answer stands.
	Refused func()
	// Base sends the requests; nil is a client with a time limit for each.
	Base *http.Client
	// Notify is told of a wait that the user would wonder about; nil is nobody.
	Notify func(string)
	// MaxWait bounds what one request waits for GitHub's limits, all waits together;
	// 0 is three minutes, less than 0 is none.
	MaxWait time.Duration
	// Pause waits; nil is a timer.
	Pause func(context.Context, time.Duration) error
}

const (
	requestTimeout = 2 * time.Minute // the largest blob, on a slow line
	defaultWait    = 3 * time.Minute
	tries          = 3
	firstPause     = 500 * time.Millisecond
	// secondaryWait is what GitHub recommends where it does not say how long.
	secondaryWait = time.Minute
	// leastWait keeps a limit that is over at once, and is there again, from being asked
	// without end; mostWait is more than anybody waits.
	leastWait    = time.Second
	mostWait     = 24 * time.Hour
	maxRedirects = 3
	// maxAnswer bounds an answer. The largest that is asked for lists a hundred pull
	// requests.
	maxAnswer = 64 << 20
)

// New returns a client that talks as o says.
func New(o Options) *http.Client {
	c := http.Client{Timeout: requestTimeout}
	if o.Base != nil {
		c = *o.Base
	}
	if o.MaxWait == 0 {
		o.MaxWait = defaultWait
	}
	if o.Pause == nil {
		o.Pause = Pause
	}
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	t := &transport{o: o, next: c.Transport, timeout: c.Timeout}
	if t.next == nil {
		t.next = http.DefaultTransport
	}
	// The limit is for one try; the waits between them have their own.
	c.Transport, c.Timeout = t, 0
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		from := via[len(via)-1].URL
		// After a 301 the standard client would only read what was to be written.
		if len(via) > maxRedirects || r.URL.Scheme != from.Scheme || r.URL.Host != from.Host || r.Method != via[0].Method {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return &c
}

// Pause waits, or returns why it did not.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type transport struct {
	o       Options
	next    http.RoundTripper
	timeout time.Duration
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.GetBody != nil {
		defer r.Body.Close() //nolint:errcheck // the tries read copies
	}
	var waited time.Duration
	for failures, refused := 0, false; ; {
		resp, err := t.try(r)
		if r.Context().Err() != nil {
			drop(resp)
			return nil, context.Cause(r.Context())
		}
		pause, limited := time.Duration(0), false
		if err == nil {
			pause, limited = limit(resp, time.Now())
		}
		switch {
		case err == nil && resp.StatusCode == http.StatusUnauthorized && t.o.Refused != nil && !refused && replayable(r):
			refused = true
			t.o.Refused()
		case limited && waited+pause <= t.o.MaxWait && replayable(r):
			waited += pause
			t.o.Notify(fmt.Sprintf("GitHub limits how often it may be asked: waiting %s", pause.Round(time.Second)))
		case !limited && again(resp, err) && failures < tries-1 && replayable(r):
			pause = firstPause << failures
			failures++
		default:
			return resp, err
		}
		drop(resp)
		if err := t.o.Pause(r.Context(), pause); err != nil {
			return nil, err
		}
	}
}

// try sends the request once.
func (t *transport) try(r *http.Request) (*http.Response, error) {
	ctx, cancel := r.Context(), context.CancelFunc(func() {})
	if t.timeout > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, t.timeout, fmt.Errorf("no answer within %s", t.timeout))
	}
	one := r.Clone(ctx)
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			cancel()
			return nil, err
		}
		one.Body = body
	}
	if t.o.Token != nil {
		token, err := t.o.Token(ctx)
		if err != nil {
			cancel()
			return nil, &tokenError{err}
		}
		one.Header.Set("Authorization", "Bearer "+token.Reveal())
	}
	resp, err := t.next.RoundTrip(one)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &cancelBody{&boundedBody{resp.Body, maxAnswer}, cancel}
	return resp, nil
}

// errTooMuch is an answer that nobody has asked for.
var errTooMuch = fmt.Errorf("the answer is longer than %d MiB", maxAnswer>>20)

// boundedBody is an error once more than so many bytes are read.
type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooMuch
	}
	return n, err
}

// cancelBody ends the time limit of a try with its body.
type cancelBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *cancelBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// tokenError is a token that could not be had.
type tokenError struct{ error }

// Unwrap gives the cause, with its kind and hint, to errors.As.
func (e *tokenError) Unwrap() error { return e.error }

func replayable(r *http.Request) bool {
	return r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
}

// again reports whether the next try may end otherwise.
func again(resp *http.Response, err error) bool {
	var none *tokenError
	if err != nil {
		return !errors.As(err, &none)
	}
	return resp.StatusCode >= http.StatusInternalServerError && resp.StatusCode != http.StatusNotImplemented || resp.StatusCode == 499
}

// drop gives up an answer.
func drop(resp *http.Response) {
	if resp == nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRefusal)) // so that the connection can be used again
	_ = resp.Body.Close()
}

// limit reports whether an answer is one of GitHub's limits, and how long to wait.
func limit(resp *http.Response, now time.Time) (time.Duration, bool) {
	h := resp.Header
	switch resp.StatusCode {
	case http.StatusForbidden, http.StatusTooManyRequests:
	case http.StatusOK: // of GraphQL, which says it in the body
		if h.Get("Retry-After") == "" && h.Get("X-RateLimit-Remaining") != "0" || !says(resp, `"RATE_LIMITED"`, "secondary rate limit") {
			return 0, false
		}
	default:
		return 0, false
	}
	if s, err := strconv.ParseUint(h.Get("Retry-After"), 10, 64); err == nil {
		return max(seconds(s), leastWait), true
	}
	if h.Get("X-RateLimit-Remaining") == "0" {
		at, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
		if err == nil {
			// The clock here may be wrong; what counts is GitHub's.
			if date, err := http.ParseTime(h.Get("Date")); err == nil {
				now = date
			}
			return seconds(uint64(max(at, now.Unix())-now.Unix())) + leastWait, true
		}
	}
	if resp.StatusCode == http.StatusTooManyRequests || says(resp, "secondary rate limit") { // its one mark
		return secondaryWait, true
	}
	return 0, false
}

// seconds are so many of them, or more than anybody waits.
func seconds(n uint64) time.Duration {
	return time.Duration(min(n, uint64(mostWait/time.Second))) * time.Second
}

// maxRefusal bounds what is read of a refusal.
const maxRefusal = 64 << 10

// says reports whether one of some words is in the beginning of an answer, which can be
// read again afterwards.
func says(resp *http.Response, words ...string) bool {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	resp.Body = &cancelBody{io.NopCloser(io.MultiReader(bytes.NewReader(text), resp.Body)), closer(resp.Body)}
	return err == nil && slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(text, []byte(w)) })
}

func closer(c io.Closer) func() {
	return func() { _ = c.Close() } // it was only read
}

// SSO is the page on which a person authorizes a token for an organization with
// single sign-on, if that is what the header of an answer asks for, or "".
func SSO(h http.Header) string {
	for part := range strings.SplitSeq(h.Get("X-GitHub-SSO"), ";") {
		if page, ok := strings.CutPrefix(strings.TrimSpace(part), "url="); ok {
			if u, err := url.Parse(page); err == nil && u.Scheme == "https" {
				return page
			}
		}
	}
	return ""
}
