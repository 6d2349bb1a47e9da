package setup

import (
	"slices"
	"strings"
)

// LocalMCP is where sandboxes find the MCP server of the machine that they run on.
const LocalMCP = "http://host.docker.internal:8787/mcp"

// CloudMCP reports whether an address is that of a production MCP server. It does not
// know a development machine, so a .env that names one is mended.
func CloudMCP(address string) bool {
	return slices.Contains([]string{
		"https://mcp.hanzo.ai/mcp", "https://mcp.us.hanzo.ai/mcp", "https://mcp.eu.hanzo.ai/mcp", "https://mcp.hanzo.ai/sse",
	}, strings.TrimSuffix(strings.TrimSpace(address), "/"))
}
