// Package rule is the language of the network policy: what one rule says ([Parse]), what a
// list of them allows ([Compile]), and the list that is trusted without asking ([Default]).
// It is pure: both the sandbox, which answers for names by it, and the host, which judges
// each connection, compile the same rules and come to the same answer.
//
// The forms of a rule are
//
//	example.com                      that name, at the ports 443, 80 and 22
//	*.example.com                    every name below it, and itself
//	example.com:8443                 one port
//	GET http://example.com/path/*    plain HTTP only: these requests, and no others
//
// A rule that is malformed is refused, with its position; it never allows more than it says.
// Package rule uses golang.org/x/net/idna for names that are not ASCII: they are kept, and
// compared, in the form that DNS and TLS carry.
package rule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// All is the rule of the levels that allow every public address. It is for compiled
// policies: [Parse] and [Normalize], which read what people write, refuse it.
const All = "*"

// DefaultPorts returns the ports of a rule that names none.
func DefaultPorts() []uint16 { return []uint16{443, 80, 22} }

func defaultPort(port uint16) bool { return port == 443 || port == 80 || port == 22 }

// Rule is one valid rule. The zero Rule allows nothing.
type Rule struct {
	host   string // lower case, ASCII, without the "*." of a wildcard
	wild   bool
	port   uint16 // 0: the default ports
	method string // of a rule of requests; empty: any
	path   string // of a rule of requests, never empty there; a * at its end is any rest
}

// Parse reads one rule.
func Parse(text string) (Rule, error) {
	text = strings.TrimSpace(text)
	if strings.ContainsAny(text, " \t/") {
		return parseRequest(text)
	}
	return parsePlace(text)
}

// parsePlace reads [*.]name[:port].
func parsePlace(text string) (Rule, error) {
	var r Rule
	name, port, hasPort := strings.Cut(text, ":")
	if strings.Contains(port, ":") || strings.ContainsAny(text, "[]") {
		return Rule{}, errAddress
	}
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || port[0] == '0' || port[0] == '+' {
			return Rule{}, errors.New("the port is not a number from 1 to 65535")
		}
		r.port = uint16(n)
	}
	name, r.wild = strings.CutPrefix(name, "*.")
	host, err := Host(name)
	r.host = host
	if err != nil {
		return Rule{}, err
	}
	return r, nil
}

// String returns the rule in its one canonical form, which parses to the same rule.
func (r Rule) String() string {
	if r.host == "" {
		return ""
	}
	place := r.host
	if r.wild {
		place = "*." + place
	}
	if r.port != 0 && (r.path == "" || r.port != 80) {
		place += ":" + strconv.Itoa(int(r.port))
	}
	if r.path == "" {
		return place
	}
	return strings.TrimPrefix(r.method+" http://", " ") + place + r.path
}

// covers reports whether the rule is about connections to this port.
func (r Rule) covers(port uint16) bool {
	return r.port == 0 && defaultPort(port) || r.port == port && port != 0
}

// The reasons for which a name is refused.
var (
	errEmpty    = errors.New("it is empty")
	errStar     = errors.New(`a "*" may only stand as the first label, as in *.example.com`)
	errLocal    = errors.New("it is a name of the machine itself")
	errDot      = errors.New("it has a dot at its end")
	errAddress  = errors.New("it is an address; rules are for names")
	errSingle   = errors.New("it has no dot; give the whole name")
	errBadName  = errors.New("it is not a name of a host")
	errNotPlain = errors.New("only plain http is told apart by path, as in GET http://example.com/path/*")
)

// Host returns a host's name as rules compare it: lower case, in the ASCII form of IDNA. It
// must be a whole name of at least two labels, and not of the machine itself.
func Host(name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return "", errEmpty
	}
	if len(name) > 1024 {
		return "", errBadName
	}
	ascii, err := toASCII(strings.ToLower(name))
	if err != nil {
		return "", errBadName
	}
	return ascii, checkName(ascii)
}

// toASCII maps names that are not ASCII, and looks into those that say they once were not.
func toASCII(name string) (string, error) {
	if isASCII(name) && !strings.Contains(name, "xn--") {
		return name, nil
	}
	profile := idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(), idna.CheckHyphens(false))
	ascii, err := profile.ToASCII(name)
	if err != nil {
		return "", fmt.Errorf("read %q: %w", name, err)
	}
	return strings.ToLower(ascii), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// checkName says what is wrong with a lower-case ASCII name.
func checkName(name string) error {
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	switch {
	case name == "localhost", strings.HasSuffix(name, ".localhost"), name == "host.docker.internal":
		return errLocal
	case strings.Contains(name, "*"):
		return errStar
	case last == "":
		return errDot
	case numeric(last):
		return errAddress
	case len(labels) == 1:
		return errSingle
	case len(name) > 253:
		return errBadName
	}
	for _, l := range labels {
		if !validLabel(l) {
			return errBadName
		}
	}
	return nil
}

// numeric reports whether a name that ends so is read as an IPv4 address by programs: in
// decimal, octal or hexadecimal, with any number of parts.
func numeric(label string) bool {
	digits := strings.Trim(label, "0123456789") == ""
	hex, isHex := strings.CutPrefix(label, "0x")
	return digits || isHex && strings.Trim(hex, "0123456789abcdef") == ""
}

func validLabel(l string) bool {
	if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
		return false
	}
	for i := range len(l) {
		if c := l[i]; c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
