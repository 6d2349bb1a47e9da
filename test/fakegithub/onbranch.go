package fakegithub

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// maxCommit is how much a request of createCommitOnBranch may have in it: with more
// GitHub ends it.
const maxCommit = 45 << 20

// commitOnBranch adds a commit to a branch that exists, as GitHub does: a new file is a
// plain one, a file that is there keeps its mode, and what is deleted must be there.
func (s *Server) commitOnBranch(in map[string]any, bearer string) (v any, kind, problem string) {
	branch := in["branch"].(map[string]any)
	owner, name, _ := strings.Cut(text(branch["repositoryNameWithOwner"]), "/")
	repo := s.repo(owner, name)
	t, refused := s.may(bearer, repo, "contents", "write")
	if refused != nil {
		return nil, refusedKind(refused.status), refused.body.(map[string]any)["message"].(string)
	}
	ref, expected := "refs/heads/"+text(branch["branchName"]), text(in["expectedHeadOid"])
	tip := s.tip(repo, ref)
	switch {
	case tip == "":
		return nil, "NOT_FOUND", fmt.Sprintf("Branch named %q does not exist", text(branch["branchName"]))
	case tip != expected:
		return nil, "STALE_DATA", fmt.Sprintf("Expected branch to point to %q but it did not. Pull and try again.", expected)
	}
	changes, _ := in["fileChanges"].(map[string]any)
	tree, kind, problem := s.changedTree(repo, t, tip, changes)
	if problem != "" {
		return nil, kind, problem
	}
	message := in["message"].(map[string]any)
	words := text(message["headline"])
	if body := text(message["body"]); body != "" {
		words += "\n\n" + body
	}
	oid, err := s.writeCommit(repo, t, commitText{tree, words, []string{tip}, !s.o.NoSigning, s.o.Clock()})
	if err == nil {
		_, err = s.command(repo.Dir, nil, nil, "update-ref", ref, oid, tip)
	}
	if err != nil {
		return nil, "UNPROCESSABLE", err.Error()
	}
	return map[string]any{"commit": s.queryCommit(repo, oid), "ref": s.queryRef(repo, ref)}, "", ""
}

func refusedKind(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "UNAUTHORIZED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	}
	return "FORBIDDEN"
}

// changedTree puts changes of files over the tree of a commit.
func (s *Server) changedTree(repo *Repo, t *token, tip string, changes map[string]any) (tree, kind, problem string) {
	index, err := os.MkdirTemp(s.root, "index")
	if err != nil {
		return "", "UNPROCESSABLE", err.Error()
	}
	defer os.RemoveAll(index) //nolint:errcheck // the test's folder goes anyway
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(index, "index")}
	if _, err := s.command(repo.Dir, env, nil, "read-tree", tip); err != nil {
		return "", "UNPROCESSABLE", err.Error()
	}
	have, err := s.modes(repo, env)
	if err != nil {
		return "", "UNPROCESSABLE", err.Error()
	}
	info, kind, problem := s.fileChanges(repo, t, have, changes)
	if problem != "" {
		return "", kind, problem
	}
	if info != "" {
		_, err = s.command(repo.Dir, env, []byte(info), "update-index", "-z", "--replace", "--index-info")
	}
	if err == nil {
		tree, err = s.command(repo.Dir, env, nil, "write-tree")
	}
	if err != nil {
		return "", "UNPROCESSABLE", err.Error()
	}
	return tree, "", ""
}

// modes are those of the files in an index.
func (s *Server) modes(repo *Repo, env []string) (map[string]string, error) {
	staged, err := s.command(repo.Dir, env, nil, "ls-files", "-s", "-z")
	have := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(staged, "\x00"), "\x00") {
		if about, path, ok := strings.Cut(line, "\t"); ok {
			have[path], _, _ = strings.Cut(about, " ")
		}
	}
	return have, err
}

// fileChanges are changes in the words of git's update-index.
func (s *Server) fileChanges(repo *Repo, t *token, have map[string]string, changes map[string]any) (info, kind, problem string) {
	var out strings.Builder
	size := 0
	deletions, _ := changes["deletions"].([]any)
	for _, one := range deletions {
		path := text(one.(map[string]any)["path"])
		if have[path] == "" {
			return "", "UNPROCESSABLE", fmt.Sprintf("A path was requested for deletion which does not exist as of commit oid: %q", path)
		}
		fmt.Fprintf(&out, "0 %s\t%s\x00", noOID, path)
	}
	additions, _ := changes["additions"].([]any)
	for _, one := range additions {
		f := one.(map[string]any)
		path, contents := text(f["path"]), text(f["contents"])
		data, err := base64.StdEncoding.DecodeString(contents)
		switch size += len(contents); {
		case err != nil:
			return "", "UNPROCESSABLE", "contents is not valid Base64"
		case size > maxCommit:
			return "", "UNPROCESSABLE", "the request is too large"
		case malformed(path):
			return "", "UNPROCESSABLE", "A path was requested which is malformed"
		case strings.HasPrefix(path, ".github/workflows") && !t.can("workflows", "write"):
			return "", "FORBIDDEN", "Resource not accessible by integration"
		}
		oid, err := s.command(repo.Dir, nil, data, "hash-object", "-w", "-t", "blob", "--stdin")
		if err != nil {
			return "", "UNPROCESSABLE", err.Error()
		}
		mode := have[path]
		if mode == "" || mode == "160000" {
			mode = "100644"
		}
		fmt.Fprintf(&out, "%s %s\t%s\x00", mode, oid, path)
	}
	return out.String(), "", ""
}

// merge brings a commit into a branch, as the button on GitHub's page does.
func (s *Server) merge(r *http.Request, repo *Repo, t *token) answer {
	var in struct {
		Base, Head, Message string
		CommitMessage       string `json:"commit_message"`
	}
	if err := s.decode(r, &in); err != nil {
		return unprocessable("%v", err)
	}
	ref, from := "refs/heads/"+in.Base, s.tip(repo, "refs/heads/"+in.Head)
	if from == "" {
		from = s.tip(repo, in.Head)
	}
	tip := s.tip(repo, ref)
	switch {
	case tip == "":
		return refusal(http.StatusNotFound, "Base does not exist")
	case from == "":
		return refusal(http.StatusNotFound, "Head does not exist")
	case s.descends(repo, tip, from):
		return answer{http.StatusNoContent, nil}
	}
	tree, err := s.command(repo.Dir, nil, nil, "merge-tree", "--write-tree", "--no-messages", tip, from)
	if err != nil {
		return refusal(http.StatusConflict, "Merge conflict")
	}
	parents, now := []string{tip, from}, s.o.Clock()
	oid, err := s.writeCommit(repo, t, commitText{tree, in.CommitMessage, parents, !s.o.NoSigning, now})
	if err == nil {
		_, err = s.command(repo.Dir, nil, nil, "update-ref", ref, oid, tip)
	}
	if err != nil {
		return unprocessable("%v", err)
	}
	git := s.describeCommit(repo, oid, in.CommitMessage, tree, parents, !s.o.NoSigning, now).(map[string]any)
	return answer{http.StatusCreated, s.fill("commit", map[string]any{
		"sha": oid, "html_url": git["html_url"], "parents": git["parents"],
		"commit": map[string]any{"message": in.CommitMessage, "tree": git["tree"], "verification": git["verification"]},
	})}
}
