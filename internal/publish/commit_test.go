package publish_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/test/fakegithub"
)

// Exactly the index is published, as it is: not what was changed after it was staged, nor
// what was not staged. The checkout follows, its files stay.
func TestCommitPublishesTheIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.sh(`git switch -qc fix
printf 'staged\n' > a.txt; ln -s a.txt link; printf '\000\377\n' > bin; cp bin new.sh; chmod +x new.sh
printf x > 'odd "name
	tab'; git rm -q dir/b.txt; chmod -x run.sh
git add -A; printf 'later\n' > a.txt; printf 'not staged\n' > other`)
	tree := w.sh("git write-tree")
	text := w.do("git_signed_commit", args{"message": "fix it", "body": "Because.\n\nSee-Also: #1"})
	said := w.published("fix", tree, w.base)
	if want := "\n\nfix it\n\nBecause.\n\nSee-Also: #1\nGenerated-By: insightscli\nTask-Id: " + string(w.spec.Task); !strings.Contains(said, want) {
		t.Errorf("the commit says\n%s", said)
	}
	sha := w.tip("fix")
	if want := "- " + sha + " " + w.gh.URL + "/acme/app/commit/" + sha; !strings.Contains(text+"\n", want+"\n") || strings.Contains(text, "note:") {
		t.Errorf("%q, want %q", text, want)
	}
	w.inStep("fix")
	if got := w.sh("cat a.txt; git status --porcelain"); got != "later\n M a.txt\n?? other" {
		t.Errorf("the checkout has %q", got)
	}
	want := []task.Published{{Org: "acme", Name: "app", Branch: "fix", SHA: sha, URL: w.gh.URL + "/acme/app/commit/" + sha}}
	if !slices.Equal(w.told, want) {
		t.Errorf("told %+v", w.told)
	}
	w.refused("git_signed_commit", args{"message": "again"}, "no staged changes", "git add")
	w.do("git_signed_commit", args{"message": "more", "paths": []string{"a.txt", "other"}})
	w.published("fix", w.sh("git write-tree"), sha)
	w.inStep("fix")
}

// A branch may be named: the checkout is on it afterwards. Directories below the top and
// other working trees of the repository are the repository.
func TestCommitToANamedBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.sh("echo 2 > dir/new")
	w.do("git_signed_commit", args{"message": "new", "branch": "refs/heads/a/b", "paths": []string{"new"}, "cwd": "dir"})
	w.published("a/b", w.sh("git write-tree"), w.base)
	w.inStep("a/b")
	if got := w.sh("git rev-parse main"); got != w.base {
		t.Errorf("main is at %s", got)
	}
}

// What git fetched of the server meanwhile is known to the checkout, and a branch begins
// at what the agent took from it.
func TestCommitAfterAFetch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	theirs := w.others("main", "news", "n\n")
	w.sh("git fetch -q " + w.hub.Dir + " +main:refs/remotes/origin/main; git switch -qc fix origin/main; echo 2 > a.txt; git add a.txt")
	w.do("git_signed_commit", args{"message": "fix"})
	w.published("fix", w.sh("git write-tree"), theirs)
	w.inStep("fix")
}

// Commits that the agent has made without us (a cherry-pick, a revert) are published as
// one, on what GitHub has.
func TestOwnCommitsAreOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.sh("git switch -qc fix; echo 2 > a.txt; git commit -qam one; echo 3 > a.txt; git commit -qam two; echo 4 > new; git add new")
	w.do("git_signed_commit", args{"message": "both"})
	w.published("fix", w.sh("git write-tree"), w.base)
	w.inStep("fix")
}

func TestRefusalsOfACommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	stage := func(script string) { w.sh("git switch -qC fix main; git reset -q --hard; " + script) }
	commit := args{"message": "fix"}

	stage("echo 2 > a.txt; git add a.txt; git switch -q main")
	w.refused("git_signed_commit", commit, "nothing is published to main", "git switch -c NAME")
	w.refused("git_signed_commit", args{"message": "fix", "branch": "main"}, "default branch")
	w.refused("git_signed_commit", args{"message": "fix", "branch": "../x"}, "no name of a branch")
	w.refused("git_signed_commit", args{"message": "one\ntwo", "branch": "fix"}, "one line")
	w.refused("git_signed_commit", args{"message": "", "branch": "fix"}, "one line")
	w.refused("git_signed_commit", args{"message": strings.Repeat("x", 2000)}, "longer than")
	w.refused("git_signed_commit", args{"massage": "fix"}, "do not fit")
	w.refused("git_signed_commit", args{"message": "fix", "cwd": "/tmp"}, "none of the run's repositories", w.repos[0].Repo.Dir())
	w.refused("git_signed_commit", args{"message": "fix", "cwd": "../../../../../etc"}, "none of the run's repositories")
	w.refused("git_signed_commit", args{"message": "fix", "cwd": "nowhere"}, "cannot change to")
	stage("")
	w.refused("git_signed_commit", args{"message": "fix", "paths": []string{"none"}}, "did not match any files")
	w.refused("git_signed_commit", args{"message": "fix", "paths": []string{"../../../etc/passwd"}}, "outside repository")
	stage("git switch -q --detach")
	w.refused("git_signed_commit", commit, "detached", "git switch -c NAME")
	stage("git switch -q --orphan empty")
	w.refused("git_signed_commit", commit, "no commit yet")

	stage("echo x > a.txt; git commit -qam x; git switch -qC y main; echo y > a.txt; git commit -qam y; git switch -q fix; ! git merge y")
	w.refused("git_signed_commit", commit, "a merge is in progress", "git_signed_merge", "git merge --abort")
	w.sh("git merge --abort; ! git rebase y 2>/dev/null")
	w.refused("git_signed_commit", commit, "a rebase is in progress", "git rebase --continue")
	w.sh("git rebase --abort; ! git cherry-pick y 2>/dev/null")
	w.refused("git_signed_commit", commit, "a cherry-pick is in progress")
	w.sh("git cherry-pick --abort; git reset -q --hard; ! git merge y; rm .git/MERGE_HEAD")
	w.refused("git_signed_commit", commit, "unmerged files")
}

// What others have published meanwhile is neither overwritten nor undone.
func TestTheRemoteHasAdvanced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.sh("git switch -qc theirs; echo 2 > a.txt; git add a.txt")
	w.others("theirs", "news", "n\n")
	w.refused("git_signed_commit", args{"message": "fix"}, "the remote branch has advanced", "git stash -u", "origin/theirs")
}

// Changes of the base branch that are only staged are not the agent's.
func TestTheBaseBranchDoesNotLeak(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.others("main", "news", "n\n")
	w.sh("git switch -qc fix; echo n > news; echo 2 > a.txt; git add -A")
	w.refused("git_signed_commit", args{"message": "fix"}, `"news"`, "git restore --staged")
}

// The branch that the run began with is another's; but where it heads the one open pull
// request, that is what the run is for.
func TestTheBranchOfTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{repo: func(w *world) task.Repo {
		return task.Repo{Source: task.RepoRemote, Org: "acme", Name: "app", URL: w.gh.URL + "/acme/app.git", Branch: "theirs"}
	}})
	w.sh("echo 2 > a.txt; git add a.txt")
	w.refused("git_signed_commit", args{"message": "fix"}, "base branch")
	w.gh.OpenPull(w.hub, fakegithub.Pull{Head: "theirs", Base: "main"})
	w.do("git_signed_commit", args{"message": "fix"})
	w.inStep("theirs")
	main := w.others("main", "news", "n\n")
	w.sh("git fetch -q " + w.hub.Dir + " +main:refs/remotes/origin/main; git rebase -q origin/main")
	w.do("git_signed_rewrite", args{})
	w.published("theirs", w.sh("git rev-parse HEAD^{tree}"), main)
	w.inStep("theirs")
	main = w.others("main", "news", "m\n")
	tip := w.tip("theirs")
	w.do("git_signed_merge", args{})
	w.published("theirs", w.sh("git write-tree"), tip, main)
}

// The answer of every request may be lost, and the process may die at every one: called
// again, the tool finds what is done, and there is one commit.
func TestACommitWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]fakegithub.Fault{"lost": {Lose: true}, "dropped": {Drop: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n, total := 1, 1; n <= total; n++ {
				w := newWorld(t, setup{})
				w.sh("git switch -qc fix; echo 2 > a.txt; git add a.txt")
				tree := w.sh("git write-tree")
				ctx, kill := context.WithCancel(t.Context())
				w.gh.Before(func(_ string, at int) *fakegithub.Fault {
					if at != n {
						return nil
					}
					kill()
					f := fault
					return &f
				})
				_, first := w.tools["git_signed_commit"](ctx, []byte(`{"message":"fix"}`))
				w.gh.Before(func(string, int) *fakegithub.Fault { return nil })
				text, err := w.call("git_signed_commit", args{"message": "fix"})
				total = max(total, w.gh.Requests()) // of a whole call
				if err != nil && !strings.Contains(err.Error(), "no staged changes") || err == nil && !strings.Contains(text, w.tip("fix")) {
					t.Errorf("request %d (%v): %q, %v", n, first, text, err)
				}
				w.published("fix", tree, w.base)
				w.inStep("fix")
				kill()
			}
		})
	}
}

// The process dies before the checkout could follow: called again, it does.
func TestTheCheckoutFollowsLater(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"unpack-objects", "update-ref", "symbolic-ref", "reset"} {
		w := newWorld(t, setup{})
		w.sh("git switch -qc fix; echo 2 > a.txt; git add a.txt")
		tree := w.sh("git write-tree")
		w.exec.bend = func(_ context.Context, c wire.Command, _ io.Reader, _, _ io.Writer) (int, bool, error) {
			looks := at == "symbolic-ref" && slices.Contains(c.Argv, "-q")
			return -1, verb(c) == at && !looks, errKilled
		}
		if text := w.do("git_signed_commit", args{"message": "fix"}); !strings.Contains(text, "note: it is published, but your checkout is not at") {
			t.Errorf("%s: %q", at, text)
		}
		w.exec.bend = nil
		if _, err := w.call("git_signed_commit", args{"message": "other words"}); err != nil && !strings.Contains(err.Error(), "no staged changes") {
			t.Errorf("%s: %v", at, err)
		}
		w.published("fix", tree, w.base)
		w.inStep("fix")
	}
}

// Somebody else pushes to the branch between any two requests: what they did stays.
func TestTheRemoteAdvancesBetweenRequests(t *testing.T) {
	t.Parallel()
	for n, total := 1, 1; n <= total; n++ {
		w := newWorld(t, setup{})
		w.sh("git switch -qc theirs origin/main; echo 2 > a.txt; git add a.txt")
		var theirs string
		w.gh.Before(func(_ string, at int) *fakegithub.Fault {
			if at == n {
				theirs = w.others("theirs", "news", "n\n")
			}
			return nil
		})
		text, err := w.call("git_signed_commit", args{"message": "fix"})
		total = max(total, w.gh.Requests())
		w.gh.Before(func(string, int) *fakegithub.Fault { return nil })
		if err == nil && !strings.Contains(text, "- ") || err != nil && !strings.Contains(err.Error(), "advanced") {
			t.Errorf("request %d: %q, %v", n, text, err)
		}
		if theirs != "" {
			w.git(w.hub.Dir, "merge-base", "--is-ancestor", theirs, "theirs")
		}
	}
}

// A repository that is not on GitHub says so.
func TestNoGitHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{repo: func(w *world) task.Repo { return task.Repo{Source: task.RepoLocal, Path: w.local("")} }})
	w.sh("git switch -qc fix; echo 2 > a.txt; git add a.txt")
	for _, tool := range []string{"git_signed_commit", "git_signed_rewrite", "git_signed_merge", "create_pull_request"} {
		a := args{}
		switch tool {
		case "git_signed_commit":
			a["message"] = "x"
		case "create_pull_request":
			a["title"] = "x"
		}
		w.refused(tool, a, "has no origin on GitHub")
	}
}

// local makes a clone of the user's, whose origin is GitHub, or "" is none.
func (w *world) local(origin string) string {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "clone")
	w.git("", "clone", "-q", w.hub.Dir, dir)
	w.git(dir, "remote", "remove", "origin")
	if origin != "" {
		w.git(dir, "remote", "add", "origin", origin)
		w.git(dir, "update-ref", "refs/remotes/origin/main", w.base)
	}
	w.must(os.Chmod(dir, 0o755))
	return dir
}

// A repository of this machine is published to where its origin is, copied or mounted. On
// the host nothing of the user's clone moves; a mounted one is the agent's to move.
func TestLocalRepositories(t *testing.T) {
	t.Parallel()
	for _, mount := range []bool{false, true} {
		var clone string
		w := newWorld(t, setup{repo: func(w *world) task.Repo {
			clone = w.local(w.gh.URL + "/acme/app")
			return task.Repo{Source: task.RepoLocal, Path: clone, Mount: mount}
		}})
		w.others("main", "news", "n\n")
		w.sh("git switch -qc fix; echo 2 > a.txt; git add a.txt")
		w.do("git_signed_commit", args{"message": "fix"})
		w.published("fix", w.sh("git write-tree"), w.base)
		w.inStep("fix")
		if got := w.git(clone, "for-each-ref", "--format=%(refname)", "refs/heads/fix"); (got != "") != mount {
			t.Errorf("mounted %v: the user's clone has %q", mount, got)
		}
	}
}

// What the user has not pushed is not published in the agent's name.
func TestCommitsOfTheUserAreTheirs(t *testing.T) {
	t.Parallel()
	for _, mount := range []bool{false, true} {
		w := newWorld(t, setup{repo: func(w *world) task.Repo {
			clone := w.local(w.gh.URL + "/acme/app")
			w.write(clone, "private", "draft\n")
			w.git(clone, "add", "-A")
			w.git(clone, "commit", "-qm", "not pushed")
			return task.Repo{Source: task.RepoLocal, Path: clone, Mount: mount}
		}})
		w.sh("git switch -qc fix; echo 2 > a.txt; git add a.txt")
		w.refused("git_signed_commit", args{"message": "fix"}, "is not on GitHub", "push it")
	}
}
