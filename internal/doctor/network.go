package doctor

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/setup"
)

// network are the checks of addresses and ports.
func (m *machine) network() []Check {
	return []Check{
		{Code: "api-url", Title: "The Insights API", Severity: Warning, Fix: "remove SANDBOX_API_URL", Look: m.lookAPI},
		{Code: "mcp-url", Title: "The MCP server", Severity: Warning, Fix: setupStep("env"), Look: m.lookMCP},
		{Code: "llm-url", Title: "The LLM gateway", Severity: Warning, Fix: "remove SANDBOX_LLM_GATEWAY_URL", Look: m.lookLLM},
		{Code: "ports", Title: "Ports of our own", Severity: Warning, Fix: "stop that process, or leave --serve out", Look: m.lookPorts},
		{Code: "tunnel", Title: "Public tunnels", Severity: Warning, Look: m.lookTunnel},
		{Code: "proxy", Title: "Proxies", Severity: Warning, Fix: "add localhost,127.0.0.1 to NO_PROXY", Look: m.lookProxy},
	}
}

func (m *machine) lookAPI(ctx context.Context) (Finding, error) {
	address := m.Config.APIURL
	given := m.given("SANDBOX_API_URL")
	switch {
	case port(address) == "8010":
		return Finding{
			State: Problem, Severity: Error, Text: "SANDBOX_API_URL uses port 8010, which answers containers with nothing",
			Fix: "use port 8000, or remove SANDBOX_API_URL",
		}, nil
	case answers(ctx, address):
		return ok(address)
	case given:
		return problem("", "nothing answers at SANDBOX_API_URL, "+address)
	}
	return skipped("nothing answers at " + address + ": agents have no Insights API")
}

func (m *machine) lookMCP(ctx context.Context) (Finding, error) {
	address := m.Config.MCPURL
	switch {
	case address == "":
		return skipped("SANDBOX_MCP_URL is not set")
	case setup.CloudMCP(address):
		return Finding{State: Problem, Step: "env", Text: "SANDBOX_MCP_URL is the one of the cloud, which does not know this machine"}, nil
	case answers(ctx, address):
		return ok(address)
	}
	return problem("start the MCP server, for example: insightscli start -d --serve mcp",
		"nothing answers at SANDBOX_MCP_URL, "+address+"; agents lack the Insights tools")
}

func (m *machine) lookLLM(ctx context.Context) (Finding, error) {
	address := m.Config.LLMGatewayURL
	switch {
	case address == "":
		return skipped("SANDBOX_LLM_GATEWAY_URL is not set")
	case answers(ctx, address):
		return ok(address)
	}
	return problem("start the gateway there, or remove SANDBOX_LLM_GATEWAY_URL", "nothing answers at", address)
}

// lookPorts sees whether `start --serve` could open its ports. The server that a
// setting points at is expected to have one.
func (m *machine) lookPorts(ctx context.Context) (Finding, error) {
	for _, p := range []struct{ port, setting, url string }{
		{"3308", "SANDBOX_LLM_GATEWAY_URL", m.Config.LLMGatewayURL},
		{"8787", "SANDBOX_MCP_URL", m.Config.MCPURL},
	} {
		if port(p.url) == p.port || !answers(ctx, "http://127.0.0.1:"+p.port) {
			continue
		}
		text := "port " + p.port + " is taken"
		if who := m.Holder(p.port); who != "" {
			text += " by " + who
		}
		return problem("", text+"; insightscli start --serve cannot open it")
	}
	return ok("3308 and 8787 are free, or in use as set")
}

func (m *machine) lookTunnel(ctx context.Context) (Finding, error) {
	name, err := m.provider(ctx)
	modal := err == nil && (name == config.ProviderModal || name == config.ProviderModalDocker)
	for _, s := range []struct{ setting, url string }{
		{"SANDBOX_API_URL", m.Config.APIURL}, {"SANDBOX_LLM_GATEWAY_URL", m.Config.LLMGatewayURL}, {"SANDBOX_MCP_URL", m.Config.MCPURL},
	} {
		if !strings.HasSuffix(host(s.url), ".ts.net") {
			continue
		}
		if modal {
			return ok(s.setting + " is public")
		}
		p := port(s.url)
		return problem("tailscale funnel --https="+p+" off, and remove "+s.setting,
			s.setting, "is a public address, which only Modal sandboxes need")
	}
	return skipped("no setting names a public address")
}

func (m *machine) lookProxy(context.Context) (Finding, error) {
	c := m.Config.Machine
	if c.HTTPProxy.Empty() && c.HTTPSProxy.Empty() {
		return skipped("none")
	}
	for _, p := range []string{c.HTTPProxy.Reveal(), c.HTTPSProxy.Reveal()} {
		if u, err := url.Parse(p); p != "" && (err != nil || strings.Contains(p, "://") && u.Host == "") {
			return problem("correct HTTP_PROXY and HTTPS_PROXY", "a proxy's address cannot be read")
		}
	}
	no := strings.Split(c.NoProxy, ",")
	for i := range no {
		no[i] = strings.TrimSpace(no[i])
	}
	if !slices.Contains(no, "localhost") && !slices.Contains(no, "*") {
		return problem("", "a proxy is set and NO_PROXY does not name localhost")
	}
	return ok("set")
}

// host and port are those of a URL; the port is the scheme's own where none is given.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func port(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return ""
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// isLocal reports whether a URL is this machine's, as the host sees it.
func isLocal(address string) bool {
	h := host(address)
	ip := net.ParseIP(h)
	return h == "localhost" || h == "host.docker.internal" || strings.HasSuffix(h, ".localhost") || ip != nil && ip.IsLoopback()
}

// answers reports whether something accepts connections there. For the host itself
// host.docker.internal is 127.0.0.1.
func answers(ctx context.Context, address string) bool {
	h := host(address)
	if h == "host.docker.internal" {
		h = "127.0.0.1"
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(h, port(address)))
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was written
	return true
}
