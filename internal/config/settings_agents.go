package config

// agentSettings are those of agents that talk to a model.
func agentSettings() []Setting {
	return []Setting{
		{
			Name: "INSIGHTSCLI_MODEL", Key: "model", Flag: "model", Type: TypeString,
			Doc: "The model of an agent; unset: the agent's own choice.",
		},
		{
			Name: "INSIGHTSCLI_EFFORT", Key: "effort", Flag: "effort", Type: TypeString,
			Doc: "The reasoning effort of an agent, in the agent's own words; unset: its default.",
		},
		{
			Name: "INSIGHTSCLI_PERMISSION_MODE", Key: "permission-mode", Flag: "permission-mode", Type: TypeString,
			Doc: "What an agent may do without asking: default, acceptEdits, plan, bypassPermissions or auto for claude; plan, auto, read-only or full-access for codex; unset: everything in the background, default or auto if interactive.",
		},
		{
			Name: "INSIGHTSCLI_TURN_TIMEOUT", Key: "turn-timeout", Flag: "turn-timeout", Type: TypeDuration, Default: "30m",
			Doc: "Limit of one turn of an agent, which has failed then; 0: none.",
		},
		{
			Name: "INSIGHTSCLI_MAX_COST", Key: "max-cost", Flag: "max-cost", Type: TypeAmount, Default: "0",
			Doc: "US dollars that the models of a run may cost by the price list; 0: no limit.",
		},
		{
			Name: "INSIGHTSCLI_MAX_TOKENS", Key: "max-tokens", Flag: "max-tokens", Type: TypeInt, Default: "0",
			Doc: "Tokens that a run may use, those of the cache included; 0: no limit.",
		},
		{
			Name: "INSIGHTS_LLM_ANTHROPIC_URL", Key: "anthropic-url", Type: TypeURL, EnvOnly: true, UserFile: true,
			Doc: "Base URL of an endpoint that speaks Anthropic's Messages, without /v1; unset: Anthropic's own if ANTHROPIC_API_KEY is set.",
		},
		{
			Name: "INSIGHTS_LLM_OPENAI_URL", Key: "openai-url", Type: TypeURL, EnvOnly: true, UserFile: true,
			Doc: "Base URL of an endpoint that speaks OpenAI's Responses or Chat Completions, without /v1; unset: OpenAI's own if OPENAI_API_KEY is set.",
		},
		{
			Name: "INSIGHTS_LLM_PRICES", Key: "prices", Type: TypeString, EnvOnly: true, UserFile: true,
			Doc: "Prices of models in US dollars a million tokens, as model=input,output[,cache-read,cache-write];…: they go before the built-in list.",
		},
		{
			Name: "INSIGHTS_MCP_SERVERS", Key: "mcp-servers", Type: TypeServers, EnvOnly: true, UserFile: true,
			Doc: "MCP servers for the agent beside ours, as a mapping from name to {url, headers} or {command, args, env}; ${NAME} in headers and env is a variable of yours.",
		},
		{
			Name: "INSIGHTSCLI_REQUIRE_MCP", Key: "require-mcp", Flag: "require-mcp", Type: TypeList,
			Doc: "Names of the MCP servers without which a run fails; insights is the Insights MCP server.",
		},
		{
			Name: "INSIGHTS_EXEC_PERMISSION_REGEX", Key: "mcp-approval", Type: TypeString, EnvOnly: true, UserFile: true,
			Default: `(^|-)(partial-update|update|patch|delete|destroy)(-|$)`,
			Doc:     "Tools of MCP servers with such a name need somebody's leave; none: no tool does.",
		},
		{
			Name: "INSIGHTSCLI_SKILLS", Key: "skills", Type: TypeList,
			Doc: "Directories of skills, or patterns such as products/*/skills, that every agent gets.",
		},
		{
			Name: "SANDBOX_LOCAL_SKILLS_HOST_PATH", Type: TypePath,
			Doc: "Directory of skills that go before those of the same name.",
		},
		{
			Name: "CLAUDE_CODE_EXECUTABLE", Type: TypePath, EnvOnly: true,
			Doc: "Program of Claude Code for sandboxes whose image has none; unset: the one in PATH.",
		},
		{
			Name: "CODEX_PATH", Type: TypePath, EnvOnly: true,
			Doc: "Program of Codex for sandboxes whose image has none; unset: the one in PATH.",
		},
	}
}
