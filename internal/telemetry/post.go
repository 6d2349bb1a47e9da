package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/secret"
)

const (
	// exportTimeout bounds one request.
	exportTimeout = 5 * time.Second
	// maxAnswer is how much of an answer is read.
	maxAnswer = 64 << 10
)

// receiver is where OTLP goes.
type receiver struct {
	url     string
	token   secret.String
	headers http.Header // beside those that every request has
	client  *http.Client
}

// newClient makes the client for requests to receivers. It follows no redirection, which
// would carry the data, and perhaps the token, to another place than the one that was named.
func newClient(proxy func(*http.Request) (*url.URL, error)) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: proxy, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
			TLSHandshakeTimeout: exportTimeout, MaxResponseHeaderBytes: maxAnswer,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// hostURL is a URL for calls of the host's own, to which host.docker.internal, as
// containers call it, is this machine.
func hostURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("not an http:// or https:// URL") // may hold a password: not repeated
	}
	if strings.EqualFold(u.Hostname(), "host.docker.internal") {
		u.Host = "127.0.0.1" + u.Host[len("host.docker.internal"):]
	}
	return u.String(), nil
}

// refusedError is an answer that says no. Retry says that it may be another one later.
type refusedError struct {
	code  int
	retry bool
	after time.Duration // what the receiver asks to wait; 0: it does not say
}

// Error implements error.
func (e *refusedError) Error() string {
	return fmt.Sprintf("the answer is %d %s", e.code, http.StatusText(e.code))
}

// post sends one request. rejected is how many items the receiver took none of, although
// it took the request.
func (r *receiver) post(ctx context.Context, body []byte) (rejected int, err error) {
	ctx, cancel := context.WithTimeout(ctx, exportTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	for name, v := range r.headers {
		req.Header[name] = v
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "insightscli")
	if !r.token.Empty() {
		req.Header.Set("Authorization", "Bearer "+r.token.Reveal())
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, brief(err)
	}
	defer func() { _ = resp.Body.Close() }() // read as far as it matters
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case resp.StatusCode/100 != 2:
		return 0, refusal(resp)
	case err != nil:
		return 0, nil // it was taken
	}
	return partial(answer), nil
}

// brief is an error without the URL, which may hold a password.
func brief(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s: %w", exportTimeout, err)
	}
	return err
}

func refusal(resp *http.Response) error {
	e := &refusedError{code: resp.StatusCode}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.retry = true
		if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
			e.after = min(time.Duration(n)*time.Second, maxPause)
		}
	}
	return e
}

// partial is how many items of a request were rejected.
func partial(answer []byte) int {
	var a struct {
		Partial struct {
			Logs  json.Number `json:"rejectedLogRecords"`
			Spans json.Number `json:"rejectedSpans"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return 0 // no JSON: all was taken
	}
	logs, _ := a.Partial.Logs.Int64()
	spans, _ := a.Partial.Spans.Int64()
	return int(max(0, logs) + max(0, spans))
}

// lasting reports whether the same request would fail again.
func lasting(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused) && !refused.retry
}
