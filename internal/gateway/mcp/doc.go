// Package mcp gives the agent of a run its MCP servers, over streamable HTTP: our own
// tools, a relay to the Insights MCP server, and relays to the user's servers, which are
// reached over HTTP or started here as processes.
//
// The agent knows addresses of its own loopback and the run's token. The credentials of
// the servers behind a relay stay on the host. What comes from the agent is hostile, and
// so is what a user's server answers: bodies and answers are bounded, names are checked,
// lists are cut, and nothing of a request but its parameters goes on.
//
// A [Hub] belongs to one run. The caller makes it, calls Connect once, hands it streams
// of the link with ServeConn, and closes it: then no process and no goroutine of it is
// left. A [Mux] serves the hubs of several runs on TCP and finds each by its token.
//
// # Read-only
//
// The Insights server is told that it is read-only, and what it lists is filtered here
// too: a tool with annotations stays only if they say readOnlyHint, a tool without any
// stays unless its name says that it writes. The dispatcher of the server (the tool exec)
// always stays, and the tools that it is asked to run are judged by their names.
//
// # Leave
//
// A tool of any relay whose name matches the approval pattern needs somebody's leave,
// and so does a call of the dispatcher that names such a tool. Nobody there means no.
//
// # Loss
//
// A server that lost its session is connected again, once for each call. A call that may
// have been carried out is not sent a second time unless its tool only reads; the agent
// is told that the outcome is not known.
//
// The package does not check who the run belongs to (CheckToken does), does not store
// artifacts and does not end runs ([Run] does), and keeps the SDK's types to itself.
package mcp
