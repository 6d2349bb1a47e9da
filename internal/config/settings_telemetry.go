package config

// telemetrySettings are those of what is told to others about runs.
func telemetrySettings() []Setting {
	return []Setting{
		{
			Name: "SANDBOX_AGENT_OTEL_LOGS_URL", Type: TypeURL,
			Doc: "Where the host sends OTLP logs about the life of runs, without any of their content; needs SANDBOX_AGENT_OTEL_LOGS_TOKEN.",
		},
		{
			Name: "SANDBOX_AGENT_OTEL_LOGS_TOKEN", Type: TypeString, Secret: true,
			Doc: "Bearer token for SANDBOX_AGENT_OTEL_LOGS_URL and SANDBOX_AGENT_OTEL_TRACES_URL.",
		},
		{
			Name: "SANDBOX_AGENT_OTEL_TRACES_URL", Type: TypeURL,
			Doc: "Where the host sends one OTLP trace of each run; unset: logs only.",
		},
		{
			Name: "TASK_RUN_LOGS_MIRROR_ORIGIN_PRODUCTS", Type: TypeList, Default: "signals_scout", Empty: true,
			Doc: "Origins of the runs whose log, content included, is mirrored; empty: none.",
		},
		{
			Name: "TASK_RUN_LOGS_MIRROR_OTLP_URL", Type: TypeURL,
			Doc: "Where the log mirror sends OTLP logs; unset: only lines in the background runner's log.",
		},
		{
			Name: "TASK_RUN_LOGS_MIRROR_OTLP_TOKEN", Type: TypeString, Secret: true,
			Doc: "Bearer token for TASK_RUN_LOGS_MIRROR_OTLP_URL.",
		},
	}
}
