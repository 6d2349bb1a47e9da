package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/setup"
	"github.com/Insights/insightscli/setup/dotenv"
)

// settings are the checks of what is written down.
func (m *machine) settings() []Check {
	return []Check{
		{Code: "env-file", Title: "The .env file", Severity: Warning, Fix: setupStep("env"), Look: m.lookEnvFile},
		{Code: "debug", Title: "DEBUG", Severity: Error, Fix: setupStep("env"), Look: m.lookDebug},
		{
			Code: "provider", Title: "The provider and DEBUG", Severity: Error,
			Fix: "set DEBUG=1; for cloud mode use CLOUD_DEPLOYMENT=E2E", Look: m.lookProvider,
		},
		{Code: "repo-mounts", Title: "Mounted repositories", Severity: Error, Fix: "correct SANDBOX_REPO_MOUNT_MAP", Look: m.lookMounts},
		{Code: "mcp-env", Title: "The MCP server's .env", Severity: Warning, Fix: setupStep("mcp-env"), Look: m.lookMCPEnv},
		{Code: "site-url", Title: "SITE_URL and the LLM gateway", Severity: Warning, Look: m.lookSiteURL},
		{Code: "telemetry", Title: "Agent telemetry", Severity: Warning, Look: m.lookTelemetry},
		{Code: "git-guard", Title: "git and its guard", Severity: Error, Look: m.lookGit},
	}
}

func (m *machine) lookEnvFile(context.Context) (Finding, error) {
	info, err := os.Stat(m.EnvFile)
	_, linkErr := os.Lstat(m.EnvFile)
	switch {
	case errors.Is(linkErr, fs.ErrNotExist):
		return Finding{State: Problem, Text: "there is no " + m.EnvFile, Step: "env"}, nil
	case err == nil && info.IsDir():
		return problem("insightscli setup-background-agents --env-file FILE", m.EnvFile, "is a directory")
	}
	// Read tells of what no command could edit, a link that leads nowhere among it.
	if _, err := dotenv.Read(m.EnvFile); err != nil {
		return Finding{}, err
	}
	switch {
	case err != nil:
		return Finding{}, err
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return Finding{State: Problem, Text: m.EnvFile + " holds secrets and can be read by others", Fix: "chmod 600 " + m.EnvFile, Step: "env"}, nil
	case len(m.Config.Notices) > 0:
		return problem("correct the lines that are named", strings.Join(m.Config.Notices, "; "))
	}
	return ok(m.EnvFile)
}

func (m *machine) lookDebug(context.Context) (Finding, error) {
	switch at := m.source("DEBUG"); {
	case !m.Config.Debug && !m.Config.Test && m.Config.CloudDeployment == "":
		return problem("set DEBUG=1 in "+strings.Replace(at, "environment", "the environment", 1), "DEBUG is off ("+at+"), which marks a production machine")
	case at == "default" && m.Config.Provider != "":
		return Finding{
			State: Problem, Severity: Warning, Step: "env",
			Text: "DEBUG is not set; here it counts as 1, other tools want it",
		}, nil
	case at == "default":
		return ok("not set, which counts as 1")
	}
	return ok(fmt.Sprintf("DEBUG=%v (%s)", m.Config.Debug, m.source("DEBUG")))
}

func (m *machine) lookProvider(ctx context.Context) (Finding, error) {
	name, err := m.provider(ctx)
	if err != nil {
		return Finding{}, err
	}
	if err := m.Built(name); err != nil {
		return Finding{}, err
	}
	if name == config.ProviderModal || name == config.ProviderModalDocker {
		a := m.Config.Account
		if a.ModalTokenID.Empty() || a.ModalTokenSecret.Empty() {
			return problem("set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET", "the provider", name, "needs a Modal API token")
		}
	}
	return ok(name + " (" + m.source("SANDBOX_PROVIDER") + ")")
}

func (m *machine) lookMounts(context.Context) (Finding, error) {
	if len(m.Config.RepoMounts) == 0 {
		return skipped("SANDBOX_REPO_MOUNT_MAP is not set")
	}
	for _, r := range m.Config.RepoMounts {
		if info, err := os.Stat(r.Path); err != nil || !info.IsDir() {
			return problem("create the directory, or remove the entry from SANDBOX_REPO_MOUNT_MAP",
				"entry", r.Org+"/"+r.Name+":", r.Path, "is not a directory")
		}
	}
	return ok(fmt.Sprintf("%d mapped", len(m.Config.RepoMounts)))
}

func (m *machine) lookMCPEnv(context.Context) (Finding, error) {
	dir := filepath.Join(m.Project, "services", "mcp")
	if _, err := os.Stat(dir); err != nil {
		return skipped("there is no services/mcp here")
	}
	path := filepath.Join(dir, ".env")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return Finding{State: Problem, Text: "there is no " + path, Step: "mcp-env"}, nil
	}
	f, err := dotenv.Read(path)
	if err != nil {
		return Finding{}, err
	}
	for _, name := range setup.MCPNames() {
		if _, there := f.Get(name); !there {
			return Finding{State: Problem, Text: path + " lacks " + name, Step: "mcp-env"}, nil
		}
	}
	return ok(path)
}

// lookSiteURL sees that a site elsewhere does not send agents to the gateway of
// production, where they would idle without a word.
func (m *machine) lookSiteURL(context.Context) (Finding, error) {
	site := m.Lookup("SITE_URL")
	switch {
	case site == "":
		return skipped("SITE_URL is not set")
	case isLocal(site), m.given("SANDBOX_LLM_GATEWAY_URL"):
		return ok(site)
	}
	return problem("set SANDBOX_LLM_GATEWAY_URL=http://host.docker.internal:3308",
		"SITE_URL is not this machine, so agents would use the LLM gateway of production")
}

func (m *machine) lookTelemetry(context.Context) (Finding, error) {
	const at, token = "SANDBOX_AGENT_OTEL_LOGS_URL", "SANDBOX_AGENT_OTEL_LOGS_TOKEN"
	url, key := m.Lookup(at) != "", m.Lookup(token) != ""
	switch {
	case url && key:
		return ok("on")
	case url:
		return problem("set "+token+", or remove "+at, at, "is set and", token, "is not: telemetry stays off")
	case key:
		return problem("set "+at+", or remove "+token, token, "is set and", at, "is not: telemetry stays off")
	}
	return skipped("off")
}

// guardDir is where a sandbox has the git that refuses unsigned commits.
const guardDir = "/opt/insights/bin"

func (m *machine) lookGit(context.Context) (Finding, error) {
	git := which(m.Config.Machine.Path, "git")
	switch {
	case git == "":
		return problem("install git", "there is no git in PATH")
	case filepath.Dir(git) == guardDir:
		return Finding{
			State: Problem, Severity: Warning,
			Text: "this is a sandbox, where git commit and git push are disabled",
			Fix:  "stage the changes with git add and use the git_signed_commit tool",
		}, nil
	case m.Lookup("INSIGHTS_ALLOW_UNSIGNED_GIT") != "":
		return Finding{
			State: Problem, Severity: Warning, Text: "INSIGHTS_ALLOW_UNSIGNED_GIT turns the git guard off",
			Fix: "unset INSIGHTS_ALLOW_UNSIGNED_GIT",
		}, nil
	}
	return ok(git)
}

// which finds a program in a PATH.
func which(path, name string) string {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		if dir != "" && err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode().Perm()&0o111 != 0) {
			return file
		}
	}
	return ""
}
