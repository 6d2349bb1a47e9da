package fakegithub

import (
	"io"
	"net/http"
	"net/http/cgi" //nolint:gosec // git is the only program, and the tests are the only client
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// git serves the repositories to real git, by git's own http-backend.
func (s *Server) git(w http.ResponseWriter, r *http.Request) {
	path, service, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
	owner, name, named := strings.Cut(path, "/")
	if !ok || !named {
		http.NotFound(w, r)
		return
	}
	op := OpGitFetch
	if service == OpGitPush || r.URL.Query().Get("service") == OpGitPush {
		op = OpGitPush
	}
	_, text, given := r.BasicAuth()
	if !given {
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if now := s.newName(owner, name); now != "" {
		http.Redirect(w, r, s.URL+"/"+now+".git/"+service+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
		return
	}
	f := s.begin(op)
	if f.ends(w, s) {
		return
	}
	want := "read"
	if op == OpGitPush {
		want = "write"
	}
	s.mu.Lock()
	repo := s.repo(owner, name)
	_, refused := s.may(text, repo, "contents", want)
	forbidden := repo != nil && repo.NoPush && want == "write"
	s.mu.Unlock()
	switch {
	case refused != nil:
		http.Error(w, "not allowed", refused.status)
		return
	case forbidden:
		http.Error(w, "push declined due to repository rule violations", http.StatusForbidden)
		return
	}
	s.backend(w, r, strings.TrimPrefix(filepath.ToSlash(repo.Dir), filepath.ToSlash(s.root))+"/"+service)
	f.alters(answer{})
}

// newName is what a repository is called now, or "" where that is its name.
func (s *Server) newName(owner, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.renamed[strings.ToLower(owner+"/"+name)]
	if now == nil || s.repo(owner, name) != nil {
		return ""
	}
	return now.Owner + "/" + now.Name
}

// backend runs git http-backend for one request.
func (s *Server) backend(w http.ResponseWriter, r *http.Request, path string) {
	// A CGI program wants to know the length of the body, and git sends in chunks what
	// is longer than a mebibyte.
	spool, err := os.CreateTemp(s.root, "body")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer os.Remove(spool.Name()) //nolint:errcheck // the test's folder goes anyway
	defer spool.Close()           //nolint:errcheck // it was only read
	r.ContentLength, err = io.Copy(spool, r.Body)
	if err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body, r.TransferEncoding = spool, nil
	r.URL.Path = path
	where, err := exec.Command("git", "--exec-path").Output() //nolint:noctx // it ends at once
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(where)), "git-http-backend"), Dir: s.root, Stderr: io.Discard,
		Env: []string{
			"GIT_PROJECT_ROOT=" + s.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=x-access-token", "HOME=" + s.root,
			"GIT_CONFIG_NOSYSTEM=1", "GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"),
		},
	}
	h.ServeHTTP(w, r)
}
