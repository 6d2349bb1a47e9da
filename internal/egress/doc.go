// Package egress is the host's side of the network policy: every connection that a sandbox
// without a network makes arrives here over the link, is judged by the rules of the run, and
// only then is made, by the host.
//
// A connection is judged by the name that was asked for and its port; then by what its first
// bytes claim, which has to be the same name: the server name of TLS, or the Host of every
// HTTP request. Names are resolved here, when a connection is made, and an address that is
// not public is never dialled, whatever name stands for it. What is not understood is
// refused. Denials are told ([Config.OnDenied]) and written down ([AuditFile]).
//
// Nothing of a connection waits in a queue: a peer that does not read stops the one that
// writes. The package does not decide what the policy is (package rule), and does not answer
// for names; the sandbox does, by the same rules.
package egress
