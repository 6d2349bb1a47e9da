package signing

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/test/fakegithub"
)

func start() files {
	return files{
		"README.md": {"100644", "hello\n"}, "run.sh": {"100755", "#!/bin/sh\n"}, "link": {"120000", "README.md"},
		"dir/a": {"100644", "a"}, "dir/b": {"100644", "b"}, "vendor/lib": {"160000", strings.Repeat("1", 40)},
	}
}

func TestACommitIsWhatWasStaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	now := start()
	now["README.md"] = file{"100755", "hello\n"}                        // only the mode
	now["new.bin"] = file{"100644", "\x00\xff\xfe\r\n binary \x80"}     // binary
	now["moved/run.sh"] = now["run.sh"]                                 // renamed
	now["link"] = file{"120000", "dir/a"}                               // another target
	now["vendor/lib"] = file{"160000", strings.Repeat("2", 40)}         // another commit
	now["vendor/other"] = file{"160000", strings.Repeat("3", 40)}       // a new submodule
	now["empty"] = file{"100644", ""}                                   //
	now[".github/workflows/ci.yml"] = file{"100644", "on: push\n"}      //
	now["odd \"name\"\t\\ \nñ 日本/-x/ space "] = file{"100644", "odd\n"} //
	delete(now, "run.sh")
	delete(now, "dir/b")
	tree := w.tree(now)
	got, err := w.client.Publish(t.Context(), w.request(tree))
	if err != nil || !got.Verified || got.SHA != w.tip("work") || got.URL != w.gh.URL+"/acme/app/commit/"+got.SHA || len(got.Warnings) > 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.published("work", tree, w.base)
	if text := w.git(w.repo.Dir, "show", "-s", "--format=%B", got.SHA); text != "change things\n\nTask-Id: 1" {
		t.Errorf("message %q", text)
	}
	again, err := w.client.Publish(t.Context(), w.request(tree))
	if err != nil || !again.Unchanged || again.SHA != got.SHA {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// Property: whatever two trees are, the second is published as it is.
func TestAnyTreeSurvives(t *testing.T) {
	t.Parallel()
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			before := randomFiles(r, nil)
			after := randomFiles(r, before)
			w := newWorld(t, fakegithub.Options{}, before)
			tree := w.tree(after)
			got, err := w.client.Publish(t.Context(), w.request(tree))
			if w.git(w.bare, "rev-parse", w.base+"^{tree}") == tree {
				if !errors.Is(err, ErrNothing) {
					t.Errorf("nothing was published: %+v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v\nbefore %v\nafter %v", err, before, after)
			}
			w.published("work", tree, w.base)
		})
	}
}

// randomFiles makes a tree, out of another if there is one.
func randomFiles(r *rand.Rand, from files) files {
	names := []string{"a", "b", "ü", "日本", "a b", "-n", "x\ny", "\"q\"", "t\tt", "back\\slash", ".hidden", "A", "~", ":", "*?[z]", "e\u0301"}
	all := files{}
	for path, f := range from {
		if r.IntN(3) > 0 {
			all.put(path, f)
		}
	}
	for range 1 + r.IntN(25) {
		path := names[r.IntN(len(names))]
		for range r.IntN(4) {
			path += "/" + names[r.IntN(len(names))]
		}
		f := file{[]string{"100644", "100755", "120000"}[r.IntN(3)], fmt.Sprint("content ", r.IntN(20))}
		if r.IntN(8) == 0 {
			f = file{modeModule, fmt.Sprintf("%040x", r.IntN(3)+1)}
		}
		all.put(path, f)
	}
	return all
}

// put adds a file, in the place of whatever has a part of its name.
func (all files) put(path string, f file) {
	for other := range all {
		if strings.HasPrefix(other, path+"/") || strings.HasPrefix(path, other+"/") {
			delete(all, other)
		}
	}
	all[path] = f
}

func TestANewBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	r := w.request(w.tree(files{"x": {"100644", "x"}}))
	r.Branch, r.Expected = "feature/new-thing", ""
	if got, err := w.client.Publish(t.Context(), r); err != nil || !got.Verified {
		t.Fatalf("%+v, %v", got, err)
	}
	w.published("feature/new-thing", r.Tree, w.base)
}

func TestEverythingIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	if _, err := w.client.Publish(t.Context(), w.request(w.tree(files{}))); err != nil {
		t.Fatal(err)
	}
	w.published("work", emptyTree, w.base)
}

func TestAThousandFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	tree := w.thousand()
	if got, err := w.client.Publish(t.Context(), w.request(tree)); err != nil || len(got.Warnings) > 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.published("work", tree, w.base)
	if blobs, trees := w.gh.Count(fakegithub.OpBlob), w.gh.Count(fakegithub.OpTree); blobs != 0 || trees > 11 {
		t.Errorf("%d blobs one by one, %d trees", blobs, trees)
	}
}

// thousand makes a tree of 1,000 files, fast.
func (w *world) thousand() string {
	var in strings.Builder
	in.WriteString("commit refs/tmp\ncommitter x <x@x> 0 +0000\ndata 0\n")
	for i := range 1000 {
		text := fmt.Sprintf("content of %d\n", i)
		fmt.Fprintf(&in, "M 100644 inline dir%d/file%d\ndata %d\n%s\n", i%37, i, len(text), text)
	}
	w.pipe(w.bare, in.String(), nil, "fast-import", "--quiet")
	return w.git(w.bare, "rev-parse", "refs/tmp^{tree}")
}

// A server that refuses pushes still gets its files, one by one.
func TestWherePushesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	w.repo.NoPush = true
	now := start()
	for i := range manyBlobs + 20 {
		now[fmt.Sprintf("f%d", i)] = file{"100644", fmt.Sprint(i)}
	}
	tree := w.tree(now)
	got, err := w.client.Publish(t.Context(), w.request(tree))
	if err != nil || len(got.Warnings) != 2 || w.gh.Count(fakegithub.OpBlob) != manyBlobs+20 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.hidden(got.Warnings...)
	w.published("work", tree, w.base)
}

func TestALargeFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	now := start()
	now["big.bin"] = file{"100644", strings.Repeat("0123456789abcdef", 40_000_000/16)}
	tree := w.tree(now)
	if got, err := w.client.Publish(t.Context(), w.request(tree)); err != nil || len(got.Warnings) > 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.published("work", tree, w.base)

	w.repo.NoPush = true
	r := w.request(tree)
	r.Branch, r.Expected = "other", ""
	_, err := w.client.Publish(t.Context(), r)
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), `"big.bin" has 38 MiB`) || !strings.Contains(errs.HintOf(err), "LFS") || w.tip("other") != "" {
		t.Errorf("%v (hint %q)", err, errs.HintOf(err))
	}
	w.hidden(err.Error())
}

// refusal is a request that must change nothing.
type refusal struct {
	change func(*world, *Request)
	is     error
	kind   errs.Kind
	hint   string
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	allRefused(t, map[string]refusal{
		"the default branch": {func(_ *world, r *Request) { r.Branch = "main" }, ErrDefaultBranch, errs.Conflict, "git switch -c"},
		"the base branch":    {func(_ *world, r *Request) { r.Base = "work" }, ErrBaseBranch, errs.Conflict, "git switch -c"},
		"the base branch, with two pull requests": {func(w *world, r *Request) {
			r.Base = "work"
			w.gh.OpenPull(w.repo, fakegithub.Pull{Head: "work", Base: "main"})
			w.gh.OpenPull(w.repo, fakegithub.Pull{Head: "work", Base: "next"})
		}, ErrBaseBranch, errs.Conflict, "git switch -c"},
		"the base branch, with a fork's pull request": {func(w *world, r *Request) {
			r.Base = "work"
			w.gh.OpenPull(w.repo, fakegithub.Pull{Head: "work", Base: "main", CrossForks: true})
		}, ErrBaseBranch, errs.Conflict, "git switch -c"},
		"an unknown default branch": {func(w *world, _ *Request) { w.repo.Default = "none" }, ErrUnknownBranch, errs.Conflict, "first commit"},
		"a branch that advanced":    {func(w *world, _ *Request) { w.others("work") }, ErrMoved, errs.Conflict, "git stash -u"},
		"a branch that is gone":     {func(w *world, r *Request) { r.Branch = "gone" }, ErrMoved, errs.Conflict, "git stash -u"},
		"a branch that exists":      {func(_ *world, r *Request) { r.Expected = "" }, ErrMoved, errs.Conflict, "git stash -u"},
		"nothing staged":            {func(w *world, r *Request) { r.Tree = w.tree(start()) }, ErrNothing, errs.Conflict, "git add"},
		"a name that is not UTF-8":  {func(w *world, r *Request) { r.Tree = w.tree(files{"\xff": {"100644", "x"}}) }, nil, errs.Conflict, "rename"},
		"an archived repository":    {func(w *world, _ *Request) { w.repo.Archived = true }, nil, errs.Conflict, "unarchive"},
		"no such repository":        {func(_ *world, r *Request) { r.Repo.Name = "none" }, nil, errs.NotFound, "installed"},
		"a path for a repository":   {func(_ *world, r *Request) { r.Repo.Name = "a/b" }, nil, errs.Usage, "owner/name"},
		"an option for a branch":    {func(_ *world, r *Request) { r.Branch = "--force" }, nil, errs.Usage, "name of a branch"},
		"a name for a commit":       {func(_ *world, r *Request) { r.Tree = "HEAD" }, nil, errs.Usage, ""},
		"no message":                {func(_ *world, r *Request) { r.Message = " " }, nil, errs.Usage, "headline"},
		"no parent":                 {func(_ *world, r *Request) { r.Parents = nil }, nil, errs.Usage, ""},
	})
}

func TestWhatGitHubRefuses(t *testing.T) {
	t.Parallel()
	allRefused(t, map[string]refusal{
		"a revoked token": {func(w *world, _ *Request) { w.gh.Revoke() }, nil, errs.Auth, "key"},
		"a token that cannot write": {func(w *world, _ *Request) {
			w.token = w.gh.Token("acme", map[string]string{"contents": "read"}, "app")
		}, nil, errs.Auth, "write access to contents"},
		"workflows without the permission": {func(w *world, r *Request) {
			w.token = w.gh.Token("acme", map[string]string{"contents": "write"}, "app")
			r.Tree = w.tree(files{".github/workflows/x.yml": {"100644", "x"}})
		}, nil, errs.Auth, "workflows"},
		"single sign-on": {func(w *world, _ *Request) {
			w.gh.Break(fakegithub.OpBlob, fakegithub.Fault{
				Status: 403, Message: "Resource protected by organization SAML enforcement.",
				Header: http.Header{"X-Github-Sso": {"required; url=https://github.com/orgs/acme/sso"}},
			})
		}, nil, errs.Auth, "https://github.com/orgs/acme/sso"},
		"a limit for an hour": {func(w *world, _ *Request) {
			w.gh.Break(fakegithub.OpBlob, fakegithub.Fault{Status: 403, Message: "secondary rate limit", Header: http.Header{"Retry-After": {"3600"}}})
		}, nil, errs.Unavailable, "wait"},
		"a limit of GraphQL": {func(w *world, _ *Request) {
			w.gh.Break(fakegithub.OpGraphQL, fakegithub.Fault{Alter: func(m map[string]any) {
				m["errors"] = []any{map[string]any{"type": "RATE_LIMITED", "message": "x"}}
			}})
		}, nil, errs.Unavailable, "wait"},
		"GitHub in trouble": {func(w *world, _ *Request) {
			w.gh.Break(fakegithub.OpCommit, fakegithub.Fault{Status: 502, Message: "x"})
		}, nil, errs.Unavailable, "try again"},
		"a secret in a file": {func(w *world, r *Request) {
			w.protect("GH013: Repository rule violations found", "Push cannot contain secrets")
			r.Tree = w.tree(files{"big": {"100644", strings.Repeat("x", bigUpload+1)}})
		}, ErrSecret, errs.Conflict, "remove it"},
		"another tree than ours": {func(w *world, _ *Request) {
			w.gh.Break(fakegithub.OpTree, fakegithub.Fault{Alter: func(m map[string]any) { m["sha"] = strings.Repeat("a", 40) }})
		}, nil, errs.Internal, ""},
	})
}

func allRefused(t *testing.T, all map[string]refusal) {
	t.Helper()
	for name, tt := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fakegithub.Options{}, start())
			r := w.request(w.tree(files{"x": {"100644", "x"}}))
			tt.change(w, &r)
			was := w.tip("work")
			got, err := w.client.Publish(t.Context(), r)
			if err == nil {
				t.Fatalf("%+v", got)
			}
			if tt.is != nil && !errors.Is(err, tt.is) || errs.KindOf(err) != tt.kind || !strings.Contains(errs.HintOf(err), tt.hint) {
				t.Errorf("%s %v (hint %q)", errs.KindOf(err), err, errs.HintOf(err))
			}
			if w.tip("work") != was {
				t.Error("the branch moved")
			}
			w.hidden(err.Error(), errs.HintOf(err))
			w.clean()
		})
	}
}

// protect refuses every push with some words.
func (w *world) protect(words ...string) {
	w.t.Helper()
	hook := filepath.Join(w.repo.Dir, "hooks", "pre-receive")
	err := os.MkdirAll(filepath.Dir(hook), 0o755)
	if err == nil {
		err = os.WriteFile(hook, []byte("#!/bin/sh\necho 'error: "+strings.Join(words, "\n- ")+"' >&2\nexit 1\n"), 0o755)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// A base branch that heads one pull request is that pull request's branch.
func TestTheBaseBranchOfAPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	w.gh.OpenPull(w.repo, fakegithub.Pull{Head: "work", Base: "main"})
	r := w.request(w.tree(files{"x": {"100644", "x"}}))
	r.Base = "work"
	if _, err := w.client.Publish(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.published("work", r.Tree, w.base)
}

func TestAnUnsignedCommitIsNotPublished(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]fakegithub.Options{"a server that does not sign": {NoSigning: true}, "a person's token": {}} {
		w := newWorld(t, o, start())
		if !o.NoSigning {
			w.token = w.gh.UserToken()
		}
		r := w.request(w.tree(files{"x": {"100644", "x"}}))
		_, err := w.client.Publish(t.Context(), r)
		if !errors.Is(err, ErrUnverified) || w.tip("work") != w.base || errs.HintOf(err) == "" {
			t.Errorf("%s: %v, the branch is at %s", name, err, w.tip("work"))
		}
	}
}

func TestARenamedRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	w.gh.Rename(w.repo, "renamed")
	w.token = w.gh.Token("acme", everything(), "renamed")
	got, err := w.client.Publish(t.Context(), w.request(w.tree(files{"x": {"100644", "x"}})))
	if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "acme/renamed") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestChangesOfTheBaseBranchDoNotLeak(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegithub.Options{}, start())
	ahead := start()
	for i := range 13 {
		ahead[fmt.Sprintf("theirs%02d", i)] = file{"100644", fmt.Sprint(i)}
	}
	baseTip := w.commit(w.tree(ahead), "ahead", w.base)
	mine := start()
	mine["mine"] = file{"100644", "mine"}
	for i := range 12 {
		mine[fmt.Sprintf("theirs%02d", i)] = file{"100644", fmt.Sprint(i)}
	}
	r := w.request(w.tree(mine))
	r.BaseTip = baseTip
	_, err := w.client.Publish(t.Context(), r)
	if !errors.Is(err, ErrBaseLeak) || !strings.Contains(err.Error(), `"theirs09" and 2 more`) || strings.Contains(err.Error(), "mine") || w.tip("work") != w.base {
		t.Errorf("%v", err)
	}
	delete(mine, "theirs03")
	r.Tree, r.BaseTip = w.tree(files{"mine": {"100644", "mine"}}), strings.Repeat("0", 39)+"1"
	got, err := w.client.Publish(t.Context(), r)
	if err != nil || !slices.ContainsFunc(got.Warnings, func(s string) bool { return strings.Contains(s, "not checked") }) {
		t.Errorf("a base that is not there: %+v, %v", got, err)
	}
}
