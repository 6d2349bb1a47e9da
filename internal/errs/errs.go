// Package errs gives errors a kind, which decides the exit code, and a hint, which
// is the one thing the user can do about it. Kinds are few, and each has a
// reaction. Sentinels live with the package whose callers branch on them.
package errs

import (
	"context"
	"errors"
	"fmt"
)

// Kind is a class of error with one reaction.
type Kind string

// The kinds and what they mean for the process.
const (
	Internal    Kind = "internal"    // the tool failed
	Usage       Kind = "usage"       // the command line is wrong; nothing was started
	Config      Kind = "config"      // a setting is wrong; nothing was started
	Incomplete  Kind = "incomplete"  // done, but something was left behind
	Auth        Kind = "auth"        // not authenticated or not allowed
	Unavailable Kind = "unavailable" // a needed service is not reachable
	NotFound    Kind = "not_found"   // the thing named does not exist
	Conflict    Kind = "conflict"    // it is in the wrong state for this
	TaskFailed  Kind = "task_failed" // the run ended in order, the task failed
	Running     Kind = "running"     // still going on: not an error for the run
	Timeout     Kind = "timeout"     // the wall-clock limit ended the run
	Canceled    Kind = "canceled"    // interrupted
	Terminated  Kind = "terminated"  // ended by SIGTERM or SIGHUP
)

// Code returns the published exit code of a kind (README, `help exit-codes`).
func (k Kind) Code() int {
	switch k {
	case Usage, Config:
		return 2
	case Incomplete:
		return 3
	case Auth:
		return 4
	case Unavailable:
		return 5
	case TaskFailed:
		return 7
	case Running:
		return 8
	case Timeout:
		return 124
	case Canceled:
		return 130
	case Terminated:
		return 143
	case Internal, NotFound, Conflict:
		return 1
	}
	return 1
}

// Error is an error with a kind and a hint. Op is "package.Verb" and shown with
// --debug only.
type Error struct {
	Op   string
	Kind Kind
	Hint string // one action, in the imperative, with the literal command
	Err  error
}

// Error implements error: one line, without Op and Hint.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// New returns an Error of the given kind whose text is formatted as by fmt.Errorf,
// %w included.
func New(op string, kind Kind, hint, format string, args ...any) error {
	return &Error{Op: op, Kind: kind, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// KindOf returns the kind of the outermost Error in err's chain. A bare
// context.Canceled is Canceled; everything unknown is Internal.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Internal
}

// HintOf returns the outermost hint in err's chain, or "".
func HintOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}
