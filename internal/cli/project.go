package cli

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/config"
)

// foundInProject tells of settings that a file of the project has decided and that reach
// beyond it: where what the agent says goes, and what of this machine it is shown. The
// project need not be the user's.
func foundInProject(c config.Config, dir string) []string {
	var notices []string
	for _, name := range []string{"SANDBOX_API_URL", "SANDBOX_LLM_GATEWAY_URL", "SANDBOX_MCP_URL"} {
		if v, ok := c.ByProject(name); ok && !isOurs(v.Text) {
			notices = append(notices, v.Source+": "+name+" sends requests of the agent, with the run's token, to "+v.Text)
		}
	}
	notices = append(notices, toldInProject(c)...)
	if v, ok := c.ByProject("INSIGHTS_GITHUB_URL"); ok && c.GitHub() != "" {
		notices = append(notices, v.Source+": org/repo is on "+v.Text+", where GH_TOKEN and GITHUB_TOKEN are not sent")
	}
	skills := map[string][]string{"INSIGHTSCLI_SKILLS": c.Agents.Skills, "SANDBOX_LOCAL_SKILLS_HOST_PATH": {c.Agents.SkillsOverlay}}
	for _, name := range []string{"INSIGHTSCLI_SKILLS", "SANDBOX_LOCAL_SKILLS_HOST_PATH"} {
		v, ok := c.ByProject(name)
		if ok && slices.ContainsFunc(skills[name], func(path string) bool { return !inside(dir, path) }) {
			notices = append(notices, v.Source+": "+name+" shows the agent folders outside of "+dir+": "+v.Text)
		}
	}
	return notices
}

// foundMount tells of a mount that a file of the project has decided.
func foundMount(c config.Config, m config.RepoMount) []string {
	v, ok := c.ByProject("SANDBOX_REPO_MOUNT_MAP")
	if !ok {
		return nil
	}
	return []string{v.Source + ": " + m.Org + "/" + m.Name + " is " + m.Path + " of this machine, in which the agent may write"}
}

// isOurs reports whether an address is that of a service of the product on this machine.
func isOurs(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	return slices.Contains([]string{"localhost", "127.0.0.1", "host.docker.internal"}, u.Hostname()) &&
		slices.Contains([]string{"8000", "8010", "3308", "8787"}, u.Port())
}

// inside reports whether path, which may be relative to dir, lies below dir.
func inside(dir, path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
