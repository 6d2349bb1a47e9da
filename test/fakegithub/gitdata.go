package fakegithub

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ofRepo serves the operations of a repository, with its token.
func (s *Server) ofRepo(r *http.Request, op string, params map[string]string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	permission, want := "contents", "write"
	switch op {
	case OpPulls, OpGetPull, OpReviews:
		permission, want = "pull_requests", "read"
	case OpPull, OpLabels:
		permission = "pull_requests"
	case OpChecks:
		permission, want = "checks", "read"
	case OpStatuses:
		permission, want = "statuses", "read"
	case OpActions:
		permission, want = "actions", "read"
	}
	repo := s.repo(params["owner"], params["repo"])
	t, refused := s.may(bearerOf(r), repo, permission, want)
	if refused != nil {
		return *refused
	}
	switch op {
	case OpBlob:
		return s.createBlob(r, repo)
	case OpTree:
		return s.createTree(r, repo, t)
	case OpCommit:
		return s.createCommit(r, repo, t)
	case OpRef:
		return s.createRef(r, repo)
	case OpPulls:
		return s.listPulls(r, repo)
	case OpPull:
		return s.createPull(r, repo)
	case OpLabels:
		return s.addLabels(r, repo, params["issue_number"])
	case OpMerge:
		return s.merge(r, repo, t)
	case OpGetPull, OpReviews, OpChecks, OpStatuses, OpActions:
		return s.followed(r, repo, op, params)
	}
	s.t.Errorf("the fake does not serve %s", op)
	return refusal(http.StatusNotFound, "Not Found")
}

func unprocessable(format string, args ...any) answer {
	return refusal(http.StatusUnprocessableEntity, fmt.Sprintf(format, args...))
}

func (s *Server) apiURL(repo *Repo, path string) string {
	return s.URL + "/api/v3/repos/" + repo.Owner + "/" + repo.Name + "/" + path
}

func (s *Server) createBlob(r *http.Request, repo *Repo) answer {
	if r.ContentLength > maxBlobBody {
		_, _ = io.Copy(io.Discard, r.Body) // the client is gone otherwise
		return unprocessable("Sorry, your input was too large to process.")
	}
	var in struct{ Content, Encoding string }
	if err := s.decode(r, &in); err != nil {
		return unprocessable("%v", err)
	}
	data := []byte(in.Content)
	if in.Encoding == "base64" {
		var err error
		if data, err = base64.StdEncoding.DecodeString(in.Content); err != nil {
			return unprocessable("content is not valid Base64")
		}
	}
	oid, err := s.command(repo.Dir, nil, data, "hash-object", "-w", "-t", "blob", "--stdin")
	if err != nil {
		return unprocessable("%v", err)
	}
	return answer{http.StatusCreated, map[string]any{"sha": oid, "url": s.apiURL(repo, "git/blobs/"+oid)}}
}

type treeEntry struct {
	Path, Mode, Type string
	SHA              *string
	Content          *string
}

// createTree puts entries over a tree, as GitHub does: an entry takes the place of
// whatever has its name.
func (s *Server) createTree(r *http.Request, repo *Repo, t *token) answer {
	var in struct {
		BaseTree string `json:"base_tree"`
		Tree     []treeEntry
	}
	if err := s.decode(r, &in); err != nil {
		return unprocessable("%v", err)
	}
	index, err := os.MkdirTemp(s.root, "index")
	if err != nil {
		return unprocessable("%v", err)
	}
	defer os.RemoveAll(index) //nolint:errcheck // the test's folder goes anyway
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(index, "index")}
	if in.BaseTree != "" {
		if !s.has(repo, "tree", in.BaseTree) {
			return unprocessable("base_tree is not a valid tree oid")
		}
		if _, err := s.command(repo.Dir, env, nil, "read-tree", in.BaseTree); err != nil {
			return unprocessable("%v", err)
		}
	}
	for _, e := range in.Tree {
		if strings.HasPrefix(e.Path, ".github/workflows") && !t.can("workflows", "write") {
			return refusal(http.StatusForbidden, "Resource not accessible by integration")
		}
	}
	if problem := s.putEntries(repo, env, in.Tree); problem != "" {
		return unprocessable("%s", problem)
	}
	oid, err := s.command(repo.Dir, env, nil, "write-tree")
	if err != nil {
		return unprocessable("GitRPC::BadObjectState: %v", err)
	}
	return answer{http.StatusCreated, map[string]any{
		"sha": oid, "url": s.apiURL(repo, "git/trees/"+oid), "tree": []any{}, "truncated": false,
	}}
}

// putEntries brings entries into an index, and says what GitHub has against them.
func (s *Server) putEntries(repo *Repo, env []string, entries []treeEntry) string {
	if len(entries) == 0 || len(entries) > 1000 {
		return "Invalid tree info"
	}
	if problem := s.checkEntries(repo, env, entries); problem != "" {
		return problem
	}
	var info strings.Builder
	for _, e := range entries {
		switch {
		case e.SHA == nil:
			fmt.Fprintf(&info, "0 %s\t%s\x00", strings.Repeat("0", 40), e.Path)
		case e.Type == "tree":
			if err := s.putFolder(repo, env, &info, e); err != nil {
				return err.Error()
			}
		default:
			fmt.Fprintf(&info, "%s %s\t%s\x00", e.Mode, *e.SHA, e.Path)
		}
	}
	if _, err := s.command(repo.Dir, env, []byte(info.String()), "update-index", "-z", "--replace", "--index-info"); err != nil {
		return err.Error()
	}
	return ""
}

// putFolder puts a tree in the place of whatever has its name.
func (s *Server) putFolder(repo *Repo, env []string, info *strings.Builder, e treeEntry) error {
	was, err := s.command(repo.Dir, env, nil, "ls-files", "-z", "--", ":(literal)"+e.Path)
	if err != nil {
		return err
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(was, "\x00"), "\x00") {
		if path != "" {
			fmt.Fprintf(info, "0 %s\t%s\x00", strings.Repeat("0", 40), path)
		}
	}
	now, err := s.command(repo.Dir, nil, nil, "ls-tree", "-r", "-z", *e.SHA)
	for line := range strings.SplitSeq(strings.TrimSuffix(now, "\x00"), "\x00") {
		if about, path, ok := strings.Cut(line, "\t"); ok {
			fmt.Fprintf(info, "%s\t%s/%s\x00", about, e.Path, path)
		}
	}
	return err
}

func malformed(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." || strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}

// checkEntries looks at what can be told without the entries before.
func (s *Server) checkEntries(repo *Repo, env []string, entries []treeEntry) string {
	kinds := map[string]string{"100644": "blob", "100755": "blob", "120000": "blob", "160000": "commit", "040000": "tree"}
	var ask strings.Builder
	var want []treeEntry
	gone := ""
	for _, e := range entries {
		switch {
		case malformed(e.Path):
			return "tree.path contains a malformed path component"
		case e.Content != nil:
			return "the fake takes no inline content"
		case kinds[e.Mode] != e.Type:
			return "tree.mode and tree.type do not match"
		case e.SHA == nil:
			gone = e.Path
		case e.Type != "commit":
			want = append(want, e)
			ask.WriteString(*e.SHA + "\n")
		}
	}
	if gone != "" {
		all, err := s.command(repo.Dir, env, nil, "ls-files", "-z")
		for _, e := range entries {
			if err != nil || e.SHA == nil && !strings.Contains("\x00"+all, "\x00"+e.Path+"\x00") {
				return "GitRPC::BadObjectState"
			}
		}
	}
	have, err := s.command(repo.Dir, nil, []byte(ask.String()), "cat-file", "--batch-check=%(objecttype)")
	lines := strings.Split(have, "\n")
	for i, e := range want {
		if err != nil || i >= len(lines) || lines[i] != e.Type {
			return fmt.Sprintf("tree.sha %s is not a valid %s", *e.SHA, e.Type)
		}
	}
	return ""
}

// createCommit makes the commit of an app and signs it, unless the request names its
// people: then it is the client who should have signed.
func (s *Server) createCommit(r *http.Request, repo *Repo, t *token) answer {
	var in struct {
		Message, Tree, Signature string
		Parents                  []string
		Author, Committer        map[string]string
	}
	if err := s.decode(r, &in); err != nil {
		return unprocessable("%v", err)
	}
	if empty := "4b825dc642cb6eb9a060e54bf8d69288fbee4904"; in.Tree != empty && !s.has(repo, "tree", in.Tree) {
		return unprocessable("Tree SHA does not exist")
	}
	for _, p := range in.Parents {
		if !s.has(repo, "commit", p) {
			return unprocessable("Parent SHA does not exist or is not a commit object")
		}
	}
	signed := t.app != nil && in.Author == nil && in.Committer == nil && !s.o.NoSigning
	now := s.o.Clock()
	oid, err := s.writeCommit(repo, t, commitText{in.Tree, in.Message, in.Parents, signed, now})
	if err != nil {
		return unprocessable("%v", err)
	}
	return answer{http.StatusCreated, s.describeCommit(repo, oid, in.Message, in.Tree, in.Parents, signed, now)}
}

// commitText is what is in a commit beside its people.
type commitText struct {
	tree, message string
	parents       []string
	signed        bool
	now           time.Time
}

// writeCommit makes a commit of whoever holds a token.
func (s *Server) writeCommit(repo *Repo, t *token, c commitText) (string, error) {
	author := "octocat <octocat@example.com>"
	if t.app != nil {
		author = t.app.Slug + "[bot] <" + strconv.FormatInt(t.app.ID, 10) + "+" + t.app.Slug + "[bot]@users.noreply.github.com>"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "tree %s\n", c.tree)
	for _, p := range c.parents {
		fmt.Fprintf(&text, "parent %s\n", p)
	}
	fmt.Fprintf(&text, "author %s %d +0000\ncommitter %s %d +0000\n", author, c.now.Unix(), webFlow, c.now.Unix())
	if c.signed {
		text.WriteString("gpgsig -----BEGIN PGP SIGNATURE-----\n \n fake\n -----END PGP SIGNATURE-----\n")
	}
	text.WriteString("\n" + c.message)
	return s.command(repo.Dir, nil, []byte(text.String()), "hash-object", "-w", "-t", "commit", "--stdin")
}

func (s *Server) describeCommit(repo *Repo, oid, message, tree string, parents []string, signed bool, now time.Time) any {
	reason, who := "unsigned", map[string]any{"name": "x", "email": "x@example.com", "date": now.UTC().Format(time.RFC3339)}
	if signed {
		reason = "valid"
	}
	all := []any{}
	for _, p := range parents {
		all = append(all, map[string]any{"sha": p, "url": s.apiURL(repo, "git/commits/"+p), "html_url": s.webURL(repo) + "/commit/" + p})
	}
	return s.fill("git-commit", map[string]any{
		"sha": oid, "message": message, "author": who, "committer": who, "parents": all,
		"url": s.apiURL(repo, "git/commits/"+oid), "html_url": s.webURL(repo) + "/commit/" + oid,
		"tree":         map[string]any{"sha": tree, "url": s.apiURL(repo, "git/trees/"+tree)},
		"verification": map[string]any{"verified": signed, "reason": reason},
	})
}

func (s *Server) webURL(repo *Repo) string { return s.URL + "/" + repo.Owner + "/" + repo.Name }

func (s *Server) createRef(r *http.Request, repo *Repo) answer {
	var in struct{ Ref, SHA string }
	if err := s.decode(r, &in); err != nil {
		return unprocessable("%v", err)
	}
	_, err := s.command(repo.Dir, nil, nil, "check-ref-format", in.Ref)
	switch {
	case err != nil || !strings.HasPrefix(in.Ref, "refs/"):
		return unprocessable("%s is not a valid ref name", in.Ref)
	case !s.has(repo, "commit", in.SHA):
		return unprocessable("Object does not exist")
	case s.tip(repo, in.Ref) != "":
		return unprocessable("Reference already exists")
	}
	if _, err := s.command(repo.Dir, nil, nil, "update-ref", in.Ref, in.SHA, strings.Repeat("0", 40)); err != nil {
		return unprocessable("Reference update failed")
	}
	return answer{http.StatusCreated, s.fill("git-ref", map[string]any{
		"ref": in.Ref, "object": map[string]any{"type": "commit", "sha": in.SHA, "url": s.apiURL(repo, "git/commits/"+in.SHA)},
	})}
}
