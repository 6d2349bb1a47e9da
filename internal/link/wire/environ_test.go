package wire

import "testing"

func TestWithheld(t *testing.T) {
	for why, variables := range map[string][][2]string{
		WithheldCode: {
			{"LD_PRELOAD", "x"},
			{"LD_AUDIT", "x"},
			{"LD_LIBRARY_PATH", ""},
			{"DYLD_INSERT_LIBRARIES", "x"},
			{"NODE_OPTIONS", "x"},
			{"NODE_REPL_EXTERNAL_MODULE", "x"},
			{"BASH_ENV", "x"},
		},
		WithheldRepository: {
			{"GITHUB_TOKEN", "ghs_1"},
			{"GH_TOKEN", "x"},
			{"GH_ENTERPRISE_TOKEN", "x"},
			{"GITHUB_ENTERPRISE_TOKEN", "x"},
			{"GITLAB_TOKEN", "x"},
			{"CI_JOB_TOKEN", "x"},
			{"GITHUB_APP_PRIVATE_KEY", "x"},
		},
		WithheldModel: {
			{"ANTHROPIC_API_KEY", "insx_1"},
			{"CLAUDE_CODE_OAUTH_TOKEN", "x"},
			{"GEMINI_API_KEY", "x"},
			{"CODEX_API_KEY", "x"},
			{"ANTHROPIC_AUTH_TOKEN", "sk-ant-oat01-1"},
			{"OPENAI_API_KEY", "sk-proj-1"},
		},
		WithheldMachine: {{"SANDBOX_JWT_PRIVATE_KEY", "x"}, {"MODAL_TOKEN_SECRET", "x"}},
		"": {
			{"ANTHROPIC_AUTH_TOKEN", "insx_1"},
			{"OPENAI_API_KEY", "insx_1"},
			{"INSIGHTS_PERSONAL_API_KEY", "insx_1"},
			{"JWT_PUBLIC_KEY", "x"},
			{"PATH", "/bin"},
			{"NODE_ENV", "test"},
			{"LDFLAGS", "x"},
			{"GIT_AUTHOR_NAME", "x"},
			{"LLM_GATEWAY_URL", "x"},
			{"NPM_TOKEN", "x"},
			{"AWS_ACCESS_KEY_ID", "x"},
			{"", ""},
		},
	} {
		for _, v := range variables {
			if got := Withheld(v[0], v[1]); got != why {
				t.Errorf("%s: %q, want %q", v[0], got, why)
			}
		}
	}
}
