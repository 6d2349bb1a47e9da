package docker

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
)

// endpoint is an engine's address and where it was found.
type endpoint struct {
	host   string // "unix:///var/run/docker.sock"
	source string // "DOCKER_HOST", `context "x"`, "default socket"
	tls    *tlsFiles
}

// tlsFiles are paths of PEM files; "" where there is none.
type tlsFiles struct {
	ca, cert, key string
	skipVerify    bool
}

// String names the engine in errors.
func (e endpoint) String() string {
	if e.source == "" {
		return e.host
	}
	return e.host + " (" + e.source + ")"
}

// socket returns the path of a unix socket, or "".
func (e endpoint) socket() string {
	path, ok := strings.CutPrefix(e.host, "unix://")
	if !ok {
		return ""
	}
	return path
}

// remote reports whether the engine is on another machine for certain, so that
// paths of this one mean nothing to it.
func (e endpoint) remote() bool {
	scheme, rest, _ := strings.Cut(e.host, "://")
	switch scheme {
	case "unix", "npipe":
		return false
	case "ssh":
		return true
	}
	host, _, err := net.SplitHostPort(rest)
	if err != nil {
		host = rest
	}
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// resolve finds the engine. The order is that of the docker command: DOCKER_HOST,
// DOCKER_CONTEXT, the current context, the default socket; then the well-known
// sockets of engines that run without root.
func resolve(ctx context.Context, o Options) (endpoint, error) {
	if o.Host != "" {
		return fromHost(o)
	}
	if o.Context != "" && o.Context != defaultContext {
		return fromContext(o, o.Context, "DOCKER_CONTEXT")
	}
	if o.Context == "" {
		name, err := currentContext(o.configDir())
		if err != nil {
			return endpoint{}, err
		}
		if name != "" && name != defaultContext {
			return fromContext(o, name, "current context of "+filepath.Join(o.configDir(), "config.json"))
		}
	}
	if runtime.GOOS == "windows" {
		return endpoint{host: "npipe:////./pipe/docker_engine", source: "default pipe"}, nil
	}
	return firstSocket(ctx, wellKnownSockets(o)), nil
}

func (o Options) configDir() string {
	if o.ConfigDir != "" {
		return o.ConfigDir
	}
	return filepath.Join(o.Home, ".docker")
}

func fromHost(o Options) (endpoint, error) {
	host := o.Host
	if !strings.Contains(host, "://") {
		host = "tcp://" + host // as the docker command reads it
	}
	ep := endpoint{host: host, source: "DOCKER_HOST"}
	if err := checkScheme(ep); err != nil {
		return endpoint{}, err
	}
	if o.TLSVerify || o.CertPath != "" {
		dir := o.CertPath
		if dir == "" {
			dir = o.configDir()
		}
		ep.tls = tlsIn(dir)
		ep.tls.skipVerify = !o.TLSVerify
	}
	return ep, nil
}

func checkScheme(ep endpoint) error {
	scheme, rest, _ := strings.Cut(ep.host, "://")
	switch scheme {
	case "unix", "npipe", "tcp", "http", "https", "ssh":
		if rest != "" {
			return nil
		}
	}
	return errs.New("docker.Resolve", errs.Config,
		"use unix:///path/to/docker.sock, tcp://host:2376 or ssh://user@host",
		"%q from %s is not the address of an engine", ep.host, ep.source)
}

// tlsIn takes the three PEM files of a directory that are there.
func tlsIn(dir string) *tlsFiles {
	have := func(name string) string {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			return ""
		}
		return path
	}
	return &tlsFiles{ca: have("ca.pem"), cert: have("cert.pem"), key: have("key.pem")}
}

func wellKnownSockets(o Options) []endpoint {
	list := []endpoint{{host: "unix:///var/run/docker.sock", source: "default socket"}}
	if o.RuntimeDir != "" {
		list = append(list, endpoint{host: "unix://" + o.RuntimeDir + "/docker.sock", source: "rootless Docker"})
	}
	if o.Home != "" {
		list = append(list, endpoint{host: "unix://" + o.Home + "/.docker/run/docker.sock", source: "Docker Desktop"})
	}
	if o.RuntimeDir != "" {
		list = append(list, endpoint{host: "unix://" + o.RuntimeDir + "/podman/podman.sock", source: "rootless podman"})
	}
	return append(list, endpoint{host: "unix:///run/podman/podman.sock", source: "podman"})
}

// firstSocket returns the first socket that takes a connection; without one the
// first that exists, whose error says most, and without that the first.
func firstSocket(ctx context.Context, list []endpoint) endpoint {
	var there *endpoint
	d := net.Dialer{Timeout: time.Second}
	for i, ep := range list {
		conn, err := d.DialContext(ctx, "unix", ep.socket())
		if err == nil {
			_ = conn.Close()
			return ep
		}
		if _, err := os.Stat(ep.socket()); err == nil && there == nil {
			there = &list[i]
		}
	}
	if there != nil {
		return *there
	}
	return list[0]
}
