package steps

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

// The addresses of the run's repositories lead to the host, after what the user has set.
func TestRewritesComeAfterThoseOfTheUser(t *testing.T) {
	repos := []task.Repo{{Source: task.RepoRemote, Org: "org", Name: "repo", URL: "https://github.com/Org/Repo.git"}}
	env := map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "u"}
	addRewrites(env, repos)
	if env["GIT_CONFIG_KEY_0"] != "user.name" || env["GIT_CONFIG_KEY_1"] != wire.GitRewrite+"org/repo.insteadOf" {
		t.Errorf("%q", env)
	}
	var count int
	if _, err := fmt.Sscan(env["GIT_CONFIG_COUNT"], &count); err != nil || len(env) != 1+2*count || count < 4 {
		t.Errorf("%d: %q", count, env)
	}
	for name, value := range env {
		if strings.HasPrefix(name, "GIT_CONFIG_VALUE_") && strings.HasSuffix(value, ".git") {
			t.Errorf("%s=%s", name, value)
		}
	}
	for _, odd := range []string{"x", "-1", ""} {
		env := map[string]string{"GIT_CONFIG_COUNT": odd}
		if addRewrites(env, repos); len(env) != 1 {
			t.Errorf("%q: %q", odd, env)
		}
	}
	none := map[string]string{}
	if addRewrites(none, []task.Repo{{Source: task.RepoLocal, Path: "/x"}}); len(none) != 0 {
		t.Errorf("%q", none)
	}
}

// What git is told is what gh is kept from.
func TestRewritesAreAtThePort(t *testing.T) {
	if want := fmt.Sprintf("url.http://127.0.0.1:%d/", wire.PortGit); wire.GitRewrite != want {
		t.Errorf("%s, want %s", wire.GitRewrite, want)
	}
}
