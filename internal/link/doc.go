// Package link is the one byte stream between a host and a sandbox: a handshake
// that lets nobody else in ([HostHandshake], [ServerHandshake]), a multiplexer
// ([Session]) whose streams each ask for a service by name, the loop by which PID 1
// accepts hosts ([Server]) and the way to the socket that a hostile sandbox cannot
// bend ([DialUnix], [ListenUnix]).
//
// The agent has the uid of the host's user and can write the directory of the
// socket: it can connect, replace the socket, replay, flood. So nothing here trusts
// a path, a file mode or a peer before its handshake; every message is bounded and
// every wait of an unknown peer has a deadline.
//
// The package knows no service. Which ones exist is a map from name to [Handler].
//
// The multiplexer is hashicorp/yamux: flow control per stream, so that one slow
// reader (a paused screen) does not hold up the others.
package link
