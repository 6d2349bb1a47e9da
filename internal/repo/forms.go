package repo

import "strings"

// The characters of names. Package regexp would compile its expressions at every start
// of the program, whatever the command is.
const (
	digits   = "0123456789"
	letters  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	alnum    = digits + letters
	hexLower = digits + "abcdef"
)

// only reports whether s consists of one or more of chars and nothing else.
func only(s, chars string) bool { return s != "" && strings.Trim(s, chars) == "" }

// isObjectID reports whether s is a whole object id, of SHA-1 or SHA-256.
func isObjectID(s string) bool { return (len(s) == 40 || len(s) == 64) && only(s, hexLower) }

// isCacheKey reports whether s names a checkout in the cache.
func isCacheKey(s string) bool { return len(s) == 64 && only(s, hexLower) }

// isOwner reports whether s can be an organisation or user of GitHub.
func isOwner(s string) bool {
	return len(s) <= 100 && only(s, alnum+"_-") && only(s[:1], alnum)
}

// isHost reports whether s can be the name or the IPv4 address of a host.
func isHost(s string) bool {
	return only(s, alnum+".-") && only(s[:1], alnum) && only(s[len(s)-1:], alnum)
}

// isIPv6 reports whether s has the form of an IPv6 address in a URL.
func isIPv6(s string) bool {
	inner, begins := strings.CutPrefix(s, "[")
	inner, ends := strings.CutSuffix(inner, "]")
	return begins && ends && only(inner, digits+"abcdefABCDEF:.")
}

// isUser reports whether s can be the user of an SSH address.
func isUser(s string) bool { return only(s, alnum+"._+-") && only(s[:1], alnum+"_") }

// isPort reports whether s can be a port.
func isPort(s string) bool { return len(s) <= 5 && only(s, digits) }

// hasDrive reports whether s begins with a drive of Windows.
func hasDrive(s string) bool {
	return len(s) >= 3 && only(s[:1], letters) && s[1] == ':' && only(s[2:3], `\/`)
}
