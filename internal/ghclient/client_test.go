package ghclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
)

// pauses writes down instead of waiting.
type pauses []time.Duration

func (p *pauses) wait(ctx context.Context, d time.Duration) error {
	*p = append(*p, d)
	return ctx.Err()
}

// server answers with one status after the other, the last for ever.
func server(t *testing.T, header http.Header, statuses ...int) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost && string(body) != "body" {
			t.Errorf("the body is %q", body)
		}
		i := min(int(n.Add(1)), len(statuses))
		status := statuses[i-1]
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		if status >= 400 {
			for k, v := range header {
				w.Header()[k] = v
			}
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s, &n
}

func post(t *testing.T, c *http.Client, url string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	return resp, err
}

func TestWhatIsTriedAgain(t *testing.T) {
	reset := strconv.FormatInt(time.Now().Add(10*time.Second).Unix(), 10)
	for name, tt := range map[string]struct {
		statuses []int
		header   http.Header
		want     int // 0 is an error
		pauses   int
	}{
		"at once":             {[]int{201}, nil, 201, 0},
		"a cut connection":    {[]int{0, 201}, nil, 201, 1},
		"a broken server":     {[]int{502, 503, 201}, nil, 201, 2},
		"broken for good":     {[]int{500}, nil, 500, 2},
		"cut for good":        {[]int{0}, nil, 0, 2},
		"a refusal":           {[]int{422}, nil, 422, 0},
		"forbidden":           {[]int{403}, nil, 403, 0},
		"a secondary limit":   {[]int{403, 403, 201}, http.Header{"Retry-After": {"7"}}, 201, 2},
		"a limit, unsaid":     {[]int{429, 201}, nil, 201, 1},
		"the primary limit":   {[]int{403, 201}, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {reset}}, 201, 1},
		"a limit too long":    {[]int{403}, http.Header{"Retry-After": {"3600"}}, 403, 0},
		"a limit for ever":    {[]int{403}, http.Header{"Retry-After": {"60"}}, 403, 3},
		"a limit and a break": {[]int{429, 500, 201}, nil, 201, 2},
		"no wait, for ever":   {[]int{429}, http.Header{"Retry-After": {"0"}}, 429, 180},
		"longer than time":    {[]int{429}, http.Header{"Retry-After": {"18446744073"}}, 429, 0},
		"the end of time":     {[]int{403}, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"9223372036854775807"}}, 403, 0},
		"long ago":            {[]int{403}, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"-9223372036854775808"}}, 403, 180},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := server(t, tt.header, tt.statuses...)
			var waits pauses
			told := 0
			c := New(Options{Pause: waits.wait, Notify: func(string) { told++ }})
			resp, err := post(t, c, s.URL)
			status := 0
			if err == nil {
				status = resp.StatusCode
			}
			if status != tt.want || len(waits) != tt.pauses {
				t.Errorf("status %d, err %v, pauses %v", status, err, waits)
			}
		})
	}
}

// Some secondary limits have no header to tell them by.
func TestALimitThatOnlyItsTextTells(t *testing.T) {
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n++; n == 1 {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `{"message":"You have exceeded a secondary rate limit."}`)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"message":"no"}`)
	}))
	defer s.Close()
	var waits pauses
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
	resp, err := New(Options{Pause: waits.wait}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if string(body) != `{"message":"no"}` || err != nil || len(waits) != 1 || waits[0] != time.Minute {
		t.Errorf("%q, %v, %v", body, err, waits)
	}
}

func TestAnInterruptEndsAWait(t *testing.T) {
	s, n := server(t, http.Header{"Retry-After": {"60"}}, 429)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the reason")
	c := New(Options{Notify: func(string) { cancel(reason) }})
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if _, err := c.Do(req); !errors.Is(err, reason) || n.Load() != 1 {
		t.Errorf("%v after %d", err, n.Load())
	}
}

func TestPauseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := Pause(t.Context(), time.Hour); err != nil || time.Since(start) != time.Hour {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// A token that ends while a request waits must not be sent again.
func TestEveryTryAsksForTheToken(t *testing.T) {
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		if len(seen) < 2 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer s.Close()
	n := 0
	var waits pauses
	c := New(Options{Pause: waits.wait, Token: func(context.Context) (secret.String, error) {
		n++
		return secret.New("t" + strconv.Itoa(n)), nil
	}})
	if _, err := post(t, c, s.URL); err != nil || strings.Join(seen, " ") != "Bearer t1 Bearer t2" {
		t.Errorf("%q, %v", seen, err)
	}
}

// A token that was revoked is replaced once; that the next one is refused too is the
// answer.
func TestARefusedTokenIsReplaced(t *testing.T) {
	for _, good := range []string{"Bearer t2", "none"} {
		n := 1
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != good {
				w.WriteHeader(http.StatusUnauthorized)
			}
		}))
		var waits pauses
		c := New(Options{
			Pause: waits.wait, Refused: func() { n++ },
			Token: func(context.Context) (secret.String, error) { return secret.New("t" + strconv.Itoa(n)), nil },
		})
		resp, err := post(t, c, s.URL)
		if want := map[string]int{"Bearer t2": 200, "none": 401}[good]; err != nil || resp.StatusCode != want || n != 2 {
			t.Errorf("%s: %v, %v, token %d", good, resp, err, n)
		}
		s.Close()
	}
}

func TestNoTokenIsItsOwnError(t *testing.T) {
	var waits pauses
	c := New(Options{MaxWait: -1, Pause: waits.wait, Token: func(context.Context) (secret.String, error) {
		return secret.String{}, errs.New("x.Y", errs.Auth, "install it", "no app")
	}})
	if _, err := post(t, c, "http://127.0.0.1:1"); errs.KindOf(err) != errs.Auth || errs.HintOf(err) != "install it" || len(waits) > 0 {
		t.Errorf("%v, %v", err, waits)
	}
}

func TestRedirectsStayOnTheHost(t *testing.T) {
	var away atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { away.Add(1) }))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/renamed":
			http.Redirect(w, r, "/here", http.StatusTemporaryRedirect)
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/here":
			if r.Header.Get("Authorization") != "Bearer t" {
				w.WriteHeader(http.StatusUnauthorized)
			}
		}
	}))
	defer s.Close()
	c := New(Options{Token: func(context.Context) (secret.String, error) { return secret.New("t"), nil }})
	if resp, err := post(t, c, s.URL+"/renamed"); err != nil || resp.StatusCode != 200 {
		t.Errorf("%v, %v", resp, err)
	}
	if resp, err := post(t, c, s.URL+"/away"); err != nil || resp.StatusCode != 307 || away.Load() != 0 {
		t.Errorf("%v, %v", resp, err)
	}
}

// A redirect that would turn a request which writes into one which reads is not followed.
func TestARedirectKeepsTheMethod(t *testing.T) {
	for status, want := range map[int]int{301: 301, 302: 302, 307: 204, 308: 204} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); r.URL.Path == "/new" && (r.Method != http.MethodPost || string(body) != "body") {
				t.Errorf("%s %q", r.Method, body)
			}
			if r.URL.Path != "/new" {
				http.Redirect(w, r, "/new", status)
				return
			}
			w.WriteHeader(204)
		}))
		resp, err := post(t, New(Options{}), s.URL+"/old")
		if err != nil || resp.StatusCode != want {
			t.Errorf("%d: %v, %v", status, resp, err)
		}
		s.Close()
	}
}

func TestSSO(t *testing.T) {
	for header, want := range map[string]string{
		"": "", "required; url=https://github.com/orgs/a/sso?x=1": "https://github.com/orgs/a/sso?x=1",
		"required": "", "partial-results; organizations=1": "", "required; url=javascript:x": "",
	} {
		if got := SSO(http.Header{"X-Github-Sso": {header}}); got != want {
			t.Errorf("%q: %q", header, got)
		}
	}
}

// An answer without an end ends for whoever reads it.
func TestAnAnswerIsBounded(t *testing.T) {
	for name, size := range map[string]int64{"as much as may be": maxAnswer, "more": maxAnswer + 1} {
		t.Run(name, func(t *testing.T) {
			endless := transportFunc(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: io.NopCloser(io.LimitReader(zeros{}, size)), Request: r}, nil
			})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://github.test", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := New(Options{Base: &http.Client{Transport: endless}}).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			n, err := io.Copy(io.Discard, resp.Body)
			if whole := size <= maxAnswer; whole != (err == nil) || whole != (n == size) {
				t.Errorf("read %d bytes, then %v", n, err)
			}
		})
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
