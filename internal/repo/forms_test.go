package repo

import (
	"strings"
	"testing"
)

func TestForms(t *testing.T) {
	oid := strings.Repeat("0a", 20)
	for name, tt := range map[string]struct {
		is      func(string) bool
		yes, no []string
	}{
		"object id": {isObjectID, []string{oid, oid + strings.Repeat("f", 24)}, []string{"", oid[1:], oid + "0", strings.ToUpper(oid), oid[:39] + "g", oid[:39] + "\n"}},
		"cache key": {isCacheKey, []string{strings.Repeat("9", 64)}, []string{"", oid, strings.Repeat("9", 63) + "/"}},
		"owner":     {isOwner, []string{"a", "Org-1_x", strings.Repeat("a", 100)}, []string{"", "-a", "_a", "a.b", "a/b", "é", strings.Repeat("a", 101)}},
		"host":      {isHost, []string{"a", "git.example.com", "127.0.0.1"}, []string{"", "-a", "a-", ".a", "a.", "a_b", "a b"}},
		"ipv6":      {isIPv6, []string{"[::1]", "[fe80::1.2.3.4]"}, []string{"", "[]", "::1", "[::1", "[::g]"}},
		"user":      {isUser, []string{"git", "_a", "a.b+c-d"}, []string{"", "-a", ".a", "a b", "a@b"}},
		"port":      {isPort, []string{"0", "22", "65535"}, []string{"", "123456", "2x", "-1"}},
		"drive":     {hasDrive, []string{`C:\x`, "d:/"}, []string{"", "C:", "C:x", "1:/", "CC:/"}},
	} {
		for _, s := range tt.yes {
			if !tt.is(s) {
				t.Errorf("%q is no %s", s, name)
			}
		}
		for _, s := range tt.no {
			if tt.is(s) {
				t.Errorf("%q is a %s", s, name)
			}
		}
	}
}
