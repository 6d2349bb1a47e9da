package docker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"github.com/Insights/insightscli/internal/errs"
)

// engine is one connection to an engine, made at first use and kept.
type engine struct {
	opts Options
	turn chan struct{} // holds one token; guards the fields below

	ep   endpoint
	api  *client.Client // nil until the engine has answered
	warm func()         // ends the asking in advance, and waits; nil before

	asking chan struct{} // holds one token; guards known
	known  *facts
}

func newEngine(o Options) *engine {
	e := &engine{opts: o, turn: make(chan struct{}, 1), asking: make(chan struct{}, 1)}
	e.turn <- struct{}{}
	e.asking <- struct{}{}
	return e
}

// lock waits for the fields, or for ctx: a hanging first contact must not make
// others wait longer than they want to.
func (e *engine) lock(ctx context.Context) error {
	select {
	case <-e.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *engine) unlock() { e.turn <- struct{}{} }

// connect resolves the engine and makes sure, once, that it answers.
func (e *engine) connect(ctx context.Context) (*client.Client, error) {
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	defer e.unlock()
	if e.api != nil {
		return e.api, nil
	}
	limit := e.opts.ConnectTimeout
	if limit == 0 {
		limit = connectTimeout
	}
	pingCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ep, err := resolve(pingCtx, e.opts)
	if err != nil {
		return nil, err
	}
	e.ep = ep
	api, err := newClient(ep, e.opts.SSH)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	ping, err := api.Ping(pingCtx)
	if err == nil && ping.OSType != "" && ping.OSType != "linux" {
		err = errs.New("docker.Connect", errs.Unavailable, "switch the engine to Linux containers",
			"the engine at %s runs %s containers", ep, ping.OSType)
	}
	if err != nil {
		_ = api.Close()
		return nil, unreachable(ctx, ep, err, time.Since(start))
	}
	api.NegotiateAPIVersionPing(ping)
	e.api = api
	e.warmUp(ctx)
	return api, nil
}

// warmUp asks for the facts before anybody needs them: the answer takes an engine
// several milliseconds, in which a run has other things to do.
func (e *engine) warmUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = e.facts(ctx) // whoever needs them asks again
	}()
	e.warm = func() {
		cancel()
		<-done
	}
}

func newClient(ep endpoint, sshProgram string) (*client.Client, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 32, IdleConnTimeout: 90 * time.Second}
	if ep.tls != nil {
		config, err := ep.tls.config()
		if err != nil {
			return nil, errs.New("docker.Connect", errs.Config, "check the certificate files of "+ep.source,
				"TLS for docker at %s: %w", ep, err)
		}
		transport.TLSClientConfig = config
	}
	opts := []client.Opt{
		client.WithHTTPClient(&http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}),
		client.WithAPIVersionNegotiation(),
	}
	if strings.HasPrefix(ep.host, "ssh://") {
		dial, err := sshDialer(ep.host, sshProgram)
		if err != nil {
			return nil, err
		}
		// Nobody looks this name up: every connection is a stdio of ssh.
		opts = append(opts, client.WithHost("http://docker.ssh"), client.WithDialContext(dial))
	} else {
		opts = append(opts, client.WithHost(ep.host))
	}
	api, err := client.NewClientWithOpts(opts...)
	if err != nil {
		return nil, errs.New("docker.Connect", errs.Config, "check "+ep.source, "docker at %s: %w", ep, err)
	}
	return api, nil
}

func (f *tlsFiles) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: f.skipVerify}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", f.ca)
		}
	}
	if f.cert != "" && f.key != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// facts are what /info says about an engine.
type facts struct {
	platform string // "linux/amd64"
	cpus     int
	memory   int64 // bytes
	rootless bool  // container uid 0 is the user who runs the engine
	remapped bool  // dockerd --userns-remap: no container uid is a user of the host
	selinux  bool
	podman   bool
	local    bool // shares kernel and file system with this process

	noMemory, noCPUs, noPIDs bool // limits that nothing holds

	id, version    string // of the engine
	runtimes       map[string]ociRuntime
	defaultRuntime string
}

// facts asks the engine once.
func (e *engine) facts(ctx context.Context) (facts, error) {
	api, err := e.connect(ctx)
	if err != nil {
		return facts{}, err
	}
	select {
	case <-e.asking:
	case <-ctx.Done():
		return facts{}, ctx.Err()
	}
	defer func() { e.asking <- struct{}{} }()
	if e.known != nil {
		return *e.known, nil
	}
	info, err := api.Info(ctx)
	if err != nil {
		return facts{}, fmt.Errorf("ask docker at %s: %w", e.ep, err)
	}
	f := readInfo(info)
	f.local = e.ep.socket() != "" && sameMachine(info.Name, info.KernelVersion)
	if f.podman && !f.rootless {
		f.rootless = podmanRootless(ctx, api)
	}
	f.readLimits(info)
	e.known = &f
	return f, nil
}

func readInfo(info system.Info) facts {
	f := facts{platform: "linux/" + goArch(info.Architecture), cpus: info.NCPU, memory: info.MemTotal}
	f.readRuntimes(info)
	// podman does not say its name here, but only it has this log driver.
	f.podman = slices.Contains(info.Plugins.Log, "k8s-file")
	for _, option := range info.SecurityOptions {
		switch name, _, _ := strings.Cut(option, ","); name {
		case "name=rootless":
			f.rootless = true
		case "name=userns":
			f.remapped = true
		case "name=selinux":
			f.selinux = true
		}
	}
	return f
}

// goArch turns the kernel's name of an architecture, which /info gives, into Go's,
// which images carry.
func goArch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	case "armv7l", "armv6l":
		return "arm"
	case "i386", "i686":
		return "386"
	}
	return machine
}
