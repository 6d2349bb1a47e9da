package rule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func compiled(t testing.TB, rules ...string) Set {
	t.Helper()
	s, err := Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A rule has one canonical form, which is a rule.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"example.com":                            "example.com",
		"  Example.COM\t":                        "example.com",
		"*.example.com":                          "*.example.com",
		"example.com:8443":                       "example.com:8443",
		"*.example.com:5432":                     "*.example.com:5432",
		"bücher.example":                         "xn--bcher-kva.example",
		"XN--bcher-kva.example":                  "xn--bcher-kva.example",
		"faß.example":                            "xn--fa-hia.example",
		"ＥＸＡＭＰＬＥ．com":                            "example.com",
		"r3---sn-x.example.com":                  "r3---sn-x.example.com",
		"1.2.3.4.example":                        "1.2.3.4.example",
		"0x7f.example":                           "0x7f.example",
		"GET http://example.com/path/*":          "GET http://example.com/path/*",
		"GET   http://example.com:80/":           "GET http://example.com/",
		"http://*.example.com:8080/a":            "http://*.example.com:8080/a",
		"POST HTTP://Example.com/A/B":            "POST http://example.com/A/B",
		"*.xn--p1ai.example":                     "*.xn--p1ai.example",
		strings.Repeat("a", 63) + ".example.com": strings.Repeat("a", 63) + ".example.com",
	} {
		r, err := Parse(text)
		if err != nil || r.String() != want {
			t.Errorf("%q: %q, %v", text, r, err)
			continue
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Errorf("%q does not parse to the same: %+v, %v", r, again, err)
		}
	}
}

func TestRefusedRules(t *testing.T) {
	for text, want := range map[string]string{
		"": "empty", " ": "empty", "*.": "empty",
		"*": `"*"`, "**.example.com": `"*"`, "*.*.example.com": `"*"`, "a.*.example.com": `"*"`, "*example.com": `"*"`, "example.*": `"*"`,
		"*.com": "no dot", "com": "no dot", "example": "no dot",
		"localhost": "machine itself", "LOCALHOST": "machine itself", "a.localhost": "machine itself", "host.docker.internal": "machine itself", "localhost:80": "machine itself",
		"example.com.": "a dot at its end", "*.example.com.": "a dot at its end", "example.com。": "a dot at its end", ".": "a dot at its end",
		"10.0.0.1": "an address", "10.0.0.1:80": "an address", "167772161": "an address", "0x0a000001": "an address", "0x": "an address", "012.0.0.1": "an address",
		"127.1": "an address", "example.0x7f": "an address", "::1": "an address", "[::1]": "an address", "[::1]:443": "an address", "1.2.3.４": "an address", "*.0.0.1": "an address",
		"example..com": "not a name", ".example.com": "not a name", "-a.example.com": "not a name", "a-.example.com": "not a name", "a_b.example.com": "not a name",
		"exa mple.com": "method", "example.com\x00.org": "not a name", "example.com\n": "", "user@example.com": "not a name", "xn--\xff.com": "not a name",
		strings.Repeat("a", 64) + ".com": "not a name", strings.Repeat("a.", 127) + "com": "not a name", strings.Repeat("é.", 3000): "not a name",
		"example.com:": "port", "example.com:0": "port", "example.com:65536": "port", "example.com:+80": "port", "example.com:080": "port", "example.com:http": "port", "example.com:80:80": "an address",
		"https://example.com/": "plain http", "example.com/path": "plain http", "ftp://example.com/": "plain http", "//example.com/": "plain http",
		"http://example.com": "path", "get http://example.com/": "method", "GET POST http://example.com/": "plain http",
		"http://example.com/a/../b": "path", "http://example.com/a*b": "path", "http://example.com/%2e": "path", "http://example.com//a": "path",
		"http://example.com/a?b": "path", "http://example.com/a#b": "path", "http://10.0.0.1/": "an address", "http://localhost/": "machine itself",
	} {
		r, err := Parse(text)
		switch {
		case want == "" && err == nil: // white space around a rule is nothing
		case err == nil:
			t.Errorf("%q is the rule %q", text, r)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v; want %q", text, err, want)
		}
		if _, err := Compile([]string{text}); err == nil && want != "" && text != All {
			t.Errorf("%q compiles", text)
		}
	}
}

// An error names each position once, by reason, and a list that is wrong allows nothing.
func TestErrorsNamePositions(t *testing.T) {
	set, err := Compile([]string{"example.com", "10.0.0.1", "", "*.example.com", "::1", strings.Repeat("x", 500)})
	want := `rules 2 ("10.0.0.1"), 5 ("::1"): it is an address; rules are for names; rule 3 (""): it is empty; rule 6 ("` +
		strings.Repeat("x", maxQuoted) + `\u2026"): it has no dot; give the whole name`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if _, ok := set.Name("example.com"); ok {
		t.Error("a list that is wrong allows something")
	}
	_, err = Normalize(slices.Repeat([]string{"x"}, 90))
	if err == nil || len(err.Error()) > 250 || !strings.Contains(err.Error(), "and 80 more") {
		t.Errorf("%v", err)
	}
}

func TestNormalize(t *testing.T) {
	got, err := Normalize([]string{"B.example", "*.A.example", " b.example", "a.example:443"})
	if want := []string{"b.example", "*.a.example", "a.example:443"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Normalize([]string{All}); err == nil {
		t.Error("people cannot allow everything by a rule")
	}
	var many []string
	for i := range MaxDomains + 1 {
		many = append(many, fmt.Sprintf("d%d.example", i))
	}
	if _, err := Normalize(many[:MaxDomains]); err != nil {
		t.Error(err)
	}
	if _, err := Normalize(many); err == nil || err.Error() != "You can allow up to 100 domains" {
		t.Errorf("%v", err)
	}
}

func TestMatch(t *testing.T) {
	s := compiled(t, "good.test", "*.wild.test", "port.test:8443", "*.deep.wild.test:5432", "GET http://req.test/pub/*", "both.test", "GET http://both.test/x")
	for _, c := range []struct {
		name string
		port uint16
		rule string // empty: refused
	}{
		{"good.test", 443, "good.test"},
		{"GOOD.test", 80, "good.test"},
		{"good.test", 22, "good.test"},
		{"good.test", 8443, ""},
		{"good.test", 0, ""},
		{"a.good.test", 443, ""},
		{"xgood.test", 443, ""},
		{"good.test.", 443, ""},
		{"good.test.evil.test", 443, ""},
		{"wild.test", 443, "*.wild.test"},
		{"a.wild.test", 443, "*.wild.test"},
		{"a.b.wild.test", 22, "*.wild.test"},
		{"xwild.test", 443, ""},
		{"_dmarc.wild.test", 443, "*.wild.test"},
		{"-.wild.test", 443, ""},
		{".wild.test", 443, ""},
		{"a..wild.test", 443, ""},
		{"a\x00.wild.test", 443, ""},
		{"*.wild.test", 443, ""},
		{"ä.wild.test", 443, ""},
		{"port.test", 8443, "port.test:8443"},
		{"port.test", 443, ""},
		{"x.deep.wild.test", 5432, "*.deep.wild.test:5432"},
		{"x.deep.wild.test", 443, "*.wild.test"},
		{"req.test", 80, "GET http://req.test/pub/*"},
		{"req.test", 443, ""},
		{"both.test", 80, "both.test"},
		{"", 443, ""},
		{"test", 443, ""},
		{"localhost", 80, ""},
		{"10.0.0.1", 443, ""},
		{strings.Repeat("a.", 200) + "wild.test", 443, ""},
	} {
		rule, ok := s.Match(c.name, c.port)
		if rule != c.rule || ok != (c.rule != "") {
			t.Errorf("%s:%d: %q, %v", c.name, c.port, rule, ok)
		}
		if _, named := s.Name(c.name); ok && !named {
			t.Errorf("%s is no name", c.name)
		}
	}
	if _, ok := s.Name("port.test"); !ok {
		t.Error("a name with one port is no name")
	}
	if !s.Requests("req.test", 80) || s.Requests("both.test", 80) || s.Requests("good.test", 80) || s.Requests("none.test", 80) {
		t.Error("Requests")
	}
	for target, want := range map[string]bool{
		"/pub/": true, "/pub/a%20b": true, "/pub/a?..": true, "/pub": false, "/": false, "*": false,
		"/pub/../x": false, "/pub/%2E%2e/x": false, "/pub/a%2fb": false, "/pub/a%5cb": false, "/pub//a": false, "/pub/..;/x": false, "/pub/%252e": false, "/pub/\x00": false,
	} {
		if _, ok := s.Request("req.test", 80, "GET", target); ok != want {
			t.Errorf("%q: %v", target, ok)
		}
	}
	if _, ok := s.Request("req.test", 80, "HEAD", "/pub/"); ok {
		t.Error("another method")
	}
	if rule, ok := s.Request("both.test", 80, "POST", "/"); !ok || rule != "both.test" {
		t.Errorf("%q, %v", rule, ok)
	}
}

func TestPublic(t *testing.T) {
	s := compiled(t, All)
	if _, ok := s.Match("any.test", 12345); !ok || !s.Public() {
		t.Error("not everything is allowed")
	}
	for _, name := range []string{"localhost", "x", "10.0.0.1", "host.docker.internal", "a b.test"} {
		if _, ok := s.Match(name, 80); ok {
			t.Errorf("%q", name)
		}
	}
	if compiled(t, "good.test").Public() || compiled(t).Public() || (Set{}).Public() {
		t.Error("a policy is public that is not")
	}
	if _, ok := (Set{}).Match("good.test", 443); ok {
		t.Error("no rule allows something")
	}
}

func TestFingerprint(t *testing.T) {
	a := compiled(t, "b.test", "a.test", "A.test").Fingerprint()
	if b := compiled(t, "a.test", "b.test").Fingerprint(); a != b || len(a) != 64 {
		t.Errorf("%s, %s", a, b)
	}
	seen := map[string]bool{a: true}
	for _, rules := range [][]string{nil, {All}, {"a.test"}, {"*.a.test"}, {"a.test:443"}, {"GET http://a.test/"}} {
		f := compiled(t, rules...).Fingerprint()
		if seen[f] {
			t.Errorf("%q is the same as another", rules)
		}
		seen[f] = true
	}
}

// What is suggested is a rule, and it allows the place.
func TestSuggest(t *testing.T) {
	for _, c := range []struct {
		name string
		port uint16
		want string
	}{
		{"Evil.test", 443, "evil.test"},
		{"evil.test", 22, "evil.test"},
		{"evil.test", 8443, "evil.test:8443"},
		{"bücher.test", 443, "xn--bcher-kva.test"},
		{"10.0.0.1", 443, ""},
		{"localhost", 80, ""},
		{"evil.test", 0, ""},
		{"x_y.test", 443, ""},
		{"", 443, ""},
	} {
		got := Suggest(c.name, c.port)
		if got != c.want {
			t.Errorf("%s:%d: %q", c.name, c.port, got)
		}
		if got == "" {
			continue
		}
		host, _ := Host(c.name)
		if _, ok := compiled(t, got).Match(host, c.port); !ok {
			t.Errorf("%q does not allow %s:%d", got, c.name, c.port)
		}
	}
}

// The wildcard takes in its children, and what Modal cannot say is not said more widely.
func TestModal(t *testing.T) {
	s := compiled(t, "a.wild.test", "*.wild.test", "*.b.wild.test", "wild.test", "good.test", "*.port.test:8443", "a.port.test", "other.test:443", "GET http://req.test/x")
	if got, want := s.Modal(), []string{"*.wild.test", "a.port.test", "good.test", "wild.test"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got, want := s.ModalLeft(), []string{"*.port.test:8443", "GET http://req.test/x", "other.test:443"}; !slices.Equal(got, want) {
		t.Errorf("left: %q", got)
	}
	if got := compiled(t, All, "a.test").Modal(); !slices.Equal(got, []string{All}) {
		t.Errorf("%q", got)
	}
	if got := compiled(t).Modal(); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// Every line of the trusted list is well-formed, its own domains come first, and each
// registrable domain stands once in a group.
func TestDefault(t *testing.T) {
	rules, err := readGroups(trusted)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rules, Default()) || len(rules) < 150 || !slices.Equal(rules[:2], []string{"insights.com", "*.insights.com"}) {
		t.Errorf("%d rules, first %q", len(rules), rules[:2])
	}
	s := compiled(t, Default()...)
	for _, name := range []string{"github.com", "api.github.com", "eu.insights.com", "us.archive.ubuntu.com", "dl.google.com"} {
		if _, ok := s.Match(name, 443); !ok {
			t.Errorf("%s is not allowed", name)
		}
	}
	for _, name := range []string{"evil.test", "pages.github.com", "com", "www.google.com"} {
		if rule, ok := s.Match(name, 443); ok {
			t.Errorf("%s is allowed by %s", name, rule)
		}
	}
	seen := map[string]bool{}
	for i, line := range strings.Split(trusted, "\n") {
		name, _, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, "#") || line == "" {
			seen = map[string]bool{}
		} else if seen[name] {
			t.Errorf("line %d: %s stands twice in its group", i+1, name)
		}
		seen[name] = true
	}
}

func TestReadGroups(t *testing.T) {
	rules, err := readGroups("# x\n\na.test (itself, www, *.x)  # why\nb.test\nc.test (itself\nd.test (*.*)\ne.test ()\n")
	if !slices.Equal(rules, []string{"a.test", "www.a.test", "*.x.a.test"}) {
		t.Errorf("%q", rules)
	}
	for _, want := range []string{"line 4", "line 5", "line 6", "line 7"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no %s", err, want)
		}
	}
}

// A rule that parses has a canonical form that parses to it, matches its own name, and no
// address, and nothing beside its name.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"example.com", "*.example.com:8443", "GET http://example.com/a/*", "bücher.example", "0x7f.1", "xn--a.com", "*", "a。b", "127.0.0.1"} {
		f.Add(seed, "evil.test")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(r.String())
		if err != nil || again != r {
			t.Fatalf("%q is %q, which is %q, %v", text, r, again, err)
		}
		s := compiled(t, text)
		if _, ok := s.Name(r.host); !ok {
			t.Fatalf("%q does not match %q", text, r.host)
		}
		lower := strings.ToLower(name)
		if _, ok := s.Name(name); ok && lower != r.host && !(r.wild && strings.HasSuffix(lower, "."+r.host)) {
			t.Fatalf("%q matches %q", text, name)
		}
	})
}
