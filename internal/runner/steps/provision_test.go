package steps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// told provisions and returns what PID 1 was told.
func (f *fixture) told() wire.Boot {
	f.t.Helper()
	f.boxed()
	var b wire.Boot
	f.must(json.Unmarshal(f.provider.asked.Boot, &b))
	return b
}

// The agent gets what the user gave, secrets by their names, and who it works for; and a
// variable of the user's cannot make it somebody else.
func TestEnvironmentOfTheAgent(t *testing.T) {
	f := newFixture(t)
	f.must(f.vault.Put(t.Context(), testRun, "API", secret.New("canary-value")))
	f.must(f.vault.Put(t.Context(), testRun, "OTHER", secret.New("not named")))
	f.must(f.vault.Put(t.Context(), testRun, SecretToken, secret.New("insx_token")))
	f.spec.Secrets = []string{"API"}
	f.spec.Env = map[string]string{
		"PLAIN": "v", "URL": secret.Fold("http://canary-value@h", f.vault[testRun]), "INSIGHTS_PROJECT_ID": "1", envToken: "mine",
	}
	b := f.told()
	want := map[string]string{
		"PLAIN": "v", "URL": "http://canary-value@h", "API": "canary-value", envToken: "insx_token",
		"INSIGHTS_TASK_ID": string(f.spec.Task), "INSIGHTS_TASK_RUN_ID": string(testRun), "INSIGHTS_PROJECT_ID": "7",
		"GIT_AUTHOR_NAME": "Insights Agent", "GIT_AUTHOR_EMAIL": "code@insights.com",
		"GIT_COMMITTER_NAME": "Insights Agent", "GIT_COMMITTER_EMAIL": "code@insights.com",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
	}
	if !maps.Equal(b.Env, want) {
		t.Errorf("environment %v", b.Env)
	}
	if !slices.Equal(b.Secrets, []string{envToken, "API"}) {
		t.Errorf("PID 1 masks %v", b.Secrets)
	}
}

// With services, the agent finds each at a loopback port, and its run's token opens them
// in the words of every client: no other key is in its environment.
func TestEnvironmentLeadsToTheServices(t *testing.T) {
	f := newFixture(t)
	f.must(f.vault.Put(t.Context(), testRun, SecretToken, secret.New("insx_token")))
	f.must(f.vault.Put(t.Context(), testRun, "insightscli.llm.anthropic", secret.New("sk-ant-canary")))
	f.Services = func(context.Context, task.Spec, Reporter) (Services, error) { return Services{}, nil }
	f.Debug = true
	b := f.told()
	want := map[string]string{
		"INSIGHTS_API_URL": "http://127.0.0.1:47824", "LLM_GATEWAY_URL": "http://127.0.0.1:47822",
		"ANTHROPIC_BASE_URL": "http://127.0.0.1:47822/anthropic", "ANTHROPIC_AUTH_TOKEN": "insx_token",
		"OPENAI_BASE_URL": "http://127.0.0.1:47822/openai/v1", "OPENAI_API_KEY": "insx_token",
		"INSIGHTS_DISABLE_MODEL_FALLBACK": "1",
	}
	for k, v := range want {
		if b.Env[k] != v {
			t.Errorf("%s is %q, want %q", k, b.Env[k], v)
		}
	}
	if bytes.Contains(f.provider.asked.Boot, []byte("sk-ant-canary")) {
		t.Error("the sandbox is told the key of a model")
	}
	if !maps.Equal(b.Ports, map[string]int{"llm": 47822, "mcp": 47823, "api": 47824}) {
		t.Errorf("ports %v", b.Ports)
	}
}

func TestBootSaysWhatTheSpecSays(t *testing.T) {
	f := newFixture(t)
	f.spec.AgentUID, f.spec.AgentGID, f.spec.Network = os.Getuid(), os.Getgid(), task.NetworkLink
	f.spec.HostGrace, f.spec.Timeout = task.Duration(time.Minute), task.Duration(time.Hour)
	f.spec.Repos = []task.Repo{{Org: "o", Name: "r"}}
	b := f.told()
	key, err := f.hostKey(t.Context(), testRun)
	f.must(err)
	if b.V != wire.Version || b.Run != string(testRun) || b.Task != string(f.spec.Task) || b.Team != 7 || b.User != 8 ||
		b.UID != os.Getuid() || b.GID != os.Getgid() || b.Home != AgentHome || b.Dir != "/tmp/workspace/repos/o/r" ||
		b.Network != "link" || b.HostGrace != time.Minute || b.Lifetime != time.Hour {
		t.Errorf("%+v", b)
	}
	if !slices.Equal(b.HostKey, key.Public()) || !slices.Equal(b.Secret, key.Secret) {
		t.Error("the keys of the link are others")
	}
	if b.JWTKey != nil || b.HTTPPort != 0 {
		t.Error("an agent server that is not published checks tokens")
	}
}

func TestPublishedAgentServerGetsTheKey(t *testing.T) {
	f := newFixture(t)
	f.spec.PublishAgent = "127.0.0.1:0"
	if b := f.told(); string(b.JWTKey) != "pem" || b.JWTKeyID != "kid" {
		t.Errorf("key %q, id %q", b.JWTKey, b.JWTKeyID)
	}
}

// Recovery finds sandboxes by their labels alone: one that lacks any is nobody's.
func TestSandboxIsLabelledAndHoldsNoSecretOutsideOfBoot(t *testing.T) {
	f := newFixture(t)
	f.must(f.vault.Put(t.Context(), testRun, "API", secret.New("canary-value")))
	f.spec.Secrets = []string{"API"}
	f.boxed()
	asked := f.provider.asked
	if !maps.Equal(asked.Labels, map[string]string{
		sandbox.LabelRun: string(testRun), sandbox.LabelTask: string(f.spec.Task), sandbox.LabelOwner: "owner", sandbox.LabelState: "domain",
	}) {
		t.Errorf("labels %v", asked.Labels)
	}
	if info, err := os.Stat(filepath.Join(asked.Dir, "link")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("link directory: %v, %v", info, err)
	}
	if asked.Name != "insights-x" || asked.Dir != f.RunDir(testRun) {
		t.Errorf("name %q, directory %q", asked.Name, asked.Dir)
	}
	asked.Boot = nil
	if text := fmt.Sprintf("%+v", asked); strings.Contains(text, "canary") {
		t.Error("a secret stands outside of the boot")
	}
}

// A value that has gone must stop the run: an agent that works with an empty password
// fails later, or worse, succeeds.
func TestMissingSecretStopsTheRun(t *testing.T) {
	f := newFixture(t)
	f.spec.Secrets = []string{"API"}
	_, err := f.provision()
	if errs.KindOf(err) != errs.Conflict || !strings.Contains(err.Error(), `"API"`) || errs.HintOf(err) == "" {
		t.Errorf("%v (%s)", err, errs.KindOf(err))
	}
	if f.provider.asked.Labels != nil {
		t.Error("a sandbox was asked for")
	}
}

func TestProvisionFailsBeforeThereIsASandbox(t *testing.T) {
	gone := errors.New("gone")
	for name, spoil := range map[string]func(f *fixture){
		"no link key":     func(f *fixture) { delete(f.vault[testRun], SecretLinkKey) },
		"no agent server": func(f *fixture) { f.AgentServer = func(context.Context) (string, error) { return "", gone } },
		"no key":          func(f *fixture) { f.JWTKey = func(context.Context) ([]byte, string, error) { return nil, "", gone } },
		"no provider":     func(f *fixture) { f.Provider = absent(gone) },
		"no directory":    func(f *fixture) { f.must(os.WriteFile(filepath.Join(f.Dir, "run"), nil, 0o600)) },
	} {
		f := newFixture(t)
		f.spec.PublishAgent = "127.0.0.1:0"
		spoil(f)
		if out, err := f.provision(); err == nil || out.Sandbox != "" || f.provider.asked.Labels != nil {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
}

// An interrupted try is repeated: its sandbox must go, or two would write the same files.
func TestProvisionAgainReplacesTheSandbox(t *testing.T) {
	f := newFixture(t)
	first := f.boxed()
	f.boxed()
	if _, err := first.Wait(t.Context()); err != nil { // returns: it has ended
		t.Error(err)
	}
	found, err := f.provider.List(t.Context(), map[string]string{sandbox.LabelRun: string(testRun)})
	if err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestUnheldLimitsReachTheUser(t *testing.T) {
	f := newFixture(t)
	f.provider.change = func(box sandbox.Sandbox) sandbox.Sandbox {
		return limitedBox{box, []sandbox.Limit{sandbox.LimitMemory}}
	}
	out, err := f.provision()
	if err != nil || len(out.Notices) != 1 || out.Sandbox == "" {
		t.Errorf("%+v, %v", out, err)
	}
	_, err = f.Destroy(t.Context(), DestroyIn{Spec: f.spec, Domain: "domain"}, nil)
	f.must(err)
}

// An image is built for a tag of ours that is missing or stale, and for nothing else: a
// build in the place of an error would hide it, and take minutes.
func TestNeedsImage(t *testing.T) {
	ours := image.DefaultBase.Tag()
	for _, tt := range []struct {
		err  error
		ref  string
		want bool
	}{
		{image.ErrMissing, ours, true},
		{fmt.Errorf("create: %w", image.ErrStale), ours, true},
		{image.ErrMissing, "debian:12", false},
		{image.ErrMissing, "", false},
		{errors.New("no space left"), ours, false},
		{nil, ours, false},
	} {
		if got := NeedsImage(tt.err, tt.ref); got != tt.want {
			t.Errorf("%v of %q: %v", tt.err, tt.ref, got)
		}
	}
}

func TestImageBuildsTheTemplateOfItsTag(t *testing.T) {
	f := newFixture(t)
	var built image.Template
	f.EnsureImage = func(_ context.Context, _ task.Spec, tmpl image.Template, progress func(string)) error {
		built = tmpl
		progress("line")
		return nil
	}
	var lines []string
	progress := func(s string) { lines = append(lines, s) }
	f.spec.Image = "debian:12"
	if _, err := f.Image(t.Context(), ImageIn{Spec: f.spec}, progress); !errors.Is(err, image.ErrMissing) || lines != nil {
		t.Errorf("of others: %v", err)
	}
	f.spec.Image = image.DefaultBase.Tag()
	if _, err := f.Image(t.Context(), ImageIn{Spec: f.spec}, progress); err != nil || built != image.DefaultBase || len(lines) != 1 {
		t.Errorf("built %v, told %q, %v", built, lines, err)
	}
}

// A Spec of another version may ask for what this one does not know: it is not run.
func TestContextRefusesOtherVersions(t *testing.T) {
	f := newFixture(t)
	out, err := f.Context(t.Context(), ContextIn{Spec: f.spec})
	if err != nil || out.Name != "insights-11111111" {
		t.Errorf("%+v, %v", out, err)
	}
	for _, v := range []int{0, task.SpecVersion + 1} {
		f.spec.V = v
		if _, err := f.Context(t.Context(), ContextIn{Spec: f.spec}); errs.KindOf(err) != errs.Conflict || errs.HintOf(err) == "" {
			t.Errorf("version %d: %v", v, err)
		}
	}
	f.spec.V = task.SpecVersion
	f.Provider = absent(errs.New("x", errs.Unavailable, "", "no engine"))
	if _, err := f.Context(t.Context(), ContextIn{Spec: f.spec}); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("without a provider: %v", err)
	}
}

func TestTokenIsSealedNotTold(t *testing.T) {
	f := newFixture(t)
	out, err := f.Token(t.Context(), TokenIn{Run: testRun, Scopes: f.spec.Scopes})
	f.must(err)
	told, err := json.Marshal(out)
	if err != nil || strings.Contains(string(told), "canary") || out.Expires.IsZero() {
		t.Errorf("the journal gets %s, %v", told, err)
	}
	if v := f.vault[testRun][SecretToken]; v.Reveal() != "insx_canary" || !slices.Equal(f.mint.scopes, f.spec.Scopes) {
		t.Errorf("sealed %q with scopes %v", v.Reveal(), f.mint.scopes)
	}
	f.mint.failing = errors.New("disk full")
	if _, err := f.Token(t.Context(), TokenIn{Run: testRun}); err == nil {
		t.Error("no error")
	}
}

func TestLinkKeyRoundTrip(t *testing.T) {
	stored, err := NewLinkKey(testRun)
	if err != nil {
		t.Fatal(err)
	}
	first, err := ParseLinkKey(testRun, stored)
	if err != nil {
		t.Fatal(err)
	}
	second, err := ParseLinkKey(testRun, stored)
	if err != nil || !slices.Equal(first.Public(), second.Public()) || !slices.Equal(first.Secret, second.Secret) || first.Public() == nil {
		t.Errorf("%v", err)
	}
	other, err := NewLinkKey(testRun)
	if err != nil || other.Reveal() == stored.Reveal() {
		t.Errorf("two runs share their keys (%v)", err)
	}
}

// A damaged key is an error that shows nothing of it, never a panic or a link that
// trusts anybody.
func TestDamagedLinkKey(t *testing.T) {
	stored, err := NewLinkKey(testRun)
	if err != nil {
		t.Fatal(err)
	}
	good := stored.Reveal()
	for name, text := range map[string]string{
		"empty": "", "null": "null", "object": "{}", "cut": good[:len(good)/2], "other": `{"private":"canary","secret":7}`,
		"no secret":    strings.Replace(good, `"secret"`, `"canary"`, 1),
		"zero private": `{"private":"` + strings.Repeat("A", 43) + `=","secret":"` + strings.Repeat("A", 43) + `="}`,
	} {
		key, err := ParseLinkKey(testRun, secret.New(text))
		if err == nil || key.Private != nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseLinkKey("", stored); err == nil {
		t.Error("a key without a run is read")
	}
}
