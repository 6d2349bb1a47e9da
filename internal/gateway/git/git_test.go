package git

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// host is what a gateway asks, which remembers it.
type host struct {
	mu       sync.Mutex
	prefixes [][]string
	wants    []Wanted
	given    []string
	versions []int
	err      error
	upload   func(ctx context.Context, out io.Writer) error
}

func (h *host) gateway() *Gateway {
	return New(Config{
		Repos:   []Repo{{Path: "org/repo", Web: "https://github.com/Org/Repo"}, {Path: "org/repo-two", Web: "https://github.com/org/repo-two"}, {Path: "o/ssh"}},
		Refusal: "no\n",
		Refs: func(_ context.Context, _ int, prefixes []string) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.prefixes = append(h.prefixes, prefixes)
			return h.err
		},
		Objects: func(_ context.Context, _ int, w Wanted) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.wants = append(h.wants, w)
			return h.err
		},
		Upload: func(ctx context.Context, n int, x Exchange) error {
			if h.upload != nil {
				return h.upload(ctx, x.Out)
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			h.versions = append(h.versions, x.Version)
			if x.In != nil {
				body, _ := io.ReadAll(x.In)
				h.given = append(h.given, string(body))
			}
			_, err := io.WriteString(x.Out, "answer of "+strings.Repeat("I", n+1))
			return err
		},
	})
}

func ask(g http.Handler, method, path string, body []byte, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

func TestPaths(t *testing.T) {
	g := (&host{}).gateway()
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/org/repo.git/info/refs?service=git-upload-pack":     {200, "answer of I"},
		"/Org/Repo/info/refs?service=git-upload-pack":         {200, "answer of I"},
		"/org/repo-two.git/info/refs?service=git-upload-pack": {200, "answer of II"},
		"/org/repo.git/info/refs?service=git-receive-pack":    {403, "no\n"},
		"/org/repo.git/git-receive-pack":                      {403, "no\n"},
		"/org/repo.git/info/refs":                             {404, "only git fetch"},
		"/org/repo.git/git-upload-pack":                       {404, "only git fetch"}, // it is no POST
		"/org/repo.git/HEAD":                                  {404, "only git fetch"},
		"/org/repo.git/objects/info/packs":                    {404, "only git fetch"},
		"/org/other.git/info/refs?service=git-upload-pack":    {404, "no such repository"},
		"/o/ssh-two.git/info/refs?service=git-upload-pack":    {404, "no such repository"},
		"/": {404, "no such repository"},
		"/org/repo3.git/info/refs?service=git-upload-pack": {302, "https://github.com/Org/Repo3.git/info/refs?service=git-upload-pack"},
	} {
		w := ask(g, http.MethodGet, path, nil, "Git-Protocol", "version=2")
		if w.Code != want.code || !strings.Contains(w.Body.String()+w.Header().Get("Location"), want.text) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func lines(all ...string) []byte {
	var b strings.Builder
	for _, one := range all {
		if len(one) == 4 && strings.HasPrefix(one, "000") {
			b.WriteString(one)
			continue
		}
		b.WriteString(pktLine(one + "\n"))
	}
	return []byte(b.String())
}

const oidA, oidB, oidC = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "cccccccccccccccccccccccccccccccccccccccc"

func TestRequestsAreUnderstoodAndPassedOn(t *testing.T) {
	h := &host{}
	g := h.gateway()
	refs := lines("command=ls-refs", "agent=git/2", "0001", "peel", "ref-prefix refs/heads/", "ref-prefix HEAD", "0000")
	fetch := lines("command=fetch", "0001", "want "+oidA, "have "+oidB, "shallow "+oidC, "deepen 7", "want nonsense", "done", "0000")
	old := lines("want "+oidA+" side-band-64k ofs-delta", "deepen-since 1", "0000", "have "+oidB, "done")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(fetch)
	_ = z.Close()
	for _, body := range [][]byte{refs, fetch, old} {
		if w := ask(g, http.MethodPost, "/org/repo.git/git-upload-pack", body, "Git-Protocol", "version=2"); w.Code != 200 || w.Body.String() != "answer of I" {
			t.Fatal(w.Code, w.Body)
		}
	}
	if w := ask(g, http.MethodPost, "/org/repo.git/git-upload-pack", packed.Bytes(), "Content-Encoding", "gzip"); w.Code != 200 {
		t.Fatal(w.Code)
	}
	if len(h.prefixes) != 1 || !slices.Equal(h.prefixes[0], []string{"refs/heads/", "HEAD"}) {
		t.Errorf("%q", h.prefixes)
	}
	if len(h.wants) != 3 || h.wants[0].Depth != 7 || !h.wants[0].Deepen || h.wants[0].Wants[0] != oidA || len(h.wants[0].Wants) != 1 ||
		h.wants[0].Haves[0] != oidB || h.wants[0].Shallow[0] != oidC || !h.wants[1].Deepen || h.wants[1].Depth != 0 || h.wants[1].Haves[0] != oidB {
		t.Errorf("%+v", h.wants)
	}
	if !slices.Equal(h.given, []string{string(refs), string(fetch), string(old), string(fetch)}) || !slices.Equal(h.versions, []int{2, 2, 2, 0}) {
		t.Errorf("%q %v", h.given, h.versions)
	}
}

func TestWhatGoesWrongIsSaidInGitsWords(t *testing.T) {
	h := &host{err: errors.New("it is away\nfor good")}
	g := h.gateway()
	body := lines("command=ls-refs", "0000")
	if w := ask(g, http.MethodPost, "/org/repo.git/git-upload-pack", body); w.Code != 200 || w.Body.String() != pktLine("ERR it is away for good") {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if w := ask(g, http.MethodGet, "/org/repo.git/info/refs?service=git-upload-pack", nil); w.Body.String() != pktLine("ERR it is away for good") {
		t.Errorf("%q", w.Body)
	}
	h.err = errors.New(strings.Repeat("é", maxMessage))
	if w := ask(g, http.MethodPost, "/org/repo.git/git-upload-pack", body); w.Body.Len() > maxMessage+8 || !strings.HasSuffix(w.Body.String(), "é") {
		t.Errorf("%q", w.Body)
	}
}

func TestMalformedRequests(t *testing.T) {
	g := (&host{}).gateway()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, maxRequest+1))
	_ = z.Close()
	for name, c := range map[string]struct {
		body     []byte
		encoding string
		want     string
	}{
		"no length":  {[]byte("xyz!"), "", "malformed"},
		"too short":  {[]byte("00"), "", "malformed"},
		"cut":        {[]byte("0010want"), "", "malformed"},
		"not packed": {[]byte("0000"), "gzip", "read the request"},
		"a bomb":     {bomb.Bytes(), "gzip", "too long"},
		"encoding":   {[]byte("0000"), "br", "not known"},
	} {
		w := ask(g, http.MethodPost, "/org/repo.git/git-upload-pack", c.body, "Content-Encoding", c.encoding)
		if w.Code != 200 || !strings.Contains(w.Body.String(), "ERR ") || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %q", name, w.Code, w.Body)
		}
	}
}

// No more than a few requests are answered at a time, and one whose client has gone is none.
func TestRequestsAreBounded(t *testing.T) {
	entered, leave := make(chan struct{}, 2*maxAtOnce), make(chan struct{})
	h := &host{upload: func(context.Context, io.Writer) error { entered <- struct{}{}; <-leave; return nil }}
	g := h.gateway()
	get := func(ctx context.Context) {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/org/repo.git/info/refs?service=git-upload-pack", nil)
		r.Header.Set("Git-Protocol", "version=2")
		g.ServeHTTP(httptest.NewRecorder(), r)
	}
	var all sync.WaitGroup
	for range maxAtOnce {
		all.Go(func() { get(t.Context()) })
	}
	for range maxAtOnce {
		<-entered
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	get(gone)
	close(leave)
	all.Wait()
	if len(entered) > 0 {
		t.Error("one too many was answered")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(lines("command=fetch", "0001", "want "+oidA, "deepen 1", "0000"))
	f.Add([]byte("0004000500060003ffff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := parse(body)
		if err == nil && len(a.Wants)*44 > len(body) {
			t.Errorf("%d wants of %d bytes", len(a.Wants), len(body))
		}
	})
}
