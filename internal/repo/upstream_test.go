package repo

import (
	"slices"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/task"
)

func TestParseOnAnotherGitHub(t *testing.T) {
	const ghe = "https://git.example.com"
	for _, tt := range []struct{ github, address, url string }{
		{"", "O/R", "https://github.com/O/R.git"},
		{"https://github.com", "o/r", "https://github.com/o/r.git"},
		{ghe, "O/R.git", ghe + "/O/R.git"},
		{ghe + "/", "o/r", ghe + "/o/r.git"},
		{ghe, "git.example.com/o/r", ghe + "/o/r.git"},
		{ghe, "github.com/o/r", "https://github.com/o/r.git"},
		{ghe, "https://github.com/o/r", "https://github.com/o/r"},
		{ghe, "git@git.example.com:o/r", "git@git.example.com:o/r"},
		{"http://127.0.0.1:81", "o/r", "http://127.0.0.1:81/o/r.git"},
	} {
		if r, err := ParseOn(tt.github, tt.address); err != nil || r.URL != tt.url || r.Org != "o" || r.Name != "r" {
			t.Errorf("%s on %s: %+v, %v", tt.address, tt.github, r, err)
		}
	}
	if r, err := ParseOn(ghe, "./x"); err != nil || r.Source != task.RepoLocal || r.URL != "" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, wrong := range []string{"x", "o/r/extra", "git.example.com/o", "-x/y"} {
		if r, err := ParseOn(ghe, wrong); err == nil {
			t.Errorf("%s: %+v", wrong, r)
		}
	}
}

func TestUpstreams(t *testing.T) {
	all := Upstreams([]task.Repo{
		{Source: task.RepoRemote, Org: "org", Name: "repo", URL: "https://github.com/Org/Repo.git"},
		{Source: task.RepoLocal, Org: "local", Name: "x", Path: "/x"},
		{Source: task.RepoLocal, Org: "o", Name: "r", Path: "/y", URL: "git@github.com:o/r.git"},
		{Source: task.RepoRemote, Org: "local", Name: "z", URL: "file:///srv/z.git"},
		{Source: task.RepoRemote, Org: "o", Name: "w", URL: "ssh://git@git.example.com:2222/o/w"},
	})
	if len(all) != 4 {
		t.Fatalf("%+v", all)
	}
	for i, want := range [][]string{
		{
			"https://github.com/Org/Repo", "https://github.com/org/repo", "git@github.com:Org/Repo", "git@github.com:org/repo",
			"ssh://git@github.com/Org/Repo", "ssh://git@ssh.github.com:443/Org/Repo",
		},
		{"git@github.com:o/r", "https://github.com/o/r", "ssh://git@github.com/o/r"},
		{"file:///srv/z"},
		{"ssh://git@git.example.com:2222/o/w", "ssh://git@git.example.com/o/w", "https://git.example.com/o/w"},
	} {
		for _, address := range want {
			if !slices.Contains(all[i].Addresses, address) {
				t.Errorf("%s is not among %q", address, all[i].Addresses)
			}
		}
		for _, address := range all[i].Addresses {
			if strings.HasSuffix(address, ".git") || strings.Count(address, "@") > 1 {
				t.Errorf("%s", address)
			}
		}
	}
	if all[0].Web != "https://github.com/Org/Repo" || all[1].Web != "" || all[0].Repo.FullHistory || !all[1].Repo.FullHistory || all[1].Repo.Source != task.RepoRemote {
		t.Errorf("%+v", all)
	}
}
