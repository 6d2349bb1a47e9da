package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Insights/insightscli/test/fakegithub"
)

// hub is a GitHub with one repository and an App on it, and a machine that works there.
type hub struct {
	t     *testing.T
	bin   string
	state string
	dir   string // where commands run: no .env
	fake  *fakegithub.Server
	repo  *fakegithub.Repo
	env   []string
	// provider is that of the sandboxes, if the test is about several
	provider string
}

// ghScript is the gh of the sandbox's image: it tells which token it was given, and which
// remote it sees.
const ghScript = `#!/bin/sh
printf %s "$GH_ENTERPRISE_TOKEN" | sha256sum | cut -c1-16
echo "host $GH_HOST remote $(git remote get-url origin)"
`

// eachHub runs f on every provider of this machine.
func eachHub(t *testing.T, o fakegithub.Options, f func(*testing.T, *hub)) {
	for _, provider := range []string{"local", "docker"} {
		t.Run(provider, func(t *testing.T) {
			if provider == "docker" {
				needEngine(t, needSandbox(t))
			}
			h := newHub(t, o)
			h.env, h.provider = append(h.env, "SANDBOX_PROVIDER="+provider, "DOCKER_HOST="+os.Getenv("DOCKER_HOST")), provider
			f(t, h)
		})
	}
}

func newHub(t *testing.T, o fakegithub.Options) *hub {
	t.Helper()
	h := newEmptyHub(t, o)
	h.fake.Install("my-app", "org", "Repo")
	h.commit("first", map[string]string{"bin/gh": ghScript, "file": "one\n"})
	return h
}

// newEmptyHub is one whose App is installed nowhere, and whose repository is empty.
func newEmptyHub(t *testing.T, o fakegithub.Options) *hub {
	t.Helper()
	h := &hub{t: t, bin: needSandbox(t), state: stateDir(t), dir: t.TempDir(), fake: fakegithub.New(t, o)}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	app := h.fake.AddApp("my-app", "org", key, map[string]string{
		"contents": "write", "metadata": "read", "pull_requests": "write", "checks": "read",
	})
	h.repo = h.fake.AddRepo("org", "Repo")
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	h.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "INSIGHTSCLI_STATE_DIR=" + h.state, "INSIGHTS_GITHUB_URL=" + h.fake.URL,
		"GITHUB_APP_CLIENT_ID=" + app.ClientID, "GITHUB_APP_CLIENT_SECRET=s", "GITHUB_APP_SLUG=my-app", "GITHUB_APP_PRIVATE_KEY=" + string(text),
		"SANDBOX_PROVIDER=local", "INSIGHTSCLI_NETWORK=link",
	}
	t.Cleanup(func() {
		_ = h.command(context.Background(), "stop", "--cancel").Run() // there may be none
	})
	return h
}

// commit puts files on the main branch of GitHub's repository.
func (h *hub) commit(message string, files map[string]string) {
	h.t.Helper()
	tree := h.t.TempDir()
	git := func(args ...string) {
		h.t.Helper()
		cmd := exec.CommandContext(h.t.Context(), "git", append([]string{"-C", tree, "-c", "user.name=u", "-c", "user.email=u@example.com"}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + tree, "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			h.t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	git("remote", "add", "o", h.repo.Dir)
	if _, err := os.Stat(filepath.Join(h.repo.Dir, "refs/heads/main")); err == nil {
		git("pull", "-q", "o", "main")
	}
	for name, content := range files {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			h.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			h.t.Fatal(err)
		}
	}
	git("add", "-A")
	git("commit", "-q", "-m", message)
	git("push", "-q", "o", "main")
}

func (h *hub) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.bin, args...)
	cmd.Dir, cmd.Env = h.dir, h.env
	return cmd
}

// live is a run at work.
type live struct {
	h    *hub
	cmd  *exec.Cmd
	mu   sync.Mutex
	text bytes.Buffer
	done chan struct{}
	err  error
}

// Write implements io.Writer.
func (l *live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *live) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (h *hub) start(script string, flags ...string) *live {
	h.t.Helper()
	l := &live{h: h, done: make(chan struct{})}
	if len(flags) == 0 {
		flags = []string{"--repo", "org/Repo"}
	}
	args := append(append([]string{"run"}, flags...), "--", "sh", "-c", `PATH="$PATH:$PWD/bin"; `+script)
	l.cmd = h.command(h.t.Context(), args...)
	l.cmd.Stdout, l.cmd.Stderr = l, l
	if err := l.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() {
		defer close(l.done)
		l.err = l.cmd.Wait()
	}()
	return l
}

// eventually waits for something that takes a moment.
func (h *hub) eventually(what string, ok func() bool) {
	h.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(2 * time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			h.t.Fatalf("%s: it never came", what)
		}
	}
}

func (l *live) wait() string {
	l.h.t.Helper()
	select {
	case <-l.done:
	case <-time.After(time.Minute):
		_ = l.cmd.Process.Kill()
		l.h.t.Fatalf("it hangs: %s", l.said())
	}
	if l.err != nil {
		l.h.t.Fatalf("%v: %s", l.err, l.said())
	}
	return l.said()
}

// first waits for the first token.
func (l *live) first() {
	l.h.t.Helper()
	l.h.eventually("a token", func() bool { return len(marks(l.said())) >= 1 || isClosed(l.done) })
	if len(marks(l.said())) == 0 {
		l.h.t.Fatal(l.said())
	}
}

func mark(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])[:16]
}

// In a sandbox without a network git fetches what is new and gh has a token that reads;
// both end with the run.
func TestSandboxReadsItsRepositories(t *testing.T) {
	eachHub(t, fakegithub.Options{}, sandboxReads)
}

func sandboxReads(t *testing.T, h *hub) {
	l := h.start(`gh; echo ready; until git fetch -q origin && git log -1 --format=%s origin/main | grep news; do sleep 0.1; done
		git pull -q && cat file; git push origin HEAD:x 2>&1; /usr/bin/git push origin HEAD:x 2>&1; command -v gh; git config --get remote.origin.url`)
	h.eventually("the sandbox", func() bool { return strings.Contains(l.said(), "ready") })
	h.commit("news", map[string]string{"file": "two\n"})
	said := l.wait()
	all, revoked := h.fake.Tokens()
	slices.Sort(all)
	slices.Sort(revoked)
	if len(all) < 2 || !slices.Equal(all, revoked) {
		t.Errorf("%d tokens, %d revoked", len(all), len(revoked))
	}
	host := strings.TrimPrefix(h.fake.URL, "http://")
	for _, want := range []string{
		"host " + host + " remote " + h.fake.URL + "/org/Repo.git", "news\ntwo\n", "git commit is disabled", "remote: git commit is disabled",
		"The requested URL returned error: 403", "/opt/insights/bin/gh\n", h.fake.URL + "/org/Repo.git\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
	if !slices.ContainsFunc(all, func(token string) bool { return strings.Contains(said, mark(token)) }) {
		t.Errorf("gh has no token of ours: %s", said)
	}
}

// A checkout on this machine whose origin is on GitHub has both, too.
func TestSandboxOfACheckoutReadsItsOrigin(t *testing.T) {
	h := newHub(t, fakegithub.Options{})
	for range 60 {
		h.commit("more", map[string]string{"count": rand.Text()})
	}
	clone := filepath.Join(h.dir, "clone")
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("clone", "-q", h.repo.Dir, clone)
	git("-C", clone, "reset", "-q", "--hard", "HEAD~55") // it is behind
	git("-C", clone, "remote", "set-url", "origin", "git@127.0.0.1:org/Repo.git")
	l := h.start(`gh; git pull -q origin main && git log -1 --format=%s && git rev-list --count HEAD`, "--repo", "./clone")
	if said := l.wait(); !strings.Contains(said, "more\n61\n") || strings.Contains(said, mark("")) {
		t.Error(said)
	}
}

// watchGH tells in a sandbox whenever gh has another token.
const watchGH = `last=; while [ ! -e /tmp/stop ]; do now=$(gh | head -1); [ "$now" = "$last" ] || echo "token $now"; last=$now; sleep 0.1; done`

func marks(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if _, after, ok := strings.Cut(strings.TrimSpace(line), "token "); ok {
			all = append(all, after)
		}
	}
	return all
}

// What was made for the look at a repository ends where no run comes of it.
func TestNoTokenOutlivesARefusal(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		code int
	}{
		"a dry run": {[]string{"--dry-run", "--", "true"}, 0},
		"a refusal": {[]string{"--agent=claude", "--schema=/none/schema.json", "a prompt"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, fakegithub.Options{})
			cmd := h.command(t.Context(), append([]string{"run", "--repo=org/Repo"}, tt.args...)...)
			out, _ := cmd.CombinedOutput() // its code is looked at
			if cmd.ProcessState.ExitCode() != tt.code {
				t.Fatalf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
			}
			if all, revoked := h.fake.Tokens(); len(all) == 0 || !slices.Equal(all, revoked) {
				t.Errorf("%d tokens, %d revoked", len(all), len(revoked))
			}
		})
	}
}

// A token lives for two seconds, the run goes on, and the host is killed meanwhile.
func TestTokenOfASandboxIsRenewed(t *testing.T) {
	h := newHub(t, fakegithub.Options{})
	h.env = append(h.env, "TASKS_CREDENTIAL_REFRESH_INITIAL_DELAY_SECONDS=1")
	l := h.start(watchGH)
	l.first()
	h.fake.TokenLife(2 * time.Second)
	h.eventually("three tokens", func() bool { return len(marks(l.said())) >= 3 })
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-l.done
	before, _ := h.fake.Tokens()
	logs := func() string {
		out, _ := h.command(t.Context(), "logs", "latest", "--raw").Output()
		return string(out)
	}
	h.eventually("a token of the next host", func() bool {
		_ = h.command(t.Context(), "ps").Run() // any command finds the run
		all, _ := h.fake.Tokens()
		said := logs()
		return slices.ContainsFunc(all[len(before):], func(token string) bool { return strings.Contains(said, mark(token)) })
	})
	if out, err := h.command(t.Context(), "exec", "latest", "--", "touch", "/tmp/stop").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := h.command(t.Context(), "wait", "latest").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all, revoked := h.fake.Tokens()
	if len(revoked) == 0 || !slices.Contains(revoked, all[len(all)-1]) {
		t.Errorf("%d of %d tokens were revoked", len(revoked), len(all))
	}
	for _, one := range marks(logs()) {
		if !slices.ContainsFunc(all, func(token string) bool { return mark(token) == one }) {
			t.Errorf("gh had something else: %s", one)
		}
	}
}

// What is taken back is taken back in a sandbox that is at work.
func TestSandboxIsLoggedOut(t *testing.T) {
	for name, takeBack := range map[string]func(h *hub) error{
		"the App is suspended":   func(h *hub) error { h.fake.Suspend("org"); return nil },
		"the settings are empty": func(h *hub) error { return os.WriteFile(filepath.Join(h.dir, ".env"), nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, fakegithub.Options{})
			h.env = append(h.env, "TASKS_CREDENTIAL_REFRESH_INITIAL_DELAY_SECONDS=1")
			h.settingsInFile()
			h.loggedOut(t, takeBack)
		})
	}
}

// settingsInFile moves the App from the environment to a .env.
func (h *hub) settingsInFile() {
	var file strings.Builder
	h.env = slices.DeleteFunc(h.env, func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "GITHUB_APP_") {
			return false
		}
		file.WriteString(name + "=" + strconv.Quote(strings.TrimSpace(value)) + "\n")
		return true
	})
	if err := os.WriteFile(filepath.Join(h.dir, ".env"), []byte(file.String()), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hub) loggedOut(t *testing.T, takeBack func(*hub) error) {
	l := h.start(watchGH)
	l.first()
	h.fake.TokenLife(2 * time.Second)
	if err := takeBack(h); err != nil {
		t.Fatal(err)
	}
	h.eventually("the end of it", func() bool { return strings.Contains(l.said(), "token "+mark("")) })
	if out, err := h.command(t.Context(), "exec", "latest", "--", "touch", "/tmp/stop").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if said := l.wait(); !strings.Contains(said, "gh in the sandbox has been logged out") {
		t.Error(said)
	}
}

// The tokens are in no argument, file, log or event, while the run works and after.
func TestTokensLeaveNoTrace(t *testing.T) {
	eachHub(t, fakegithub.Options{}, leavesNoTrace)
}

func leavesNoTrace(t *testing.T, h *hub) {
	// The whole environment of gh is printed: events hide what is in it.
	h.commit("loud", map[string]string{"bin/gh": "#!/bin/sh\nenv | grep TOKEN\n"})
	l := h.start(`gh; gh >/dev/null; cat .git/config; env; git fetch -q; ls -laR /run /dev/shm 2>/dev/null; echo ready; while [ ! -e /tmp/stop ]; do sleep 0.1; done`)
	h.eventually("the sandbox", func() bool { return strings.Contains(l.said(), "ready") })
	args, err := exec.CommandContext(t.Context(), "ps", "-eo", "args").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := h.command(t.Context(), "exec", "latest", "--", "sh", "-c", "grep -rs ghs_ /tmp /run /dev/shm /home /var /etc; true").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, files)
	}
	traces := string(args) + string(files)
	if h.provider == "docker" {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "for c in $(docker ps -q); do docker inspect $c; docker export $c | grep -a ghs_; done; true").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		traces += string(out)
	}
	if out, err := h.command(t.Context(), "exec", "latest", "--", "touch", "/tmp/stop").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	traces += l.wait()
	if !strings.Contains(traces, "GH_ENTERPRISE_TOKEN=[hidden]") {
		t.Fatalf("gh had no token: %s", traces)
	}
	err = filepath.WalkDir(h.state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		traces += string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all, _ := h.fake.Tokens()
	for _, token := range all {
		if strings.Contains(traces, token) || strings.Contains(traces, strings.TrimPrefix(token, "ghs_")[:40]) {
			t.Errorf("a token is somewhere")
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
