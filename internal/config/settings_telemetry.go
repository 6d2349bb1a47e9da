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
		{
			Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Type: TypeEndpoint, EnvOnly: true,
			Doc: "Where traces of insightscli itself go, with /v1/traces behind it (OTLP over HTTP, JSON); unset: nowhere.",
		},
		{
			Name: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", Type: TypeEndpoint, EnvOnly: true,
			Doc: "As OTEL_EXPORTER_OTLP_ENDPOINT, before which it goes: the whole address.",
		},
		{
			Name: "OTEL_EXPORTER_OTLP_HEADERS", Type: TypeString, Secret: true, EnvOnly: true,
			Doc: "Headers of requests with traces of insightscli itself: key=value, comma-separated, values percent-encoded.",
		},
		{
			Name: "OTEL_EXPORTER_OTLP_TRACES_HEADERS", Type: TypeString, Secret: true, EnvOnly: true,
			Doc: "As OTEL_EXPORTER_OTLP_HEADERS, instead of which it is taken.",
		},
		{
			Name: "OTEL_SERVICE_NAME", Type: TypeString, Default: "insightscli", EnvOnly: true,
			Doc: "The service that traces of insightscli itself are of.",
		},
		{
			Name: "OTEL_SDK_DISABLED", Type: TypeBool, Default: "0", EnvOnly: true,
			Doc: "1 or true: no traces of insightscli itself.",
		},
		{
			Name: "TRACEPARENT", Type: TypeString, EnvOnly: true,
			Doc: "The span, in the form of W3C Trace Context, that runs belong to in traces of insightscli itself; CI systems set it.",
		},
	}
}
