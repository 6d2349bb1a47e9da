package egress

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/Insights/insightscli/internal/egress/rule"
)

// Decision is what a policy says of a place, without connecting to it.
type Decision struct {
	Host    string `json:"host"`
	Port    uint16 `json:"port"`
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule,omitempty"`    // that gave the verdict
	Reason  string `json:"reason,omitempty"`  // why not, or what still has to hold
	Suggest string `json:"suggest,omitempty"` // the rule that would allow it; empty: none could
}

// portOf is the port of a scheme that names none; 0 is not known.
func portOf(scheme string) uint16 {
	switch strings.ToLower(scheme) {
	case "https", "wss", "git+https":
		return 443
	case "http", "ws":
		return 80
	case "ssh", "git+ssh", "sftp":
		return 22
	case "git":
		return 9418
	case "ftp":
		return 21
	}
	return 0
}

// Check says what a policy makes of a URL, a host with or without a port, or a git address
// (git@host:path). Names are not resolved: one that is allowed is refused all the same if its
// address is not public.
func Check(set rule.Set, address string) Decision {
	method, rest, found := strings.Cut(strings.TrimSpace(address), " ")
	if !found {
		method, rest = "GET", method
	}
	host, port, target, bad := placeOf(rest)
	d := Decision{Host: host, Port: port, Reason: bad}
	if bad != "" {
		return d
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return checkAddr(set, d, addr)
	}
	name, err := rule.Host(host)
	if err != nil {
		d.Reason = "the name is not one that a rule can allow: " + err.Error()
		return d
	}
	d.Host = name
	d.Rule, d.Allowed = set.Match(name, port)
	if d.Allowed && set.Requests(name, port) {
		d.Rule, d.Allowed = set.Request(name, port, method, target)
	}
	if !d.Allowed {
		d.Suggest, d.Reason = rule.Suggest(name, port), "no rule allows it"
	}
	return d
}

func checkAddr(set rule.Set, d Decision, addr netip.Addr) Decision {
	switch {
	case !set.Public():
		d.Reason = "rules are for names, and an address is none"
	case !newAddresses(nil).ok(addr):
		d.Reason = "it is not a public address"
	default:
		d.Allowed, d.Rule = true, rule.All
	}
	return d
}

// placeOf takes an address apart. bad says what is wrong with it.
func placeOf(text string) (host string, port uint16, target, bad string) {
	if !strings.Contains(text, "://") {
		if before, _, git := strings.Cut(text, ":"); git && strings.Contains(before, "@") {
			_, host, _ = strings.Cut(before, "@")
			return host, 22, "/", ""
		}
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return "", 0, "", "it is not a URL"
	}
	port = portOf(u.Scheme)
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return u.Hostname(), 0, "", "its port is not one"
		}
		port = uint16(n)
	}
	if port == 0 {
		return u.Hostname(), 0, "", "it has no port, and its scheme has no usual one"
	}
	return u.Hostname(), port, u.RequestURI(), ""
}
