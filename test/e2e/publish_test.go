//go:build linux

package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/test/fakegithub"
	"github.com/Insights/insightscli/test/fakemodel"
)

// github gives the world a GitHub with a repository and an App on it, which the runs work
// in, and the App's key.
func (w *world) github() (*fakegithub.Server, *fakegithub.Repo, string) {
	w.t.Helper()
	gh := fakegithub.New(w.t, fakegithub.Options{})
	hub := gh.AddRepo("Acme", "App")
	w.git("push", "-q", hub.Dir, "main")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		w.t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	app := gh.AddApp("agent", "Acme", key, map[string]string{"contents": "write", "pull_requests": "write", "metadata": "read"})
	gh.Install("agent", "Acme", "App")
	w.env = append(w.env, "INSIGHTS_GITHUB_URL="+gh.URL, "GITHUB_APP_CLIENT_ID="+app.ClientID, "GITHUB_APP_CLIENT_SECRET=secret-of-the-app",
		"GITHUB_APP_SLUG="+app.Slug, "GITHUB_APP_PRIVATE_KEY="+text)
	w.flags = []string{"--agent", w.agent.name, "--repo", "Acme/App"}
	return gh, hub, text
}

// hubGit is real git in a repository of GitHub.
func (w *world) hubGit(hub *fakegithub.Repo, args ...string) string {
	w.t.Helper()
	out, err := exec.CommandContext(w.t.Context(), "git", append([]string{"--git-dir", hub.Dir}, args...)...).Output()
	if err != nil {
		w.t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// The agent edits a file, is refused by the guard, publishes by the tool and opens a pull
// request; the run's Result and `show` have both, and nothing that can write is in the
// sandbox or in what is kept.
func TestPublish(t *testing.T) {
	each(t, []agent{claude, codex}, func(w *world) {
		gh, hub, key := w.github()
		r := w.succeed([]fakemodel.Step{
			bash("echo third >> file.txt && chmod +x file.txt && ln -s file.txt link && git switch -qc fix && git add -A"),
			bash("git commit -m 'by hand'; echo the guard says $?; env; git remote -v; cat .git/config"),
			tool("mcp__sandbox__git_signed_commit", `{"message":"Add a line","body":"Because it was missing."}`),
			bash("git status --porcelain; git log --format='%h %an %s' -2; git push origin fix; echo the guard says $?"),
			tool("mcp__sandbox__create_pull_request", `{"title":"Add a line","body":"One line."}`),
			say("It is published."),
		})
		told := r.updates()
		for _, want := range []string{"commits must be signed", "the guard says 1", "Published to fix of Acme/App", "Opened draft pull request #1"} {
			if !strings.Contains(told, want) {
				w.t.Errorf("no %q in the events:\n%s", want, told)
			}
		}
		if got, want := w.hubGit(hub, "ls-tree", "-r", "fix"), "100755 blob"; !strings.Contains(got, want) || !strings.Contains(got, "120000 blob") {
			w.t.Errorf("GitHub has\n%s", got)
		}
		if got := w.hubGit(hub, "log", "--format=%P %s", "-1", "fix"); got != w.hubGit(hub, "rev-parse", "main")+" Add a line" {
			w.t.Error(got)
		}
		said := w.hubGit(hub, "cat-file", "commit", "fix")
		if !strings.Contains(said, "gpgsig ") || !strings.Contains(said, "Generated-By: insightscli\nTask-Id: "+string(r.result.Task)) {
			w.t.Errorf("the commit is\n%s", said)
		}
		pulls := gh.Pulls(hub)
		if len(pulls) != 1 || pulls[0].Head != "fix" || pulls[0].Base != "main" || !strings.Contains(pulls[0].Body, string(r.result.Run)) {
			w.t.Errorf("pull requests %+v", pulls)
		}
		tip := w.hubGit(hub, "rev-parse", "fix")
		want := []task.Published{
			{Org: "acme", Name: "app", Branch: "fix", SHA: tip, URL: gh.URL + "/Acme/App/commit/" + tip},
			{Org: "acme", Name: "app", Branch: "fix", URL: gh.URL + "/Acme/App/pull/1", Pull: 1},
		}
		if !slices.Equal(r.result.Published, want) {
			w.t.Errorf("the result says %+v", r.result.Published)
		}
		if shown := w.must("show", "latest"); !strings.Contains(shown, "pull request #1 of fix") {
			w.t.Errorf("show says\n%s", shown)
		}
		if body := string(w.requests()[0].Body); !strings.Contains(body, "git_signed_commit") || !strings.Contains(body, "create_pull_request") {
			w.t.Error("the agent was not told to publish")
		}
		if len(gh.Writers()) == 0 {
			w.t.Error("nothing could write")
		}
		w.nowhere(append(gh.Writers(), strings.Split(key, "\n")[1])...)
		for _, token := range gh.Writers() {
			if strings.Contains(r.stdout+r.stderr, token) {
				w.t.Error("a token is in the output")
			}
		}
	})
}

// nowhere checks that no file of the state directory, and no request to the model, has one
// of some texts.
func (w *world) nowhere(texts ...string) {
	w.t.Helper()
	err := filepath.WalkDir(w.state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, text := range texts {
			if bytes.Contains(raw, []byte(text)) {
				w.t.Errorf("%q is in %s", text, path)
			}
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
	for _, req := range w.model.Requests() {
		for _, text := range texts {
			if bytes.Contains(req.Body, []byte(text)) {
				w.t.Errorf("%q has come to the model", text)
			}
		}
	}
}

// A run that opens no pull requests commits all the same, and its agent is told neither.
func TestPublishWithoutPullRequest(t *testing.T) {
	one(t, claude, func(w *world) {
		gh, hub, _ := w.github()
		r := w.succeed([]fakemodel.Step{
			bash("echo third >> file.txt; git switch -qc fix; git add -A"),
			tool("mcp__sandbox__git_signed_commit", `{"message":"Add a line"}`),
			tool("mcp__sandbox__create_pull_request", `{"title":"Add a line"}`),
			say("done"),
		}, "--create-pr=false")
		if len(gh.Pulls(hub)) != 0 || len(r.result.Published) != 1 || !strings.Contains(r.updates(), "opens no pull requests (--create-pr=false)") {
			w.t.Errorf("pull requests %+v, published %+v\n%s", gh.Pulls(hub), r.result.Published, r.updates())
		}
		if body := string(w.requests()[0].Body); strings.Contains(body, "publish them when the work is done") {
			w.t.Error("the agent was told to publish")
		}
	})
}

// The process that carries out the run is killed while the commit is on its way to GitHub.
// The agent's call fails or waits; the next one ends the work, and there is one commit.
func TestPublishAcrossAKill(t *testing.T) {
	one(t, claude, func(w *world) {
		gh, hub, _ := w.github()
		killed := make(chan struct{})
		gh.Before(func(op string, _ int) *fakegithub.Fault {
			if op != fakegithub.OpCommit {
				return nil
			}
			select {
			case <-killed:
			default:
				close(killed)
				w.killRunner()
			}
			return nil
		})
		commit := tool("mcp__sandbox__git_signed_commit", `{"message":"Add a line"}`)
		id := w.detach([]fakemodel.Step{
			bash("echo third >> file.txt; git switch -qc fix; git add -A"), commit,
			bash("echo in between"), commit, say("done"),
		}, "--host-grace", "2m")
		<-killed
		w.must("ps")
		r := w.ended(id)
		if r.code != 0 || len(r.result.Published) != 1 || w.hubGit(hub, "rev-list", "--count", "fix") != "2" {
			w.t.Errorf("exit code %d, published %+v\n%s\n%s", r.code, r.result.Published, w.hubGit(hub, "log", "--oneline", "--all"), w.story(r.events))
		}
	})
}

// A tree of the user's that is mounted is published from like any other: the agent's own
// branch moves there, the user's do not.
func TestPublishFromAMountedTree(t *testing.T) {
	for _, provider := range []string{"local", "docker"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, claude, provider)
			gh, hub, _ := w.github()
			w.git("remote", "add", "origin", gh.URL+"/Acme/App.git")
			if os.Getuid() == 0 { // the agent is another user then, and the tree is its own
				w.write(filepath.Join(w.home, ".gitconfig"), "[safe]\n\tdirectory = *\n")
				if out, err := exec.CommandContext(t.Context(), "chown", "-R", "1000:1000", w.repo).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			w.env = append(w.env, "SANDBOX_REPO_MOUNT_MAP=acme/app:"+w.repo)
			r := w.succeed([]fakemodel.Step{
				bash("echo third >> file.txt; git switch -qc fix; git add -A"),
				tool("mcp__sandbox__git_signed_commit", `{"message":"Add a line"}`),
				bash("git status --porcelain; git log --oneline -1; echo looked"),
				tool("mcp__sandbox__create_pull_request", `{"title":"Add a line","draft":false}`),
				say("done"),
			})
			if len(r.result.Published) != 2 || strings.Contains(r.updates(), "note: it is published, but") {
				t.Errorf("published %+v\n%s", r.result.Published, r.updates())
			}
			tip := w.hubGit(hub, "rev-parse", "fix")
			here, err := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "-C", w.repo, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads").Output()
			want := "refs/heads/fix " + tip + "\nrefs/heads/main " + w.hubGit(hub, "rev-parse", "main") + "\n"
			if err != nil || string(here) != want {
				t.Errorf("the tree has\n%swant\n%s%v", here, want, err)
			}
		})
	}
}
