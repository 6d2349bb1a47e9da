package steps

import (
	"fmt"
	"maps"
	"path"
	"strconv"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// Who the commits of an agent are by, until they are signed.
const (
	gitName  = "Insights Agent"
	gitEmail = "code@insights.com"
)

// ownEnvironment adds what every agent gets, in the words of the specification: who it
// works for, where the services of the host are, and the run's own token, which is all
// that opens them. What could write elsewhere, a repository credential or a model key,
// is not among it.
func (s *Steps) ownEnvironment(env map[string]string, t task.Spec, token secret.String) {
	maps.Copy(env, map[string]string{
		"INSIGHTS_TASK_ID":     string(t.Task),
		"INSIGHTS_TASK_RUN_ID": string(t.Run),
		"INSIGHTS_PROJECT_ID":  strconv.FormatInt(t.Team, 10),
		"GIT_AUTHOR_NAME":      gitName, "GIT_AUTHOR_EMAIL": gitEmail,
		"GIT_COMMITTER_NAME": gitName, "GIT_COMMITTER_EMAIL": gitEmail,
		// An agent's own traffic: nothing but its model, whatever the network is.
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
	})
	key := token.Reveal()
	if key == "" {
		return
	}
	env[envToken] = key
	if s.Services == nil {
		return
	}
	addRewrites(env, t.Repos)
	llm := fmt.Sprintf("http://127.0.0.1:%d", wire.PortLLM)
	maps.Copy(env, map[string]string{
		"INSIGHTS_API_URL": fmt.Sprintf("http://127.0.0.1:%d", wire.PortAPI),
		"LLM_GATEWAY_URL":  llm,
		// In the words of the clients of models.
		"ANTHROPIC_BASE_URL": llm + "/anthropic", "ANTHROPIC_AUTH_TOKEN": key,
		"OPENAI_BASE_URL": llm + "/openai/v1", "OPENAI_API_KEY": key,
	})
	if s.Debug {
		env["INSIGHTS_DISABLE_MODEL_FALLBACK"] = "1"
	}
}

// ownMounts are the agent's program and the skills, where there are any.
func (s *Steps) ownMounts(t task.Spec) []sandbox.Mount {
	var mounts []sandbox.Mount
	if t.Agent.Program != "" {
		mounts = append(mounts, sandbox.Mount{
			Kind: sandbox.MountBind, Source: t.Agent.Program, Target: path.Join(wire.ProgramsDir, t.Agent.Name), ReadOnly: true,
		})
	}
	if t.Skills != "" && s.SkillsDir != nil {
		mounts = append(mounts, sandbox.Mount{
			Kind: sandbox.MountBind, Source: s.SkillsDir(t.Skills), Target: wire.SkillsDir, ReadOnly: true,
		})
	}
	return mounts
}
