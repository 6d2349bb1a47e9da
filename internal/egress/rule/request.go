package rule

import (
	"errors"
	"strings"
)

var (
	errMethod = errors.New("the method is not a word in capitals")
	errPath   = errors.New(`the path is not plain: it begins with "/", has a "*" at its end only, and no "..", "//", "%", "?" or "#"`)
)

// parseRequest reads [METHOD ]http://[*.]name[:port]/path[*].
func parseRequest(text string) (Rule, error) {
	method, address := "", text
	if before, after, found := strings.Cut(text, " "); found {
		method, address = before, strings.TrimLeft(after, " ")
		if !validMethod(method) {
			return Rule{}, errMethod
		}
	}
	scheme, rest, found := strings.Cut(address, "://")
	if !found || !strings.EqualFold(scheme, "http") {
		return Rule{}, errNotPlain
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return Rule{}, errPath
	}
	place, path := rest[:slash], rest[slash:]
	r, err := parsePlace(place)
	if err != nil {
		return Rule{}, err
	}
	if !plainPath(strings.TrimSuffix(path, "*")) {
		return Rule{}, errPath
	}
	if r.port == 0 {
		r.port = 80
	}
	r.method, r.path = method, path
	return r, nil
}

func validMethod(m string) bool {
	return m != "" && len(m) <= 32 && strings.Trim(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}

// plainPath reports whether a path means one thing only, to whichever server reads it.
func plainPath(p string) bool {
	if !strings.HasPrefix(p, "/") || len(p) > 8<<10 || strings.ContainsAny(p, `*%?#\;`) || strings.Contains(p, "//") {
		return false
	}
	for i := range len(p) {
		if p[i] <= ' ' || p[i] >= 0x7f {
			return false
		}
	}
	for seg := range strings.SplitSeq(p, "/") {
		if seg == "." || seg == ".." {
			return false
		}
	}
	return true
}

// allows reports whether a request fits a rule of requests. target is the path, with its
// query if it has one.
func (r Rule) allows(method, target string) bool {
	if r.method != "" && r.method != method {
		return false
	}
	path, _, _ := strings.Cut(target, "?")
	prefix, open := strings.CutSuffix(r.path, "*")
	switch {
	case open && prefix == "/":
		return strings.HasPrefix(path, "/")
	case open:
		return strings.HasPrefix(path, prefix) && plainRequest(path)
	}
	return path == r.path
}

// plainRequest reports whether a path stays below its beginning. Escaped octets are
// harmless unless they are what servers take for a separator or a dot.
func plainRequest(p string) bool {
	lower := strings.ToLower(p)
	for _, bad := range []string{"%2e", "%2f", "%5c", "%25", "%00", "%3b"} {
		if strings.Contains(lower, bad) {
			return false
		}
	}
	return plainPath(strings.ReplaceAll(strings.ReplaceAll(p, "%", "-"), "*", "-"))
}
