package steps

import (
	"maps"
	"testing"
)

func TestAddProxies(t *testing.T) {
	for name, c := range map[string]struct {
		p         Proxies
		env, want map[string]string
	}{
		"none": {},
		"https only": {
			p: Proxies{HTTPS: "http://proxy.corp:3128", No: "10.0.0.0/8,host.docker.internal"},
			want: map[string]string{
				"HTTPS_PROXY": "http://proxy.corp:3128", "https_proxy": "http://proxy.corp:3128",
				"NO_PROXY": "10.0.0.0/8,host.docker.internal,localhost,127.0.0.1,::1",
				"no_proxy": "10.0.0.0/8,host.docker.internal,localhost,127.0.0.1,::1",
			},
		},
		"on this machine": {
			p: Proxies{HTTP: "localhost:3128", HTTPS: "http://[::1]:8080/"},
			want: map[string]string{
				"HTTP_PROXY": "http://host.docker.internal:3128", "http_proxy": "http://host.docker.internal:3128",
				"HTTPS_PROXY": "http://host.docker.internal:8080/", "https_proxy": "http://host.docker.internal:8080/",
				"NO_PROXY": "localhost,127.0.0.1,::1", "no_proxy": "localhost,127.0.0.1,::1",
			},
		},
		"the user's own": {
			p:    Proxies{HTTP: "http://proxy:1"},
			env:  map[string]string{"http_proxy": "http://mine:1", "NO_PROXY": "x"},
			want: map[string]string{"http_proxy": "http://mine:1", "NO_PROXY": "x"},
		},
		"with a password": {p: Proxies{HTTPS: "http://user:word@proxy:1"}},
	} {
		env := maps.Clone(c.env)
		if env == nil {
			env = map[string]string{}
		}
		if addProxies(env, c.p); !maps.Equal(env, c.want) {
			t.Errorf("%s: %v, want %v", name, env, c.want)
		}
	}
}
