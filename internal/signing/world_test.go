package signing

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/test/fakegithub"
)

// world is a GitHub with one repository, a bare repository of ours that holds what
// is to be published, and a client.
type world struct {
	t      *testing.T
	gh     *fakegithub.Server
	repo   *fakegithub.Repo
	bare   string
	client *Client
	token  string
	base   string // the first commit, which is main and work

	blobs map[string]string // the hashes of contents in ours

	theirs string // what others made of the branch

	mu      sync.Mutex
	notices []string
}

// file is what a path has in a tree.
type file struct{ mode, content string }

func (f file) String() string { return f.mode + " " + fmt.Sprintf("%.40q", f.content) }

type files map[string]file

func everything() map[string]string {
	return map[string]string{"contents": "write", "pull_requests": "write", "workflows": "write"}
}

func newWorld(t *testing.T, o fakegithub.Options, first files) *world {
	t.Helper()
	w := &world{t: t, gh: fakegithub.New(t, o), bare: filepath.Join(t.TempDir(), "ours.git"), blobs: map[string]string{}}
	w.repo = w.gh.AddRepo("acme", "app")
	w.token = w.gh.Token("acme", everything(), "app")
	w.client = w.newClient()
	w.git("", "init", "-q", "--bare", "--template=", w.bare)
	w.base = w.commit(w.tree(first), "first")
	w.git(w.bare, "push", "-q", w.repo.Dir, w.base+":refs/heads/main", w.base+":refs/heads/work")
	return w
}

// reset makes GitHub's branches what they were at first.
func (w *world) reset() {
	w.t.Helper()
	var todo strings.Builder
	for ref := range strings.FieldsSeq(w.git(w.repo.Dir, "for-each-ref", "--format=%(refname)")) {
		todo.WriteString("delete " + ref + "\n")
	}
	w.pipe(w.repo.Dir, todo.String(), nil, "update-ref", "--stdin")
	w.git(w.repo.Dir, "update-ref", "refs/heads/main", w.base)
	w.git(w.repo.Dir, "update-ref", "refs/heads/work", w.base)
}

func (w *world) newClient() *Client {
	w.t.Helper()
	c, err := New(Options{
		APIURL: w.gh.URL + "/api/v3", Environ: []string{"PATH=" + os.Getenv("PATH")},
		Token:  func(context.Context) (secret.String, error) { return secret.New(w.token), nil },
		Pause:  func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Notify: func(s string) { w.mu.Lock(); defer w.mu.Unlock(); w.notices = append(w.notices, s) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// git runs the real git of a person.
func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	return w.pipe(dir, "", nil, args...)
}

func (w *world) pipe(dir, in string, env []string, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "git", args...)
	cmd.Env = append(os.Environ(), append(env,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
		"GIT_AUTHOR_DATE=1760000000 +0000", "GIT_COMMITTER_DATE=1760000000 +0000")...)
	cmd.Stdin, cmd.Dir = strings.NewReader(in), dir
	var says bytes.Buffer
	cmd.Stderr = &says
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, says.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// tree makes a tree of files in ours.
func (w *world) tree(all files) string {
	w.t.Helper()
	var info strings.Builder
	for path, f := range all {
		oid := f.content
		if f.mode != modeModule {
			if oid = w.blobs[f.content]; oid == "" {
				oid = w.pipe(w.bare, f.content, nil, "hash-object", "-w", "--stdin")
				w.blobs[f.content] = oid
			}
		}
		fmt.Fprintf(&info, "%s %s\t%s\x00", f.mode, oid, path)
	}
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(w.t.TempDir(), "index")}
	w.pipe(w.bare, info.String(), env, "update-index", "-z", "--index-info")
	return w.pipe(w.bare, "", env, "write-tree")
}

func (w *world) commit(tree, text string, parents ...string) string {
	w.t.Helper()
	args := []string{"commit-tree", tree, "-m", text}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	return w.git(w.bare, args...)
}

// tip is what GitHub's branch points to.
func (w *world) tip(branch string) string {
	w.t.Helper()
	return w.git(w.repo.Dir, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

// others moves a branch on GitHub, as somebody else does.
func (w *world) others(branch string) string {
	w.t.Helper()
	from := w.tip(branch)
	args := []string{"commit-tree", w.git(w.repo.Dir, "rev-parse", w.base+"^{tree}"), "-m", "somebody else's"}
	if from != "" {
		args = append(args, "-p", from)
	}
	oid := w.git(w.repo.Dir, args...)
	w.git(w.repo.Dir, "update-ref", "refs/heads/"+branch, oid)
	return oid
}

// request is the commit of a tree on the branch work.
func (w *world) request(tree string) Request {
	return Request{
		Repo: Repo{"acme", "app"}, Branch: "work", Base: "main", Bare: w.bare, Tree: tree,
		Parents: []string{w.base}, Expected: w.base, Message: "change things", Body: "Task-Id: 1",
	}
}

// fetch brings a branch from GitHub into an empty repository by real git, checks it,
// and returns it.
func (w *world) fetch(branch string) string {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "fetched.git")
	w.git("", "init", "-q", "--bare", "--template=", dir)
	url := strings.Replace(w.gh.URL, "://", "://x-access-token:"+w.token+"@", 1) + "/acme/app.git"
	w.git(dir, "fetch", "-q", url, "+refs/heads/"+branch+":refs/heads/got")
	w.git(dir, "fsck", "--strict", "--no-dangling")
	return dir
}

// published checks that GitHub's branch has the tree and comes from where it should.
func (w *world) published(branch, tree string, parents ...string) {
	w.t.Helper()
	dir := w.fetch(branch)
	want, got := w.git(w.bare, "ls-tree", "-r", "-t", "-z", tree), w.git(dir, "ls-tree", "-r", "-t", "-z", "got")
	if got != want {
		w.t.Errorf("GitHub has\n%s\nwant\n%s", strings.ReplaceAll(got, "\x00", "\n"), strings.ReplaceAll(want, "\x00", "\n"))
	}
	if have := strings.Fields(w.git(dir, "show", "-s", "--format=%P", "got")); !slices.Equal(have, parents) {
		w.t.Errorf("the parents are %v, want %v", have, parents)
	}
	if text := w.git(dir, "cat-file", "commit", "got"); !strings.Contains(text, "gpgsig ") || !strings.Contains(text, "committer GitHub") {
		w.t.Errorf("not signed:\n%s", text)
	}
	w.clean()
}

// clean checks that no ref is left on GitHub that a branch is not, and no token where
// it does not belong.
func (w *world) clean() {
	w.t.Helper()
	if left := w.git(w.repo.Dir, "for-each-ref", "--format=%(refname)", "refs/insights", "refs/heads/insights"); left != "" {
		w.t.Errorf("left on GitHub: %s", left)
	}
	w.hidden(fmt.Sprint(w.notices))
}

func (w *world) hidden(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		if strings.Contains(text, w.token) || strings.Contains(text, w.token[len(w.token)-40:]) {
			w.t.Errorf("the token is in %q", text)
		}
	}
}
