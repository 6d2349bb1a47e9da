package doctor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
)

// accounts are the checks of keys.
func (m *machine) accounts() []Check {
	return []Check{
		{Code: "jwt-key", Title: "The key of the agent server", Severity: Warning, Fix: setupStep("env"), Look: m.lookJWT},
		{Code: "model-key", Title: "The key of a model", Severity: Error, Fix: "set ANTHROPIC_API_KEY or OPENAI_API_KEY in " + m.EnvFile, Look: m.lookModel},
		{Code: "github-app", Title: "The GitHub App", Severity: Warning, Fix: "insightscli create-github-app", Look: m.lookApp},
		{
			Code: "github-client-id", Title: "The GitHub App's Client ID", Severity: Error,
			Fix: "copy the Client ID (Iv1… or Iv23…) from the settings of the App", Look: m.lookClientID,
		},
		{Code: "github-key", Elsewhere: true, Title: "The GitHub App's key and tokens", Severity: Error, Fix: "insightscli create-github-app --check", Look: m.lookKey},
		{Code: "github-pending", Title: "An App that was made and not kept", Severity: Warning, Fix: "insightscli create-github-app", Look: m.lookPending},
		{Code: "clock", Title: "The clock", Severity: Error, Fix: "set the clock of this machine", Look: m.lookClock},
	}
}

func (m *machine) lookJWT(context.Context) (Finding, error) {
	v := m.Config.Account.JWTPrivateKey
	if v.Empty() {
		return Finding{State: Problem, Step: "env", Text: "SANDBOX_JWT_PRIVATE_KEY is missing"}, nil
	}
	if err := CheckKey(v); err != nil {
		return Finding{
			State: Problem, Severity: Error, Text: "SANDBOX_JWT_PRIVATE_KEY: " + err.Error(),
			Fix: "remove it and run: " + setupStep("env"),
		}, nil
	}
	return ok(m.source("SANDBOX_JWT_PRIVATE_KEY"))
}

func (m *machine) lookModel(context.Context) (Finding, error) {
	var there []string
	for name, v := range map[string]secret.String{
		"ANTHROPIC_API_KEY": m.Config.Account.AnthropicKey, "OPENAI_API_KEY": m.Config.Account.OpenAIKey,
	} {
		if !v.Empty() {
			there = append(there, name)
		}
	}
	if len(there) == 0 {
		return problem("", "no key of a model is set; only plain commands can run")
	}
	return ok(fmt.Sprintf("%d set", len(there)))
}

// appMissing returns the names of the App's values that are not set.
func (m *machine) appMissing() []string {
	a := m.Config.Account
	var names []string
	for _, v := range []struct {
		name string
		set  bool
	}{
		{"GITHUB_APP_CLIENT_ID", a.GitHubClientID != ""},
		{"GITHUB_APP_CLIENT_SECRET", !a.GitHubClientSecret.Empty()},
		{"GITHUB_APP_SLUG", a.GitHubSlug != ""},
		{"GITHUB_APP_PRIVATE_KEY", !a.GitHubPrivateKey.Empty()},
	} {
		if !v.set {
			names = append(names, v.name)
		}
	}
	return names
}

func (m *machine) lookApp(context.Context) (Finding, error) {
	missing := m.appMissing()
	switch len(missing) {
	case 0:
		return ok(m.Config.Account.GitHubSlug)
	case 4:
		return problem("", "there is none; agents cannot publish changes")
	}
	return Finding{
		State: Problem, Severity: Error, Text: "missing: " + strings.Join(missing, ", "),
		Fix: "copy them from the settings of the App, or run: insightscli create-github-app --force",
	}, nil
}

func (m *machine) lookClientID(context.Context) (Finding, error) {
	id := m.Config.Account.GitHubClientID
	switch {
	case id == "":
		return skipped("not set")
	case regexp.MustCompile(`^[0-9]+$`).MatchString(id):
		return problem("", "GITHUB_APP_CLIENT_ID is the numeric App ID")
	case !strings.HasPrefix(id, "Iv"):
		return Finding{State: Problem, Severity: Warning, Text: "GITHUB_APP_CLIENT_ID does not begin with Iv1 or Iv23"}, nil
	}
	return ok(id)
}

// lookKey asks GitHub. Tokens of installations expire after an hour and are made
// anew with this key, so a good key is all that is needed.
func (m *machine) lookKey(ctx context.Context) (Finding, error) {
	if m.GitHub == nil {
		return skipped("there is no GitHub App")
	}
	slug, _, err := m.github(ctx)
	if errs.KindOf(err) == errs.Unavailable || errors.Is(err, context.DeadlineExceeded) {
		return Finding{Severity: Warning}, err // runs do not need GitHub at once
	}
	if err != nil {
		return Finding{}, err
	}
	return ok("GitHub knows it as " + slug + "; tokens are made from it when they are needed")
}

func (m *machine) lookPending(context.Context) (Finding, error) {
	if m.Pending == "" {
		return skipped("none")
	}
	return problem("", "GitHub made an App whose keys are not in .env yet:", m.Pending)
}

// maxSkew is how far the clock may be off: GitHub refuses tokens issued later than now,
// and ours are dated back by a minute.
const maxSkew = 45 * time.Second

func (m *machine) lookClock(ctx context.Context) (Finding, error) {
	if m.GitHub == nil {
		return skipped("there is nobody to compare it with")
	}
	_, behind, err := m.github(ctx)
	if err != nil && behind == 0 {
		return skipped("GitHub does not answer")
	}
	if behind.Abs() > maxSkew {
		return problem("", "the clock is off by", behind.Abs().Round(time.Second).String())
	}
	return ok("agrees with GitHub's")
}
