package wire

// Egress is the first line of a stream of [ServiceEgress], JSON from the sandbox: one
// connection that a program inside has made, or a name that one has asked for. The host
// answers with one line, an [EgressVerdict]; where that is OK the stream then carries the
// connection's bytes both ways. A line is at most MaxEgressLine bytes, its newline
// included.
type Egress struct {
	// Name is the name that PID 1's own DNS server gave the address for, lower case, without a dot
	// at its end; empty where an address was dialled that stands for no name.
	Name string `json:"name,omitempty"`
	// Addr is the IP:PORT that was dialled. It is empty for a lookup.
	Addr string `json:"addr,omitempty"`
	// Proxy is a client that takes the listener for an HTTP proxy: its requests (CONNECT,
	// or with an absolute URL) follow, and the host answers them. Name and Addr are empty.
	Proxy bool `json:"proxy,omitempty"`
	// Lookup tells that a name was asked for that is not allowed, for the record. There is
	// no answer but the verdict.
	Lookup bool `json:"lookup,omitempty"`
}

// EgressVerdict is what the host thinks of an [Egress].
type EgressVerdict struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why not: one line, lower case
}

// MaxEgressLine bounds the two lines.
const MaxEgressLine = 1 << 10

// GitHub is the parameter of [MethodGitHub]: a token that reads the run's repositories.
// It takes the place of the one before, in every process that asks from now on. The empty
// token means that there is none any more.
type GitHub struct {
	Token string `json:"token"`
	Host  string `json:"host"` // github.com, or that of a GitHub of one's own
	// Pending: one is being made, and who asks waits for it. It does not take the place of
	// another.
	Pending bool `json:"pending,omitempty"`
	// None: there never was one, and programs are on their own.
	None bool `json:"none,omitempty"`
}
