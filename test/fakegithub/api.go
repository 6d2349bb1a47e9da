package fakegithub

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/golang-jwt/jwt/v5"
)

// answer is what an operation returns.
type answer struct {
	status int
	body   any
}

func refusal(status int, message string) answer {
	return answer{status, map[string]any{
		"message": message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status),
	}}
}

// api serves the operations of the description.
func (s *Server) api() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, err := s.spec.request(r)
		if err != nil {
			s.t.Errorf("GitHub's description does not know this request: %v", err)
			s.send(w, refusal(http.StatusNotFound, "Not Found"), nil)
			return
		}
		op := in.Route.Operation.OperationID
		f := s.begin(op)
		if f.ends(w, s) {
			return
		}
		if to := s.movedTo(r, in.PathParams); to != "" {
			w.Header().Set("Location", to)
			s.send(w, refusal(redirect(r.Method), "Moved Permanently"), f)
			return
		}
		a := s.perform(r, op, in.PathParams)
		if next := s.link(r, a); next != "" {
			w.Header().Set("Link", next)
		}
		f.alters(a)
		if f == nil && declared(in, a.status) {
			s.check(r, in, a)
		}
		s.send(w, a, f)
	})
}

// movedTo is the address of a request to a repository by its old name.
func (s *Server) movedTo(r *http.Request, params map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := params["owner"] + "/" + params["repo"]
	now := s.renamed[strings.ToLower(old)]
	if now == nil || s.repo(params["owner"], params["repo"]) != nil {
		return ""
	}
	_, rest, _ := strings.Cut(r.URL.RequestURI(), old)
	return s.URL + "/api/v3/repos/" + now.Owner + "/" + now.Name + rest
}

// redirect is how GitHub sends a request elsewhere: one that does something as it is.
func redirect(method string) int {
	if method == http.MethodGet {
		return http.StatusMovedPermanently
	}
	return http.StatusTemporaryRedirect
}

// ends reports whether a fault takes the place of the answer, and sends it.
func (f *Fault) ends(w http.ResponseWriter, s *Server) bool {
	switch {
	case f == nil:
		return false
	case f.Drop:
		panic(http.ErrAbortHandler) // closes the connection
	case f.Status != 0:
		s.send(w, refusal(f.Status, f.Message), f)
		return true
	}
	return false
}

// alters changes an answer, or loses it.
func (f *Fault) alters(a answer) {
	if f == nil {
		return
	}
	if f.Lose {
		panic(http.ErrAbortHandler) // closes the connection
	}
	if body, ok := a.body.(map[string]any); ok && f.Alter != nil {
		f.Alter(body)
	}
}

// perform does what was asked.
func (s *Server) perform(r *http.Request, op string, params map[string]string) answer {
	switch op {
	case OpConversion:
		return s.convert(params["code"])
	case OpApp:
		return s.app(r)
	case OpRepoInstallation, OpOrgInstallation, OpUserInstallation, OpAccessToken:
		return s.installations(r, op, params)
	case OpRevokeToken:
		return s.revokeToken(r)
	}
	return s.ofRepo(r, op, params)
}

// declared reports whether the description names the status for the operation. It
// names none for what is wrong with a token.
func declared(in *openapi3filter.RequestValidationInput, status int) bool {
	return status < http.StatusBadRequest || in.Route.Operation.Responses.Status(status) != nil
}

func (s *Server) check(r *http.Request, in *openapi3filter.RequestValidationInput, a answer) {
	body, err := json.Marshal(a.body)
	if err == nil {
		err = s.spec.response(r.Context(), in, a.status, http.Header{"Content-Type": {"application/json"}}, body)
	}
	if err != nil {
		s.t.Errorf("the fake answers what GitHub never would: %v", err)
	}
}

func (s *Server) send(w http.ResponseWriter, a answer, f *Fault) {
	body, err := json.Marshal(a.body)
	if err != nil {
		s.t.Errorf("answer: %v", err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Date", s.o.Clock().UTC().Format(http.TimeFormat))
	if f != nil {
		for name, values := range f.Header {
			h[name] = values
		}
	}
	if f != nil && f.Cut {
		h.Set("Content-Length", strconv.Itoa(len(body)))
		body = body[:len(body)/2]
	}
	w.WriteHeader(a.status)
	if a.status == http.StatusNoContent {
		return
	}
	// An error means that the client has gone.
	_, _ = w.Write(body)
}

// convert trades a code for the app, once.
func (s *Server) convert(code string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.codes[code]
	if a == nil {
		return refusal(http.StatusNotFound, "Not Found")
	}
	delete(s.codes, code)
	body := s.describe(a)
	body["client_secret"] = a.ClientSecret
	body["webhook_secret"] = nil
	body["pem"] = s.pem(a.Key)
	return answer{http.StatusCreated, body}
}

func (s *Server) pem(key *rsa.PrivateKey) string {
	if s.o.PEM != nil {
		return s.o.PEM(key)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// app answers who the bearer of a token is.
func (s *Server) app(r *http.Request) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, problem := s.bearer(bearerOf(r))
	if problem != "" {
		return refusal(http.StatusUnauthorized, problem)
	}
	body := s.describe(a)
	body["installations_count"] = 0
	return answer{http.StatusOK, body}
}

// bearerOf is the token of a request, or "".
func bearerOf(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// bearer finds the app that signed a token, by GitHub's rules and in its words.
func (s *Server) bearer(token string) (*App, string) {
	var claims jwt.RegisteredClaims
	var signer *App
	_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) {
		for _, a := range s.apps {
			id := strconv.FormatInt(a.ID, 10)
			if a.Key == nil {
				continue
			}
			if claims.Issuer == id || claims.Issuer == a.ClientID && !s.o.IssuerIsID {
				signer = a
				return &a.Key.PublicKey, nil
			}
		}
		return nil, errors.New("no such app")
	}, jwt.WithValidMethods([]string{"RS256"}), jwt.WithoutClaimsValidation())
	now := s.o.Clock()
	switch {
	case err != nil && s.o.IssuerIsID && strings.HasPrefix(claims.Issuer, "Iv"):
		return nil, "'Issuer' claim ('iss') must be an Integer"
	case err != nil:
		return nil, "A JSON web token could not be decoded"
	case claims.IssuedAt == nil || claims.IssuedAt.After(now):
		return nil, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
	case claims.ExpiresAt == nil || claims.ExpiresAt.Before(now):
		return nil, "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
	case claims.ExpiresAt.After(now.Add(10 * time.Minute)):
		return nil, "'Expiration time' claim ('exp') is too far in the future"
	}
	return signer, ""
}

// describe is the app as the API shows it.
func (s *Server) describe(a *App) map[string]any {
	events := a.Manifest.DefaultEvents
	if events == nil {
		events = []string{}
	}
	now := s.o.Clock().UTC().Format(time.RFC3339)
	return map[string]any{
		"id": a.ID, "slug": a.Slug, "client_id": a.ClientID, "node_id": "A_" + strconv.FormatInt(a.ID, 10),
		"owner": s.user(a.Owner), "name": a.Name, "description": a.Manifest.Description,
		"external_url": a.Manifest.URL, "html_url": s.URL + "/apps/" + a.Slug,
		"created_at": now, "updated_at": now, "permissions": a.Permissions, "events": events,
	}
}

func (s *Server) user(login string) map[string]any {
	u := map[string]any{
		"login": login, "id": 1, "node_id": "U_1", "gravatar_id": "", "type": "User", "site_admin": false,
		"avatar_url": s.URL + "/avatars/" + login, "html_url": s.URL + "/" + login, "url": s.URL + "/users/" + login,
	}
	for _, list := range []string{
		"followers", "following", "gists", "starred", "subscriptions", "organizations", "repos", "events", "received_events",
	} {
		u[list+"_url"] = s.URL + "/users/" + login + "/" + list
	}
	return u
}
