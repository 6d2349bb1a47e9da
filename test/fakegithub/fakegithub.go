package fakegithub

import (
	"crypto/rsa"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// Operations that faults and counts go by.
const (
	OpConversion = "apps/create-from-manifest"
	OpApp        = "apps/get-authenticated"
	OpOAuth      = "login/oauth"
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
}

// Fault is what goes wrong with an operation.
type Fault struct {
	Status  int                  // instead of the answer; 0 answers
	Message string               // of Status
	Header  http.Header          // added
	Cut     bool                 // ends the connection in the middle of the body
	Alter   func(map[string]any) // changes the answer
	Times   int                  // how often; 0 is always
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
	mux.Handle("/app-manifests/", s.api())
	return mux
}

// Break makes an operation go wrong from now on.
func (s *Server) Break(op string, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[op] = &f
}

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
	defer s.mu.Unlock()
	s.counts[op]++
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
