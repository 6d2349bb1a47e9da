package steps

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/task"
)

// source makes a repository with one commit.
func source(t *testing.T, name string) task.Repo {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	for _, args := range [][]string{
		{"init", "-q", dir},
		{"-C", dir, "-c", "user.name=u", "-c", "user.email=u@example.com", "commit", "-q", "--allow-empty", "-m", name},
	} {
		cmd := exec.Command("git", args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	return task.Repo{Source: task.RepoLocal, Org: "o", Name: name, Path: dir}
}

// Repositories are prepared side by side, and come in the order in which they were
// named, with the access of their run.
func TestRepositoriesArePreparedSideBySide(t *testing.T) {
	f := newFixture(t)
	var asked task.ID
	f.Steps.ReposOf = func(_ context.Context, run task.ID) (*repo.Cache, error) {
		asked = run
		return repo.New(repo.Options{Dir: f.Steps.Dir, Environ: []string{"PATH=" + os.Getenv("PATH")}}), nil
	}
	f.spec.AgentUID, f.spec.AgentGID = os.Getuid(), os.Getgid()
	for _, name := range []string{"c", "a", "b", "e", "d", "f"} {
		f.spec.Repos = append(f.spec.Repos, source(t, name))
	}
	out, err := f.Workspace(t.Context(), WorkspaceIn{Spec: f.spec})
	f.must(err)
	at := 0
	for n, p := range out.Repos {
		if p.N != n || p.Repo.Name != f.spec.Repos[n].Name || out.Mounts[at].Target != p.Repo.Dir() {
			t.Errorf("repository %d is %+v", n, p)
		}
		at += len(p.Mounts)
	}
	if asked != testRun {
		t.Errorf("the access of run %q was used", asked)
	}
	f.spec.Repos[3].Path = filepath.Join(t.TempDir(), "gone")
	if _, err := f.Workspace(t.Context(), WorkspaceIn{Spec: f.spec}); err == nil {
		t.Error("a repository that is gone was prepared")
	}
}
