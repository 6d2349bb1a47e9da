package wire

import "strings"

// Why a variable is kept from the processes of a sandbox.
const (
	// WithheldCode would load foreign code into every program.
	WithheldCode = "it loads code into other programs"
	// WithheldRepository could write to a repository. Publishing is the host's.
	WithheldRepository = "a credential that can write to a repository never enters a sandbox"
	// WithheldModel is a model's real key. The agent has the run's own token instead.
	WithheldModel = "the key of a model never enters a sandbox: the gateway has it"
	// WithheldMachine is a credential of the machine that runs insightscli.
	WithheldMachine = "a credential of insightscli itself never enters a sandbox"
)

// Withheld tells why the processes of a sandbox do not get a variable, or "" if they do.
// The value matters for the variables that clients of models read: the run's token passes
// in them, and a real key does not.
func Withheld(name, value string) string {
	switch name {
	case "NODE_OPTIONS", "NODE_REPL_EXTERNAL_MODULE",
		"BASH_ENV", "PROMPT_COMMAND", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT":
		return WithheldCode
	case "GITHUB_TOKEN", "GH_TOKEN", "GITHUB_PAT", "GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN",
		"HOMEBREW_GITHUB_API_TOKEN", "COPILOT_GITHUB_TOKEN", "GITHUB_APP_PRIVATE_KEY",
		"GITLAB_TOKEN", "GITLAB_PRIVATE_TOKEN", "GITLAB_ACCESS_TOKEN", "GL_TOKEN", "CI_JOB_TOKEN",
		"BITBUCKET_TOKEN", "BITBUCKET_ACCESS_TOKEN", "BITBUCKET_APP_PASSWORD",
		"GITEA_TOKEN", "FORGEJO_TOKEN", "CODEBERG_TOKEN", "AZURE_DEVOPS_EXT_PAT", "SYSTEM_ACCESSTOKEN",
		"GIT_TOKEN", "GIT_PASSWORD":
		return WithheldRepository
	case "ANTHROPIC_API_KEY", "ANTHROPIC_FOUNDRY_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
		"CODEX_API_KEY", "OPENAI_ADMIN_KEY", "AZURE_OPENAI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK",
		"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "OPENROUTER_API_KEY", "AI_GATEWAY_API_KEY",
		"MISTRAL_API_KEY", "GROQ_API_KEY", "DEEPSEEK_API_KEY", "XAI_API_KEY", "COHERE_API_KEY", "CO_API_KEY",
		"TOGETHER_API_KEY", "FIREWORKS_API_KEY", "PERPLEXITY_API_KEY", "CEREBRAS_API_KEY", "MOONSHOT_API_KEY", "ZAI_API_KEY":
		return WithheldModel
	case "SANDBOX_JWT_PRIVATE_KEY", "SANDBOX_JWT_PRIVATE_KEY_SECONDARY", "MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET":
		return WithheldMachine
	}
	switch {
	case strings.HasPrefix(name, "LD_"), strings.HasPrefix(name, "DYLD_"):
		return WithheldCode
	case (name == "ANTHROPIC_AUTH_TOKEN" || name == "OPENAI_API_KEY") && strings.HasPrefix(value, "sk-"):
		return WithheldModel
	}
	return ""
}
