// Package background is the runner that owns runs which no terminal waits for: those
// started with --detach, and those whose own process died. There is one per state
// directory; an exclusive lock on background.lock says who it is, and the kernel
// drops the lock on any death.
//
// It finds work in state.db, by looking every two seconds and when somebody knocks,
// so that a lost knock costs two seconds and nothing else. It keeps no state of its
// own: killed at any time, the next command starts another that goes on.
package background
