package docker

import (
	"time"
)

// Transport is a way to reach PID 1.
type Transport string

// The transports. Auto lets a probe of the engine decide.
const (
	TransportAuto   Transport = ""
	TransportSocket Transport = "socket" // a unix socket in a bound directory
	TransportExec   Transport = "exec"   // stdio of an exec in the container
)

// Options say which engine to use and how. They are plain values; package config
// fills them from the environment.
type Options struct {
	Host       string // DOCKER_HOST
	Context    string // DOCKER_CONTEXT
	ConfigDir  string // DOCKER_CONFIG; "" is Home/.docker
	CertPath   string // DOCKER_CERT_PATH; "" is ConfigDir
	TLSVerify  bool   // DOCKER_TLS_VERIFY is not empty
	Home       string // of the user
	RuntimeDir string // XDG_RUNTIME_DIR

	Transport Transport
	// SSH is the program for ssh:// engines; "" is "ssh".
	SSH string
	// ConnectTimeout bounds the first contact with the engine; 0 is 8 s.
	ConnectTimeout time.Duration
}

// Bounds of calls to an engine. A call that outlives its bound means an engine that
// hangs; the work of a healthy one takes a small part of it.
const (
	pingTimeout    = time.Second      // for the choice of a provider
	connectTimeout = 8 * time.Second  // of the first contact; with the rest under 10 s
	dialTimeout    = 5 * time.Second  // of one connection
	createTimeout  = 2 * time.Minute  // of a create whose caller has given up
	cleanupTimeout = 30 * time.Second // of a removal whose caller has given up
)
