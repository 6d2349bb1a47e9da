// Package git lets the sandbox of a run fetch from the run's own repositories: git's
// smart HTTP, read-only, answered from mirrors of the host. No credential and no network
// is needed inside, and nothing can be pushed.
//
// Requests are hostile: their size is bounded, as is how many are answered at a time. What
// the host fetches for one is the business of [Config]'s functions, which bound it.
package git

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/gateway/onestream"
)

const (
	// maxAtOnce is how many requests of a run are answered at a time; others wait.
	maxAtOnce = 4
	// maxRequest bounds the body of a request, which names objects.
	maxRequest = 16 << 20
)

// Repo is one repository.
type Repo struct {
	Path string // org/name, by which it is asked for
	// Web is its own address, without .git at the end; empty: not on the web. Names that
	// only begin like that of the repository are sent there.
	Web string
}

// Exchange is what git answers from a mirror.
type Exchange struct {
	Advertise bool // tell what there is, instead of answering In
	Version   int  // of the protocol
	In        io.Reader
	Out       io.Writer
}

// Config is what a gateway works with. Repositories are named by their number.
type Config struct {
	Repos []Repo
	// Refs brings branches and tags up to date; no prefixes are all.
	Refs func(ctx context.Context, repo int, prefixes []string) error
	// Objects fetches what a client wants and the mirror lacks.
	Objects func(ctx context.Context, repo int, want Wanted) error
	// Upload answers a client.
	Upload func(ctx context.Context, repo int, x Exchange) error
	// Refusal is what somebody who pushes is told.
	Refusal string
}

// Gateway serves the repositories of one run. It is an http.Handler.
type Gateway struct {
	c     Config
	slots chan struct{}
}

// New returns a gateway.
func New(c Config) *Gateway { return &Gateway{c: c, slots: make(chan struct{}, maxAtOnce)} }

// ServeConn serves HTTP on one stream of a sandbox, until it or ctx ends.
func (g *Gateway) ServeConn(ctx context.Context, conn net.Conn) error {
	return onestream.Serve(ctx, conn, g)
}

const (
	infoRefs    = "/info/refs"
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, rest, found := g.find(r.URL.Path)
	if !found {
		http.Error(w, "this run has no such repository", http.StatusNotFound)
		return
	}
	repo, ok := strings.CutPrefix(rest, ".git/")
	if !ok {
		repo, ok = strings.CutPrefix(rest, "/")
	}
	if !ok { // another one, whose name begins like this
		g.elsewhere(w, r, g.c.Repos[n].Web, rest)
		return
	}
	service := repo
	if "/"+repo == infoRefs {
		service = r.URL.Query().Get("service")
	}
	switch {
	case service == receivePack:
		http.Error(w, strings.TrimSuffix(g.c.Refusal, "\n"), http.StatusForbidden)
	case service == uploadPack && r.Method == http.MethodGet && repo != uploadPack:
		g.answer(w, r, func(out *output) error { return g.advertise(r, n, out) })
	case repo == uploadPack && r.Method == http.MethodPost:
		g.answer(w, r, func(out *output) error { return g.exchange(r, n, out) })
	default:
		http.Error(w, "only git fetch is served here", http.StatusNotFound)
	}
}

// find returns the repository whose path that of a request begins with, and the rest. Of
// two the longer name counts.
func (g *Gateway) find(path string) (n int, rest string, found bool) {
	best := 0
	for i, repo := range g.c.Repos {
		prefix := "/" + repo.Path
		if len(path) >= len(prefix) && strings.EqualFold(path[:len(prefix)], prefix) && len(prefix) > best {
			n, rest, found, best = i, path[len(prefix):], true, len(prefix)
		}
	}
	return n, rest, found
}

// elsewhere sends a client to the address that it had meant.
func (g *Gateway) elsewhere(w http.ResponseWriter, r *http.Request, web, rest string) {
	to, err := url.Parse(web)
	if web == "" || err != nil {
		http.Error(w, "this run has no such repository", http.StatusNotFound)
		return
	}
	to.Path += rest
	to.RawQuery = r.URL.RawQuery
	http.Redirect(w, r, to.String(), http.StatusFound)
}

// answer runs one request among the others, and tells the client in git's words what went
// wrong, unless it has an answer already.
func (g *Gateway) answer(w http.ResponseWriter, r *http.Request, do func(*output) error) {
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-r.Context().Done():
		return
	}
	kind := "result"
	if r.Method == http.MethodGet {
		kind = "advertisement"
	}
	w.Header().Set("Content-Type", "application/x-"+uploadPack+"-"+kind)
	w.Header().Set("Cache-Control", "no-cache")
	out := &output{w: w, flush: http.NewResponseController(w).Flush}
	err := do(out)
	switch {
	case err == nil:
	case !out.begun:
		_, _ = out.Write(errorLine(err)) // a client that has gone needs none
	case r.Context().Err() != nil:
		panic(http.ErrAbortHandler) // cuts the answer, so that it is not taken for the whole
	}
}

// advertise answers the first request of a client.
func (g *Gateway) advertise(r *http.Request, n int, out *output) error {
	x := Exchange{Advertise: true, Version: version(r), Out: out}
	if x.Version < versionOfServices {
		if err := g.c.Refs(r.Context(), n, nil); err != nil {
			return err
		}
		out.before = []byte(pktLine("# service="+uploadPack+"\n") + flushPkt)
	}
	return g.c.Upload(r.Context(), n, x)
}

// exchange answers what a client asks for.
func (g *Gateway) exchange(r *http.Request, n int, out *output) error {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	asked, err := parse(body)
	if err != nil {
		return err
	}
	if asked.refs {
		err = g.c.Refs(r.Context(), n, asked.prefixes)
	} else if len(asked.Wants) > 0 {
		err = g.c.Objects(r.Context(), n, asked.Wanted)
	}
	if err != nil {
		return err
	}
	return g.c.Upload(r.Context(), n, Exchange{Version: version(r), In: strings.NewReader(string(body)), Out: out})
}

// versionOfServices is the version of the protocol in which what there is has to be asked
// for.
const versionOfServices = 2

// version is the version of the protocol that a client would like.
func version(r *http.Request) int {
	wishes := strings.Split(r.Header.Get("Git-Protocol"), ":")
	switch {
	case slices.Contains(wishes, "version=2"):
		return 2
	case slices.Contains(wishes, "version=1"):
		return 1
	}
	return 0
}

func readBody(r *http.Request) ([]byte, error) {
	var in io.Reader = r.Body
	switch r.Header.Get("Content-Encoding") {
	case "":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
		in = z
	default:
		return nil, errors.New("the encoding of the request is not known")
	}
	body, err := io.ReadAll(io.LimitReader(in, maxRequest+1))
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if len(body) > maxRequest {
		return nil, errors.New("the request is too long")
	}
	return body, nil
}

// output is the way to the client. What git writes is sent at once.
type output struct {
	w      io.Writer
	flush  func() error
	before []byte // comes first
	begun  bool
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	if len(o.before) > 0 {
		if _, err := o.w.Write(o.before); err != nil {
			return 0, err
		}
		o.before = nil
	}
	o.begun = true
	n, err := o.w.Write(p)
	if err == nil {
		err = o.flush()
	}
	return n, err
}
