package config_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/config"
)

func TestParseMounts(t *testing.T) {
	const home = "/home/me"
	one := func(path string) []config.RepoMount {
		return []config.RepoMount{{Org: "org", Name: "repo", Path: path}}
	}
	tests := []struct {
		text string
		want []config.RepoMount
		err  string
	}{
		{"", nil, ""},
		{" , ", nil, ""},
		{"Org/Repo:/p", one("/p"), ""},
		{"org/repo:~/Developer/x", one("/home/me/Developer/x"), ""},
		{"org/repo:~", one("/home/me"), ""},
		{" org/repo : /with space/x , ", one("/with space/x"), ""},
		{"org/repo:/a:b", one("/a:b"), ""},
		{"org/repo:/p,ORG/repo:/p/", one("/p"), ""},
		{"org/repo:/p,org/repo:/q", nil, `entry "org/repo:/q" gives org/repo a second path beside /p`},
		{"org/repo:rel/path", nil, `entry "org/repo:rel/path" has a relative path; write an absolute one or ~/…`},
		{"org/repo:", nil, `entry "org/repo:" has no path; write org/repo:/path`},
		{"org/repo", nil, `entry "org/repo" has no path; write org/repo:/path`},
		{"repo:/p", nil, `entry "repo:/p" does not begin with org/repo`},
		{"../x:/p", nil, `entry "../x:/p" does not begin with org/repo`},
		{"a/b/c:/p", nil, `entry "a/b/c:/p" does not begin with org/repo`},
		{"-o/x:/p", nil, `entry "-o/x:/p" does not begin with org/repo`},
		{"org/repo:~other/x", nil, `entry "org/repo:~other/x" names the home of another user, which is not supported`},
	}
	for _, tt := range tests {
		got, err := config.ParseMounts(tt.text, home)
		if len(got) != len(tt.want) || len(got) > 0 && got[0] != tt.want[0] {
			t.Errorf("%q = %+v, want %+v", tt.text, got, tt.want)
		}
		if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%q: err = %v, want %q", tt.text, err, tt.err)
		}
	}
}

func TestMountsNeedHomeForTilde(t *testing.T) {
	if _, err := config.ParseMounts("o/r:~/x", ""); err == nil {
		t.Error("~ without HOME is accepted")
	}
}

func FuzzParseMounts(f *testing.F) {
	for _, seed := range []string{"Insights/insights:~/Developer/insights", "o/r:/a,o/r:/b,", " a/b : /c d ", "o/r:/a:b", "o/r:../x", ":,/:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		mounts, err := config.ParseMounts(text, "/home/me")
		if err != nil && mounts != nil {
			t.Error("mounts beside an error")
		}
		seen := map[string]bool{}
		for _, m := range mounts {
			key := m.Org + "/" + m.Name
			if !filepath.IsAbs(m.Path) || seen[key] || key != strings.ToLower(key) || strings.Contains(key, "..") && (m.Org == ".." || m.Name == "..") {
				t.Errorf("%q gives %+v", text, m)
			}
			seen[key] = true
		}
	})
}

func TestParseVar(t *testing.T) {
	environ := []string{"HERE=first", "HERE=last", "EMPTY="}
	tests := []struct{ arg, name, value, err string }{
		{"K=V", "K", "V", ""},
		{"K=", "K", "", ""},
		{"K=a=b\nc", "K", "a=b\nc", ""},
		{"HERE", "HERE", "last", ""},
		{"EMPTY", "EMPTY", "", ""},
		{"MISSING", "", "", "MISSING is not set in the environment; write MISSING=VALUE"},
		{"=V", "", "", `"" is not the name of a variable`},
		{"1K=V", "", "", `"1K" is not the name of a variable`},
		{"K-X=V", "", "", `"K-X" is not the name of a variable`},
		{"GITHUB_TOKEN=x", "", "", "GITHUB_TOKEN is set by insightscli itself"},
		{"LD_PRELOAD=x", "", "", "LD_PRELOAD changes how programs of the sandbox start, and is not passed on"},
		{"GIT_SSH_COMMAND=x", "", "", "GIT_SSH_COMMAND changes how programs of the sandbox start, and is not passed on"},
		{"NODE_OPTIONS=x", "", "", "NODE_OPTIONS changes how programs of the sandbox start, and is not passed on"},
		{"K=a\x00b", "", "", "the value of K holds a NUL byte"},
	}
	for _, tt := range tests {
		name, value, err := config.ParseVar(tt.arg, environ)
		if name != tt.name || value != tt.value || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%q = %q, %q, %v", tt.arg, name, value, err)
		}
	}
}

func FuzzParseVar(f *testing.F) {
	for _, seed := range []string{"K=V", "K", "=", "LD_X=1", "é=1", "A=b=c", "A\x00=b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		name, value, err := config.ParseVar(arg, []string{"K=here"})
		switch {
		case err != nil:
			if name != "" || value != "" {
				t.Error("a variable beside an error")
			}
		case name == "" || strings.ContainsAny(name, "=\x00 \n") || strings.Contains(value, "\x00"):
			t.Errorf("%q gives %q=%q", arg, name, value)
		}
	})
}

func TestParseMemory(t *testing.T) {
	tests := map[string]int64{
		"0": 0, "512": 512, "512m": 512, "8g": 8192, "8GiB": 8192, "1.5g": 1536, "1T": 1 << 20, "2GB": 2048,
		"": -1, "g": -1, "-1": -1, "lots": -1, "NaN": -1, "1e30g": -1, "0.1m": -1, "4m": -1,
	}
	for text, want := range tests {
		got, err := config.ParseMemory(text)
		if want < 0 && err == nil || want >= 0 && (err != nil || got != want) {
			t.Errorf("%q = %d, %v", text, got, err)
		}
	}
}

func TestParseDuration(t *testing.T) {
	if d, err := config.ParseDuration("0"); err != nil || d != 0 {
		t.Errorf("0 = %v, %v", d, err)
	}
	if d, err := config.ParseDuration("90s"); err != nil || d != 90*time.Second {
		t.Errorf("90s = %v, %v", d, err)
	}
	for _, text := range []string{"", "5", "-1s", "soon"} {
		if _, err := config.ParseDuration(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
