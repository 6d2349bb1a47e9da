package repo

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/task"
)

func TestOnGitHub(t *testing.T) {
	const ghe = "https://github.example.com"
	for _, tt := range []struct{ github, address, want string }{
		{"", "https://github.com/Org/Repo.git", "Org/Repo"},
		{"", "https://user:pw@github.com/Org/Repo", "Org/Repo"},
		{"", "git@github.com:Org/Repo.git", "Org/Repo"},
		{"", "ssh://git@ssh.github.com:443/Org/Repo.git", "Org/Repo"},
		{"", "https://github.com/Org/Repo/more", ""},
		{"", "https://github.example.com/Org/Repo", ""},
		{"", "https://github.com.evil.example/Org/Repo", ""},
		{"", "file:///github.com/Org/Repo", ""},
		{"", "/home/x/Repo", ""},
		{"", "ext::sh -c x", ""},
		{"", "", ""},
		{ghe, "https://github.example.com/Org/Repo.git", "Org/Repo"},
		{ghe, "git@github.example.com:Org/Repo.git", "Org/Repo"},
		{ghe, "https://github.example.com:8443/Org/Repo.git", ""},
		{ghe, "https://github.com/Org/Repo.git", ""},
		{"http://127.0.0.1:8080", "http://127.0.0.1:8080/Org/Repo", "Org/Repo"},
		{"http://127.0.0.1:8080", "http://127.0.0.1:8081/Org/Repo", ""},
	} {
		owner, name, ok := OnGitHub(tt.github, task.Repo{URL: tt.address})
		if got := owner + "/" + name; ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%q on %q: %s, %v", tt.address, tt.github, got, ok)
		}
	}
}

// Small trees that stand for ever more files are counted no further than need be.
func TestFilesAreCountedWithinBounds(t *testing.T) {
	f := newFixture(t)
	tree := f.git(f.top, "rev-parse", "HEAD^{tree}")
	for range 9 {
		var entries strings.Builder
		for _, dir := range strings.Split("0123456789", "") {
			entries.WriteString("040000 tree " + tree + "\t" + dir + "\n")
		}
		cmd := exec.CommandContext(t.Context(), "git", "mktree")
		cmd.Dir, cmd.Stdin = f.top, strings.NewReader(entries.String())
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		tree = strings.TrimSpace(string(out))
	}
	gitDir := f.top + "/.git"
	if n, err := f.cache.files(t.Context(), gitDir, tree, 1000); err != nil || n != 1001 {
		t.Errorf("%d files, %v", n, err)
	}
	if err := f.cache.checkGrowth(t.Context(), gitDir, "HEAD", tree); err == nil || !strings.Contains(err.Error(), "more than 1000000 files") {
		t.Error(err)
	}
	if err := f.cache.checkGrowth(t.Context(), gitDir, "HEAD", "HEAD^{tree}"); err != nil {
		t.Error(err)
	}
}
