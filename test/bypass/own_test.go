//go:build linux

package bypass

import (
	"fmt"
	"strings"
	"testing"
)

// TestOwnServers: a sandbox serves its own ports to itself, and what it may reach at the
// same ports elsewhere is there, too.
func TestOwnServers(t *testing.T) {
	s := needWorld(t)
	newWorld(t, s)
	places := map[string]func(t *testing.T) place{"local": func(t *testing.T) place { return localPlace(t, s) }}
	if !s.User {
		places["docker"] = func(t *testing.T) place { return dockerPlace(t, s, 1000) }
	}
	for name, make := range places {
		t.Run(name, func(t *testing.T) { ownServers(t, s, make(t)) })
	}
}

func ownServers(t *testing.T, s stage, p place) {
	b := p.open(t, s, nil, "own.example", "own.example:8000", "own.example:5432", "own.example:3000")
	const get = `GET / HTTP/1.1\r\nHost: own.example\r\n\r\n`
	steps := []struct{ addr, words, want string }{
		{"127.0.0.1:80", get, "own"},
		{"127.0.0.1:443", "TLS", "own"},
		{"127.0.0.1:8000", get, "own"},
		{"localhost:8000", get, "own"},
		{"127.8.8.8:8000", get, "own"},
		{"127.0.0.1:5432", "x", "own"},
		{"[::1]:3000", "x", "own"},
		{"localhost:3000", "x", "own"},
		{"own.example:80", get, "HTTP/1.1"},
		{"own.example:443", "TLS", "world"},
		{"own.example:8000", get, "HTTP/1.1"},
		{"own.example:5432", `x\n`, "world"},
		{"own.example:3000", `x\n`, "world"},
		{"1.2.3.4:80", get, "nothing"},
		{"1.2.3.4:443", "TLS", "nothing"},
		{"1.2.3.4:8000", get, "nothing"},
		{"1.2.3.4:5432", "x", "nothing"},
		{"own.example:8080", get, "nothing"},
	}
	var script, want strings.Builder
	script.WriteString(toolsDir + "/attempt own")
	for _, st := range steps {
		fmt.Fprintf(&script, " '%s' '%s'", st.addr, st.words)
		fmt.Fprintf(&want, "%s %s\n", st.addr, st.want)
	}
	if out, _ := b.sh(script.String()); out != want.String() {
		t.Errorf("printed\n%swant\n%s", out, want.String())
	}
}
