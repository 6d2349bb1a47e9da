package fakegithub

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// draft is a manifest on its page, before the click.
type draft struct {
	manifest Manifest
	state    string
	owner    string
}

// newPage is where a person sees the manifest: only the name can be changed.
const newPage = `<!doctype html><title>Create GitHub App</title>
{{if .Problem}}<p class="error">{{.Problem}}</p>{{end}}
<form action="/settings/apps" method="post">
<input type="hidden" name="draft" value="{{.Draft}}">
<input type="text" name="name" value="{{.Name}}">
<button type="submit">Create GitHub App for {{.Owner}}</button>
</form>
`

type newPageData struct{ Draft, Name, Owner, Problem string }

// newApp takes a manifest: the field of a form that was posted, the state in the query.
func (s *Server) newApp(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m, err := s.parseManifest(r.PostForm.Get("manifest"))
	if err != nil {
		s.t.Errorf("GitHub refuses the manifest: %v", err)
		http.Error(w, "Invalid GitHub App configuration. Error: "+err.Error(), http.StatusUnprocessableEntity)
		return
	}
	d := draft{manifest: m, state: r.URL.Query().Get("state"), owner: s.o.Login}
	if org := r.PathValue("org"); org != "" {
		d.owner = org
	}
	id := rand.Text()
	s.mu.Lock()
	s.drafts[id] = d
	s.mu.Unlock()
	s.show(w, newPageData{Draft: id, Name: m.Name, Owner: d.owner})
}

func (s *Server) show(w http.ResponseWriter, data newPageData) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := template.Must(template.New("").Parse(newPage)).Execute(w, data); err != nil {
		s.t.Errorf("the page of the manifest: %v", err)
	}
}

// createApp is the click.
func (s *Server) createApp(w http.ResponseWriter, r *http.Request) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, name := r.PostFormValue("draft"), r.PostFormValue("name")
	d, ok := s.drafts[id]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if problem := s.checkName(name); problem != "" {
		s.show(w, newPageData{Draft: id, Name: name, Owner: d.owner, Problem: problem})
		return
	}
	delete(s.drafts, id)
	a := &App{
		ID: int64(1_000_000 + len(s.apps)), Name: name, Slug: slugOf(name), Owner: d.owner,
		ClientID: "Iv23" + rand.Text()[:16], ClientSecret: strings.ToLower(rand.Text() + rand.Text()[:14]),
		Key: key, Manifest: d.manifest, Permissions: d.manifest.DefaultPermissions, code: strings.ToLower(rand.Text()),
	}
	s.apps = append(s.apps, a)
	s.codes[a.code] = a
	target, err := url.Parse(d.manifest.RedirectURL)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	q := target.Query()
	q.Set("code", a.code)
	if d.state != "" {
		q.Set("state", d.state)
	}
	target.RawQuery = q.Encode()
	http.Redirect(w, r, target.String(), http.StatusFound)
}

// install is the page to which the installation link leads.
func (s *Server) install(w http.ResponseWriter, r *http.Request) {
	slug := r.PathValue("slug")
	if !slices.ContainsFunc(s.Apps(), func(a App) bool { return a.Slug == slug }) {
		http.NotFound(w, r)
	}
}

// accessToken tells credentials that are wrong from codes that are. It knows no code.
func (s *Server) accessToken(w http.ResponseWriter, r *http.Request) {
	f := s.begin(OpOAuth)
	if f != nil && f.Status != 0 {
		w.WriteHeader(f.Status)
		return
	}
	id, secret := r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	known := slices.ContainsFunc(s.Apps(), func(a App) bool { return a.ClientID == id && a.ClientSecret == secret })
	answer := map[string]any{
		"error": "bad_verification_code", "error_description": "The code passed is incorrect or expired.",
		"error_uri": "https://docs.github.com/apps/managing-oauth-apps/troubleshooting-oauth-app-access-token-request-errors/#bad-verification-code",
	}
	if !known {
		answer = map[string]any{
			"error": "incorrect_client_credentials", "error_description": "The client_id and/or client_secret passed are incorrect.",
			"error_uri": "https://docs.github.com/apps/managing-oauth-apps/troubleshooting-oauth-app-access-token-request-errors/#incorrect-client-credentials",
		}
	}
	if f != nil && f.Alter != nil {
		f.Alter(answer)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.t.Errorf("answer: %v", err)
	}
}
