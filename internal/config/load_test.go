package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
)

// place is a repository with a subdirectory to work in, and a home.
type place struct {
	t         *testing.T
	repo, sub string
	home      string
}

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{t: t, repo: filepath.Join(t.TempDir(), "repo"), home: t.TempDir()}
	p.sub = filepath.Join(p.repo, "a", "b")
	for _, dir := range []string{p.sub, filepath.Join(p.repo, ".git"), filepath.Join(p.home, ".config", "insightscli")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p place) write(path, text string) {
	p.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p place) load(flags map[string]string, environ ...string) (config.Config, error) {
	return config.Load(config.LoadOptions{
		Dir: p.sub, Flags: flags,
		Environ: append([]string{"HOME=" + p.home, "USERPROFILE=" + p.home}, environ...),
	})
}

func source(t *testing.T, c config.Config, name string) (text, source string) {
	t.Helper()
	for _, v := range c.Values() {
		if v.Name == name {
			return v.Text, v.Source
		}
	}
	t.Fatalf("no setting %s", name)
	return "", ""
}

// Every source in turn, from the weakest to the strongest: each takes the setting
// over from the one before.
func TestPrecedence(t *testing.T) {
	p := newPlace(t)
	var environ []string
	var flags map[string]string
	userFile := filepath.Join(p.home, ".config", "insightscli", "config.yaml")
	steps := []struct {
		source string
		want   time.Duration
		add    func()
	}{
		{"default", 3 * time.Hour, func() {}},
		{userFile + ":2", 1 * time.Minute, func() { p.write(userFile, "# mine\ntimeout: 1m\n") }},
		{p.repo + "/insights.yaml:1", 2 * time.Minute, func() { p.write(p.repo+"/insights.yaml", "timeout: 2m\n") }},
		{p.repo + "/.env:2", 3 * time.Minute, func() { p.write(p.repo+"/.env", "X=1\nINSIGHTSCLI_TIMEOUT=3m\n") }},
		{".env.local:1", 4 * time.Minute, func() { p.write(p.sub+"/.env.local", "export INSIGHTSCLI_TIMEOUT='4m'\n") }},
		{"environment", 5 * time.Minute, func() { environ = []string{"INSIGHTSCLI_TIMEOUT=5m"} }},
		{"flag --timeout", 6 * time.Minute, func() { flags = map[string]string{"INSIGHTSCLI_TIMEOUT": "6m"} }},
	}
	for _, s := range steps {
		s.add()
		c, err := p.load(flags, environ...)
		if err != nil {
			t.Fatal(err)
		}
		if _, from := source(t, c, "INSIGHTSCLI_TIMEOUT"); c.Run.Timeout != s.want || from != s.source {
			t.Errorf("timeout = %v from %q, want %v from %q", c.Run.Timeout, from, s.want, s.source)
		}
	}
}

func TestEmptyVariableCountsAsUnset(t *testing.T) {
	p := newPlace(t)
	p.write(p.repo+"/.env", "SANDBOX_PROVIDER=docker\n")
	c, err := p.load(nil, "SANDBOX_PROVIDER=")
	if err != nil || c.Provider != "docker" {
		t.Errorf("provider = %q, %v", c.Provider, err)
	}
}

// A file in a shared directory such as /tmp must not decide anything.
func TestNothingIsReadAboveTheRepository(t *testing.T) {
	p := newPlace(t)
	p.write(filepath.Join(filepath.Dir(p.repo), "insights.yaml"), "timeout: 1m\n")
	c, err := p.load(nil)
	if err != nil || c.Run.Timeout != 3*time.Hour {
		t.Errorf("timeout = %v, %v", c.Run.Timeout, err)
	}
	if err := os.RemoveAll(filepath.Join(p.repo, ".git")); err != nil {
		t.Fatal(err)
	}
	p.write(p.repo+"/insights.yaml", "timeout: 1m\n")
	if c, err = p.load(nil); err != nil || c.Run.Timeout != 3*time.Hour {
		t.Errorf("outside a repository: timeout = %v, %v", c.Run.Timeout, err)
	}
}

func TestRepositoryDoesNotDecideWhatBelongsToTheMachine(t *testing.T) {
	p := newPlace(t)
	p.write(p.repo+"/.env", "DOCKER_HOST=tcp://evil.test:1\nINSIGHTSCLI_STATE_DIR=/evil\nPATH=/evil\n")
	c, err := p.load(nil)
	if err != nil || c.Machine.DockerHost != "" || c.Machine.StateOverride != "" || c.Machine.Path != "" {
		t.Errorf("got %+v, %v", c.Machine, err)
	}
}

func TestVirtualEnvironmentAtDotEnvIsNoFile(t *testing.T) {
	p := newPlace(t)
	if err := os.Mkdir(p.repo+"/.env", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := p.load(nil); err != nil {
		t.Error(err)
	}
}

func TestDotenvWithMarkAndCRLF(t *testing.T) {
	p := newPlace(t)
	p.write(p.repo+"/.env", "\ufeffSANDBOX_PROVIDER=docker\r\nCLOUD_DEPLOYMENT=E2E # comment\r\n")
	c, err := p.load(nil)
	if err != nil || c.Provider != "docker" || c.CloudDeployment != "E2E" {
		t.Errorf("provider = %q, deployment = %q, %v", c.Provider, c.CloudDeployment, err)
	}
}

func TestSecretsAreHidden(t *testing.T) {
	const canary = "canary-7f3a"
	p := newPlace(t)
	p.write(p.repo+"/.env", "MODAL_TOKEN_SECRET="+canary+"\n")
	c, err := p.load(nil, "GITHUB_APP_PRIVATE_KEY="+canary)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Account.ModalTokenSecret.Reveal(); got != canary {
		t.Errorf("secret = %q", got)
	}
	if all := fmt.Sprintf("%v %+v %#v", c, c, c.Values()); strings.Contains(all, canary) {
		t.Error("a secret is printed")
	}
	if text, from := source(t, c, "MODAL_TOKEN_SECRET"); text != "[hidden]" || from != p.repo+"/.env:1" {
		t.Errorf("got %q from %q", text, from)
	}
}

// Each wrong file gives one error of kind Config that names the file and the line.
func TestWrongFiles(t *testing.T) {
	tests := []struct{ name, file, text, want string }{
		{"unknown key", "insights.yaml", "provider: docker\ntimeuot: 3h\n", `insights.yaml:2: unknown key "timeuot"`},
		{"name of the variable", "insights.yaml", "SANDBOX_PROVIDER: docker\n", `insights.yaml:1: unknown key "SANDBOX_PROVIDER"; here it is called "provider"`},
		{"secret in a checked-in file", "insights.yaml", "MODAL_TOKEN_ID: x\n", `insights.yaml:1: MODAL_TOKEN_ID is read from the environment, not from this file`},
		{"twice", "insights.yaml", "cpus: 1\nmemory: 1g\ncpus: 2\n", `insights.yaml:3: key "cpus" is given twice`},
		{"no mapping", "insights.yaml", "- a\n", "insights.yaml:1: expected KEY: VALUE lines"},
		{"list for a word", "insights.yaml", "provider: [docker]\n", "insights.yaml:1: provider: expected a single value"},
		{"syntax", "insights.yaml", "a: b: c\n", "insights.yaml:1: mapping values are not allowed in this context"},
		{"duration", "insights.yaml", "\ntimeout: soon\n", `insights.yaml:2: INSIGHTSCLI_TIMEOUT: "soon" is not a length of time such as 90s, 30m or 3h`},
		{"url", ".env", "X=1\nSANDBOX_API_URL=localhost:8000\n", ".env:2: SANDBOX_API_URL: not an http:// or https:// URL"},
		{"misspelt", ".env", "A=1\nB C\nINSIGHTSCLI_TIMEUOT=canary\n", `.env:3: unknown variable "INSIGHTSCLI_TIMEUOT"`},
		{"mount map", ".env", "SANDBOX_REPO_MOUNT_MAP=a/b:rel\n", `.env:1: SANDBOX_REPO_MOUNT_MAP: entry "a/b:rel" has a relative path; write an absolute one or ~/…`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			p.write(filepath.Join(p.sub, tt.file), tt.text)
			_, err := p.load(nil)
			if err == nil || err.Error() != tt.want || errs.KindOf(err) != errs.Config {
				t.Errorf("err = %v (%s), want %q", err, errs.KindOf(err), tt.want)
			}
			if strings.Contains(fmt.Sprint(err), "canary") {
				t.Error("the error shows a secret")
			}
		})
	}
}

// A .env belongs to many programs: what one of them cannot read keeps nobody from the
// rest, and is told without its text.
func TestOddLinesOfDotenvAreNotices(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"all is well", "\ufeffA='1'\nSANDBOX_PROVIDER=docker # why\n", ""},
		{"no assignment", "A=1\nB C\nSECRET=canary\nSANDBOX_PROVIDER=docker\n", "this line cannot be read as KEY=VALUE and is left out"},
		{"open quote", "SANDBOX_PROVIDER=docker\nSECRET=\"canary\n", "this line cannot be read as KEY=VALUE and is left out"},
		{"a quote too many", "A=1\nSECRET=\"canary\"canary\"\nSANDBOX_PROVIDER=docker\n", "this line cannot be read as KEY=VALUE and is left out"},
		{"several", "A=1\n1\n2\n3\n4\n5\n6\n7\nSANDBOX_PROVIDER=docker\n", "this line cannot be read as KEY=VALUE and is left out (so with 3, 4, 5, 6, 7, …)"},
		{"a name with a hyphen", "A=1\nMY-KEY=canary\nSANDBOX_PROVIDER=docker\n", "this line cannot be read by many other programs"},
		{"two comments", "A=1\nSANDBOX_PROVIDER=docker # why # canary\n", "this line is read differently by many other programs; put its value in single quotes"},
		{"a dollar", "SANDBOX_PROVIDER=docker\nMODAL_TOKEN_ID=canary$1234\n", "this line is read differently by many other programs; put its value in single quotes"},
		{"a dollar of somebody else", "SANDBOX_PROVIDER=docker\nTOKEN=canary$1234\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			p.write(filepath.Join(p.sub, ".env"), tt.text)
			var want []string
			if tt.want != "" {
				want = []string{".env:2: " + tt.want}
			}
			if c, err := p.load(nil); err != nil || c.Provider != "docker" || !slices.Equal(c.Notices, want) {
				t.Errorf("provider %q, notices %q, %v", c.Provider, c.Notices, err)
			}
		})
	}
}

func TestWrongVariableAndFlag(t *testing.T) {
	p := newPlace(t)
	_, err := p.load(nil, "INSIGHTSCLI_CPUS=two")
	if err == nil || errs.KindOf(err) != errs.Config || !strings.HasPrefix(err.Error(), "INSIGHTSCLI_CPUS: ") {
		t.Errorf("variable: %v", err)
	}
	_, err = p.load(map[string]string{"INSIGHTSCLI_CPUS": "two"})
	if err == nil || errs.KindOf(err) != errs.Usage || !strings.HasPrefix(err.Error(), "--cpus: ") {
		t.Errorf("flag: %v", err)
	}
}

func TestListsAndNullInYAML(t *testing.T) {
	p := newPlace(t)
	p.write(p.repo+"/insights.yaml", "repo-mounts:\n  - Org/Repo:~/src\n  - o/r:/x\nscopes: [query:read, insight:read]\nimage:\n")
	c, err := p.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := config.RepoMount{Org: "org", Name: "repo", Path: filepath.Join(p.home, "src")}
	if len(c.RepoMounts) != 2 || c.RepoMounts[0] != want {
		t.Errorf("mounts = %+v", c.RepoMounts)
	}
	if c.Run.Scopes != "query:read,insight:read" || c.Run.Image != "" {
		t.Errorf("scopes %q, image %q", c.Run.Scopes, c.Run.Image)
	}
}

func TestStateDir(t *testing.T) {
	p := newPlace(t)
	tests := []struct {
		environ []string
		want    string
	}{
		{[]string{"XDG_STATE_HOME=/xdg"}, "/xdg/insightscli"},
		{[]string{"XDG_STATE_HOME=relative"}, filepath.Join(p.home, ".local/state/insightscli")},
		{[]string{"XDG_STATE_HOME=/xdg", "INSIGHTSCLI_STATE_DIR=/mine"}, "/mine"},
		{[]string{"INSIGHTSCLI_STATE_DIR=mine"}, filepath.Join(p.sub, "mine")},
		{[]string{"INSIGHTSCLI_STATE_DIR=~/mine"}, filepath.Join(p.home, "mine")},
	}
	for _, tt := range tests {
		c, err := p.load(nil, tt.environ...)
		if err != nil {
			t.Fatal(err)
		}
		if dir, err := c.StateDir(); err != nil || dir != tt.want {
			t.Errorf("%v: %q, %v", tt.environ, dir, err)
		}
	}
}

func TestStateDirWithoutHome(t *testing.T) {
	c, err := config.Load(config.LoadOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.StateDir(); errs.KindOf(err) != errs.Config {
		t.Errorf("err = %v", err)
	}
}

func TestChooseProvider(t *testing.T) {
	const refusal = "docker sandbox is for local development only"
	tests := []struct {
		environ   []string
		want, err string
	}{
		{nil, "", ""},
		{[]string{"SANDBOX_PROVIDER=Docker"}, "docker", ""},
		{[]string{"SANDBOX_PROVIDER=modal_docker"}, "MODAL_DOCKER", ""},
		{[]string{"SANDBOX_PROVIDER=podmann"}, "", `unknown provider "podmann"`},
		{[]string{"DEBUG=0"}, "modal", ""},
		{[]string{"CLOUD_DEPLOYMENT=US"}, "modal", ""},
		{[]string{"DEBUG=False", "SANDBOX_PROVIDER=docker"}, "", refusal},
		{[]string{"DEBUG=0", "SANDBOX_PROVIDER=MODAL_DOCKER"}, "", "MODAL_DOCKER sandbox is for local development only"},
		{[]string{"DEBUG=0", "TEST=1", "SANDBOX_PROVIDER=docker"}, "docker", ""},
		{[]string{"DEBUG=0", "SANDBOX_PROVIDER=local"}, "local", ""},
		{[]string{"DEBUG=app:*", "SANDBOX_PROVIDER=docker"}, "docker", ""}, // of another program
		{[]string{"CLOUD_DEPLOYMENT=E2E", "SANDBOX_PROVIDER=docker"}, "docker", ""},
	}
	for _, tt := range tests {
		c, err := newPlace(t).load(nil, tt.environ...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.ChooseProvider()
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%v: %q, %v", tt.environ, got, err)
		}
		if err != nil && errs.KindOf(err).Code() != 2 {
			t.Errorf("%v: kind %s", tt.environ, errs.KindOf(err))
		}
	}
}

// Every row must be usable: a unique name, a sentence, a field that takes it.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range config.Settings() {
		if seen[s.Name] || s.Key != "" && seen[s.Key] {
			t.Errorf("%s stands twice", s.Name)
		}
		seen[s.Name], seen[s.Key] = true, true
		if !strings.HasSuffix(s.Doc, ".") || strings.Contains(s.Doc, "|") {
			t.Errorf("%s: %q is no sentence for a table", s.Name, s.Doc)
		}
		if s.Secret && s.Key != "" {
			t.Errorf("%s: a secret must not stand in a YAML file", s.Name)
		}
	}
}
