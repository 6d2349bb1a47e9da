// Package agentserver is the sandbox's side of a run: PID 1 of a sandbox (or its
// entry point, where the provider has an init of its own; or a goroutine, for the
// memory provider). It keeps the journal of what happened, drives the agent through
// a [Driver], and serves the host over the link: rpc, events, exec, archive, http.
//
// It does not know namespaces, capabilities or seccomp (package jail), nor any
// agent's own format (the packages of the drivers), nor how a process is forked
// (package proc). It opens no path that the agent could have made: files of the
// agent are touched by processes of the agent's uid only, started like any other.
//
// # The journal
//
// Every output and event is a frame with a number, gapless from 1, kept until the
// host says that it is durable. Decision, 2026-11: frames are kept in PID 1's own
// memory rather than in a tmpfs of its own. Both live exactly as long as PID 1, both
// are out of the agent's reach (it can neither read nor trace PID 1), both count
// against the same memory limit; memory needs no mount, no descriptor and no system
// call for each frame. What would change it: a journal that must outlive PID 1.
//
// At three quarters of its bound the agent's output is no longer read, so that the
// agent waits in write(2): backpressure, never a drop. The last quarter is for what
// cannot wait: answers of drivers and the outcome.
//
// What an agent says in many small pieces is joined on its way into the journal, and the
// snapshots of a running tool are thinned out (see [Host.Update]); at the end of a turn
// nothing is held back.
//
// # Services of the host
//
// At a loopback port of each service that the host offers (wire.Boot.Ports) the agent's
// connections are carried, byte for byte, over streams of the link. They wait for a host
// that is away, and are told 503 when it does not come; what the death of a host cuts off
// is cut for the agent too. Who may use a service is the host's to check.
//
// Every other connection of the agent, where its sandbox has no network, is the business of
// package capture, which runs beside ([Config.Beside]).
//
// # Order of the end
//
// FrameDone is the last frame and comes exactly once. The server goes on serving
// after it (the host takes the changes out through exec) until it is told to shut
// down or is destroyed.
package agentserver
