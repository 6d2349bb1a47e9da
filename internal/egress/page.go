package egress

import (
	"fmt"
	"net/http"
	"strings"
)

// pageText is what a program, or the agent that reads its output, is told.
func pageText(p place, reason, rule string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "insightscli: %s.\n", reason)
	if rule != "" {
		fmt.Fprintf(&b, "The rule that would allow it is %q; whoever started this run can add it to its environment.\n", rule)
	}
	fmt.Fprintf(&b, "The network policy of this sandbox is enforced for every connection to %s. "+
		"Do not retry it by other routes: they are refused too.\n", p.host())
	return b.String()
}

// page is a whole response that refuses a request and ends the connection.
func page(status int, p place, reason string) []byte {
	text := pageText(p, reason, "")
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"+
		"Connection: close\r\nX-Insights-Denied: network-policy\r\n\r\n%s", status, http.StatusText(status), len(text), text)
}
