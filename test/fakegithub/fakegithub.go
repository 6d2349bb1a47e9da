package fakegithub

import (
	"crypto/rsa"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Operations that faults and counts go by.
const (
	OpConversion = "apps/create-from-manifest"
	OpApp        = "apps/get-authenticated"
	OpOAuth      = "login/oauth"

	OpRepoInstallation = "apps/get-repo-installation"
	OpOrgInstallation  = "apps/get-org-installation"
	OpUserInstallation = "apps/get-user-installation"
	OpAccessToken      = "apps/create-installation-access-token"
	OpRevokeToken      = "apps/revoke-installation-access-token"

	OpBlob      = "git/create-blob"
	OpTree      = "git/create-tree"
	OpCommit    = "git/create-commit"
	OpRef       = "git/create-ref"
	OpPulls     = "pulls/list"
	OpPull      = "pulls/create"
	OpLabels    = "issues/add-labels"
	OpMerge     = "repos/merge"
	OpGetPull   = "pulls/get"
	OpReviews   = "pulls/list-reviews"
	OpChecks    = "checks/list-for-ref"
	OpStatuses  = "repos/get-combined-status-for-ref"
	OpActions   = "actions/list-workflow-runs-for-repo"
	OpGraphQL   = "graphql"
	OpGitFetch  = "git-upload-pack"
	OpGitPush   = "git-receive-pack"
	everyOp     = "*"
	webFlow     = "GitHub <noreply@github.com>"
	maxBlobBody = 50 << 20 // where GitHub ends a request with a blob, as others measured it
)

// Options say how a [Server] differs from github.com.
type Options struct {
	// PEM writes the key of a new app; nil is GitHub's way: PKCS#1, lines end in LF.
	PEM func(*rsa.PrivateKey) string
	// Clock is the server's; nil is this machine's.
	Clock func() time.Time
	// IssuerIsID lets only the numeric App ID be an issuer, as servers before 3.14 do.
	IssuerIsID bool
	// Login is who is signed in; "" is octocat.
	Login string
	// NoSigning makes commits that are not signed, as a server does whose
	// administrator did not turn that on.
	NoSigning bool
	// TokenLife is how long installation tokens are good; 0 is an hour.
	TokenLife time.Duration
}

// Fault is what goes wrong with an operation.
type Fault struct {
	Status  int                  // instead of the answer; 0 answers
	Message string               // of Status
	Header  http.Header          // added
	Cut     bool                 // ends the connection in the middle of the body
	Alter   func(map[string]any) // changes the answer
	Times   int                  // how often; 0 is always
	Drop    bool                 // ends the connection before anything is done
	Lose    bool                 // does what was asked, and ends the connection
}

// App is a GitHub App.
type App struct {
	ID                     int64
	Name, Slug             string
	Owner                  string
	ClientID, ClientSecret string
	Key                    *rsa.PrivateKey
	Manifest               Manifest
	Permissions            map[string]string

	code string
}

// Server is the fake. Its methods may be called from several goroutines.
type Server struct {
	URL string // of the pages and of the API

	t    testing.TB
	o    Options
	spec *spec

	mu     sync.Mutex
	drafts map[string]draft // by the id in the form
	apps   []*App
	codes  map[string]*App // not yet converted
	faults map[string]*Fault
	counts map[string]int
	before func(op string, n int) *Fault

	repos    []*Repo
	installs []*installation
	tokens   map[string]*token
	writers  []string         // tokens of apps that could write, for good
	issued   []string         // tokens, in order
	revoked  []string         // by their holders
	root     string           // folder of the repositories
	renamed  map[string]*Repo // by their old names
}

// New starts a server that ends with the test, and reports to it whatever GitHub's
// description does not allow.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Login == "" {
		o.Login = "octocat"
	}
	sp, err := loadSpec()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		t: t, o: o, spec: sp,
		drafts: map[string]draft{}, codes: map[string]*App{}, faults: map[string]*Fault{}, counts: map[string]int{},
		tokens: map[string]*token{}, root: t.TempDir(),
	}
	srv := httptest.NewServer(s.handler())
	t.Cleanup(srv.Close)
	s.URL = srv.URL
	return s
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /settings/apps/new", s.newApp)
	mux.HandleFunc("POST /organizations/{org}/settings/apps/new", s.newApp)
	mux.HandleFunc("POST /settings/apps", s.createApp)
	mux.HandleFunc("GET /apps/{slug}/installations/new", s.install)
	mux.HandleFunc("POST /login/oauth/access_token", s.accessToken)
	mux.Handle("/api/v3/", http.StripPrefix("/api/v3", s.api()))
	mux.Handle("/app", s.api())
	for _, path := range []string{"/installation/", "/app/installations/", "/app-manifests/", "/repos/", "/orgs/", "/users/"} {
		mux.Handle(path, s.api())
	}
	mux.HandleFunc("POST /graphql", s.graphql)
	mux.HandleFunc("POST /api/graphql", s.graphql)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, ".git/") {
			s.git(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Break makes an operation go wrong from now on.
func (s *Server) Break(op string, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[op] = &f
}

// Before calls f at the start of every request to the API, to GraphQL and of git, with
// its operation and how many there were, from 1. What f returns goes wrong with the
// request; it may be nil.
func (s *Server) Before(f func(op string, n int) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.counts[everyOp] = f, 0
}

// Requests is how many requests there were since Before.
func (s *Server) Requests() int { return s.Count(everyOp) }

// Count is how often an operation was asked for.
func (s *Server) Count(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[op]
}

// Apps are the apps that were created, in order.
func (s *Server) Apps() []App {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []App
	for _, a := range s.apps {
		c := *a
		c.Permissions = maps.Clone(a.Permissions)
		all = append(all, c)
	}
	return all
}

// Grant changes the permissions of an app, as its owner can at any time.
func (s *Server) Grant(slug string, permissions map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.apps, func(a *App) bool { return a.Slug == slug })
	if i < 0 {
		s.t.Errorf("there is no app %q to grant anything", slug)
		return
	}
	s.apps[i].Permissions = maps.Clone(permissions)
}

// begin counts a call and returns what is to go wrong with it, or nil.
func (s *Server) begin(op string) *Fault {
	s.mu.Lock()
	s.counts[op]++
	s.counts[everyOp]++
	before, n := s.before, s.counts[everyOp]
	s.mu.Unlock()
	if before != nil {
		if f := before(op, n); f != nil {
			return f
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.faults[op]
	if f == nil {
		return nil
	}
	if f.Times > 0 {
		if f.Times--; f.Times == 0 {
			delete(s.faults, op)
		}
	}
	c := *f
	return &c
}
