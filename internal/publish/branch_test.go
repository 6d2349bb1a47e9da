package publish_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/publish"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/test/fakegithub"
)

// start publishes a branch with one commit, and returns it.
func (w *world) start(branch string) string {
	w.t.Helper()
	w.sh("git switch -qc " + branch + "; echo 2 > a.txt; git add a.txt")
	w.do("git_signed_commit", args{"message": "one"})
	return w.tip(branch)
}

// rebased has main advance, and rebases the checkout onto it.
func (w *world) rebased() string {
	w.t.Helper()
	theirs := w.others("main", "news", "n\n")
	w.sh("git fetch -q " + w.hub.Dir + " +main:refs/remotes/origin/main; git rebase -q origin/main")
	return theirs
}

// After a rebase the commits are made again, on the base of today.
func TestRewriteAfterARebase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	old := w.start("fix")
	theirs := w.rebased()
	text := w.do("git_signed_rewrite", args{})
	if tip := w.tip("fix"); tip == old || !strings.Contains(text, "- "+tip+" ") {
		t.Errorf("%q, the tip is %s", text, tip)
	}
	said := w.published("fix", w.sh("git rev-parse HEAD^{tree}"), theirs)
	if strings.Contains(said, "Co-authored-by") {
		t.Errorf("the agent's own commit credits somebody:\n%s", said)
	}
	w.inStep("fix")
	if text := w.do("git_signed_rewrite", args{}); !strings.Contains(text, "already") {
		t.Errorf("again: %q", text)
	}
}

func TestRefusalsOfARewrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.sh("git switch -qc new; git commit -q --allow-empty -m x")
	w.refused("git_signed_rewrite", args{}, "no branch new to rewrite", "git_signed_commit")
	w.refused("git_signed_rewrite", args{"branch": "main"}, "default branch")
	w.sh("git switch -q --detach main")
	w.refused("git_signed_rewrite", args{}, "detached")
	w.sh("git switch -q main")
	w.start("fix")
	w.sh("git commit -q --amend -m other")
	w.refused("git_signed_rewrite", args{"onto": "nothing"}, "is no commit")
	w.refused("git_signed_rewrite", args{"onto": "HEAD"}, "is not on GitHub")
	w.refused("git_signed_rewrite", args{"onto": "--output=/tmp/x"}, "is no commit")
	w.refused("git_signed_rewrite", args{"onto": "origin/fix"}, "does not come after")
	w.sh("git switch -qC side main; git commit -q --allow-empty -m side; git switch -q fix; git merge -q side")
	w.refused("git_signed_rewrite", args{}, "is a merge", "git rebase")
	w.sh("git reset -q --hard main; for i in $(seq 501); do git commit -q --allow-empty -m $i; done")
	w.refused("git_signed_rewrite", args{}, "more than 500 commits")
	w.sh("git reset -q --hard main; git commit -q --allow-empty -m nothing")
	w.refused("git_signed_rewrite", args{}, "no staged changes")
}

// A branch that others have pushed to is not overwritten, whenever they did.
func TestARewriteLosesNothingOfOthers(t *testing.T) {
	t.Parallel()
	for n, total := 0, 1; n <= total; n++ {
		w := newWorld(t, setup{})
		w.start("fix")
		w.rebased()
		theirs := ""
		push := func() { theirs = w.others("fix", "theirs", "t\n") }
		if n == 0 {
			push() // before it all
		}
		w.gh.Before(func(_ string, at int) *fakegithub.Fault {
			if at == n {
				push()
			}
			return nil
		})
		text, err := w.call("git_signed_rewrite", args{})
		total = max(total, w.gh.Requests())
		w.gh.Before(func(string, int) *fakegithub.Fault { return nil })
		if err != nil && !strings.Contains(err.Error(), "advanced") {
			t.Errorf("request %d: %q, %v", n, text, err)
		}
		if theirs != "" {
			w.git(w.hub.Dir, "merge-base", "--is-ancestor", theirs, "fix")
		}
	}
}

// Lost answers of a rewrite and of a merge: the branch is the old one or the new one, and
// the next call ends the work.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for tool, prepare := range map[string]func(w *world){
		"git_signed_rewrite": func(w *world) { w.rebased() },
		"git_signed_merge":   func(w *world) { w.others("main", "news", "n\n") },
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			for n, total := 1, 1; n <= total; n++ {
				w := newWorld(t, setup{})
				w.start("fix")
				prepare(w)
				ctx, kill := context.WithCancel(t.Context())
				w.gh.Before(func(_ string, at int) *fakegithub.Fault {
					if at != n {
						return nil
					}
					kill()
					return &fakegithub.Fault{Lose: true}
				})
				_, _ = w.tools[tool](ctx, []byte(`{}`))
				w.gh.Before(func(string, int) *fakegithub.Fault { return nil })
				text := w.do(tool, args{})
				total = max(total, w.gh.Requests())
				if tip := w.tip("fix"); !strings.Contains(text, tip) || w.git(w.hub.Dir, "rev-list", "--count", tip) != map[string]string{"git_signed_rewrite": "3", "git_signed_merge": "4"}[tool] {
					t.Errorf("request %d: %q\n%s", n, text, w.git(w.hub.Dir, "log", "--graph", "--oneline", tip))
				}
				w.inStep("fix")
				kill()
			}
		})
	}
}

// The base branch comes in by a merge, and the files of the checkout with it.
func TestMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	one := w.start("fix")
	theirs := w.others("main", "news", "n\n")
	w.sh("echo kept > untracked")
	text := w.do("git_signed_merge", args{})
	w.published("fix", w.sh("git write-tree"), one, theirs)
	w.inStep("fix")
	if got := w.sh("cat news untracked; git status --porcelain"); got != "n\nkept\n?? untracked" || strings.Contains(text, "note:") {
		t.Errorf("the checkout has %q; %s", got, text)
	}
	if text := w.do("git_signed_merge", args{}); !strings.Contains(text, "already") {
		t.Errorf("again: %q", text)
	}
	// Into a branch that the checkout is not on.
	theirs = w.others("main", "news", "m\n")
	one = w.tip("fix")
	w.sh("git switch -q main")
	w.do("git_signed_merge", args{"branch": "fix", "from": "main", "message": "take it", "body": "all"})
	if said := w.git(w.hub.Dir, "show", "-s", "--format=%P %s", "fix"); said != one+" "+theirs+" take it" {
		t.Error(said)
	}
	if got := w.sh("git symbolic-ref --short HEAD; git rev-parse fix origin/fix; cat news 2>&1 || true"); !strings.HasPrefix(got, "main\n"+w.tip("fix")+"\n"+w.tip("fix")) {
		t.Error(got)
	}
}

// A merge that conflicts is resolved in the checkout and published from there.
func TestAResolvedMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	one := w.start("fix")
	theirs := w.others("main", "a.txt", "other\n")
	w.refused("git_signed_merge", args{}, `"a.txt" conflict`)
	w.sh("git fetch -q " + w.hub.Dir + " +main:refs/remotes/origin/main; ! git merge origin/main")
	w.refused("git_signed_merge", args{}, "unmerged files")
	w.sh("echo both > a.txt; git add a.txt")
	text := w.do("git_signed_merge", args{})
	w.published("fix", w.sh("git write-tree"), one, theirs)
	w.inStep("fix")
	if got := w.sh("git status --porcelain; cat a.txt; ls .git/MERGE_HEAD 2>&1 || true"); !strings.HasPrefix(got, "both\n") || !strings.Contains(got, "No such file") {
		t.Errorf("the checkout has %q", got)
	}
	if !strings.Contains(text, "Merged main into fix") {
		t.Error(text)
	}
}

func TestRefusalsOfAMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.sh("git switch -qc fix")
	w.refused("git_signed_merge", args{}, "no branch fix to merge into")
	w.refused("git_signed_merge", args{"branch": "main", "from": "theirs"}, "default branch")
	w.sh("git switch -q main; git branch -D fix")
	w.start("fix")
	w.refused("git_signed_merge", args{"from": "nothing"}, "no branch nothing on GitHub")
	w.others("main", "news", "n\n")
	w.sh("echo 3 > a.txt")
	w.refused("git_signed_merge", args{}, "changes that are not published", "git stash")
	w.sh("git commit -qam three")
	w.refused("git_signed_merge", args{}, "commits that are not on GitHub")
	w.sh("git reset -q --hard HEAD^; git switch -qc mine main; echo 9 > a.txt; git commit -qam mine; git switch -q fix; ! git merge mine; echo 5 > a.txt; git add a.txt")
	w.refused("git_signed_merge", args{}, "not on GitHub", "origin")
}

// A pull request says which run it is from, and there is one of them.
func TestPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.sh("git switch -qc fix")
	w.refused("create_pull_request", args{"title": "Fix"}, "git_signed_commit")
	w.sh("git switch -q main; git branch -D fix")
	w.start("fix")
	w.refused("create_pull_request", args{"title": " "}, "without a title")
	w.refused("create_pull_request", args{"title": "x", "base": "none"}, "there is no branch none")
	w.refused("create_pull_request", args{"title": "x", "labels": []string{strings.Repeat("x", 51)}}, "is no label")
	w.refused("create_pull_request", args{"title": "x", "head": "main", "base": "main"}, "into itself")
	text := w.do("create_pull_request", args{"title": "Fix", "body": "Because.", "labels": []string{"agent"}})
	again := w.do("create_pull_request", args{"title": "Other", "draft": false})
	pulls := w.gh.Pulls(w.hub)
	if len(pulls) != 1 {
		t.Fatalf("%+v", pulls)
	}
	p := pulls[0]
	if p.Title != "Fix" || p.Base != "main" || p.Head != "fix" || !p.Draft || !slices.Equal(p.Labels, []string{"agent"}) ||
		!strings.HasPrefix(p.Body, "Because.\n\n---\n") || !strings.Contains(p.Body, string(w.spec.Run)) || !strings.Contains(p.Body, string(w.spec.Task)) {
		t.Errorf("%+v", p)
	}
	url := w.gh.URL + "/acme/app/pull/1"
	if !strings.Contains(text, "draft pull request #1") || !strings.Contains(text, url) || !strings.Contains(again, "already") {
		t.Errorf("%q\n%q", text, again)
	}
	if last := w.told[len(w.told)-1]; last != (task.Published{Org: "acme", Name: "app", Branch: "fix", URL: url, Pull: 1}) {
		t.Errorf("told %+v", last)
	}
}

// A run that opens no pull requests commits all the same.
func TestNoPullRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{noCreate: true})
	w.start("fix")
	w.refused("create_pull_request", args{"title": "Fix"}, "--create-pr=false")
	if got := w.gh.Pulls(w.hub); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// A person's token publishes by another way, and less.
func TestAPersonsToken(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, setup{options: func(o *publish.Options) {
		o.Credential = func(context.Context, string, string, bool) (publish.Credential, error) {
			c := w.credential()
			c.User = true
			return c, nil
		}
	}})
	w.token = w.gh.UserToken()
	w.sh("git switch -qc fix; echo 2 > a.txt; git rm -q dir/b.txt; git add a.txt")
	tree := w.sh("git write-tree")
	w.do("git_signed_commit", args{"message": "fix"})
	w.published("fix", tree, w.base)
	w.inStep("fix")
	w.sh("ln -s a.txt link; git add link")
	w.refused("git_signed_commit", args{"message": "link"}, "link")
}
