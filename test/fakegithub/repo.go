package fakegithub

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Repo is a repository. What is in it is in the bare repository at Dir, and whoever
// holds the Server may use git on that as it likes.
type Repo struct {
	ID          int64
	Owner, Name string
	Default     string // branch
	Dir         string
	Archived    bool
	NoPush      bool // refuses every push, as a push ruleset does

	pulls []*Pull
	ci    map[string]*CI // by commits
}

// Pull is a pull request.
type Pull struct {
	Number            int
	Head, Base        string // branches
	Title, Body       string
	Draft, CrossForks bool
	Labels            []string
	Closed, Merged    bool
	Reviews           []Review
	Threads           []Thread
}

// AddRepo makes an empty repository whose default branch is main.
func (s *Server) AddRepo(owner, name string) *Repo {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Repo{ID: int64(5000 + len(s.repos)), Owner: owner, Name: name, Default: "main"}
	r.Dir = filepath.Join(s.root, owner, name+".git")
	if out, err := s.command("", nil, nil, "init", "-q", "--bare", "-b", "main", "--template=", r.Dir); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	s.repos = append(s.repos, r)
	return r
}

func (s *Server) repo(owner, name string) *Repo {
	for _, r := range s.repos {
		if strings.EqualFold(r.Owner, owner) && strings.EqualFold(r.Name, name) {
			return r
		}
	}
	return nil
}

// OpenPull adds a pull request that somebody else made.
func (s *Server) OpenPull(r *Repo, p Pull) Pull {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.Number = len(r.pulls) + 1
	r.pulls = append(r.pulls, &p)
	return p
}

// Pulls are the pull requests of a repository.
func (s *Server) Pulls(r *Repo) []Pull {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Pull
	for _, p := range r.pulls {
		all = append(all, *p)
	}
	return all
}

// gitError is what git said against something.
type gitError struct{ text string }

func (e *gitError) Error() string { return e.text }

// command runs the real git, and returns what it wrote.
func (s *Server) command(dir string, env []string, in []byte, args ...string) (string, error) {
	if dir != "" {
		args = append([]string{"--git-dir=" + dir}, args...)
	}
	cmd := exec.Command("git", args...) //nolint:noctx // it ends with its input
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.root, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", //nolint:forbidigo // a program of tests
		"GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@example.com", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@example.com",
	}, env...)
	cmd.Dir, cmd.Stdin = s.root, bytes.NewReader(in)
	var out, says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &says
	if err := cmd.Run(); err != nil {
		return "", &gitError{fmt.Sprintf("git %s: %v: %s", strings.Join(args, " "), err, says.String())}
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// tip is the commit of a branch, or "".
func (s *Server) tip(r *Repo, ref string) string {
	oid, err := s.command(r.Dir, nil, nil, "rev-parse", "-q", "--verify", "--end-of-options", ref+"^{commit}")
	if err != nil {
		return ""
	}
	return oid
}

// has reports whether there is an object of a type.
func (s *Server) has(r *Repo, kind, oid string) bool {
	got, err := s.command(r.Dir, nil, nil, "cat-file", "-t", oid)
	return err == nil && got == kind
}

func (r *Repo) nodeID() string { return "R_" + strconv.FormatInt(r.ID, 10) }
