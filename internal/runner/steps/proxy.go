package steps

import (
	"net"
	"net/url"
	"strings"
)

// Proxies are the proxies that this machine reaches the world through, in the words of
// HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
type Proxies struct{ HTTP, HTTPS, No string }

// hostName is this machine as a sandbox on a bridge reaches it.
const hostName = "host.docker.internal"

// addProxies gives a sandbox that has a network of its own the proxies of the machine: it
// is behind them, too. What the user has set stays. Both spellings are set, since programs
// look at one or the other. A proxy with a password is not passed on.
func addProxies(env map[string]string, p Proxies) {
	set := func(name, value string) {
		upper, lower := strings.ToUpper(name), strings.ToLower(name)
		_, has := env[upper]
		_, hasLower := env[lower]
		if value == "" || has || hasLower {
			return
		}
		env[upper], env[lower] = value, value
	}
	http, https := seenInside(p.HTTP), seenInside(p.HTTPS)
	set("HTTP_PROXY", http)
	set("HTTPS_PROXY", https)
	if http == "" && https == "" {
		return
	}
	no := "localhost,127.0.0.1,::1"
	if p.No != "" {
		no = p.No + "," + no
	}
	set("NO_PROXY", no)
}

// seenInside is the address of a proxy as a sandbox reaches it: one on this machine's
// loopback is elsewhere from there. It is empty for one that is not passed on.
func seenInside(proxy string) string {
	if proxy == "" {
		return ""
	}
	text := proxy
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return proxy
	}
	port := u.Port()
	if u.Host = hostName; port != "" {
		u.Host = net.JoinHostPort(hostName, port)
	}
	return u.String()
}
