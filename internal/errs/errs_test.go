package errs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

// TestCodesArePublished: scripts branch on these numbers (README, `help exit-codes`),
// so a kind never changes its code; a forgotten case of Code would say 1.
func TestCodesArePublished(t *testing.T) {
	for kind, want := range map[Kind]int{
		Internal: 1, NotFound: 1, Conflict: 1, Usage: 2, Config: 2, Incomplete: 3, Auth: 4, Unavailable: 5,
		TaskFailed: 7, Running: 8, Timeout: 124, Canceled: 130, Terminated: 143,
		"": 1, "of a later version": 1,
	} {
		if got := kind.Code(); got != want {
			t.Errorf("%q exits with %d, want %d", kind, got, want)
		}
	}
}

// TestKindsAreStored: results in state.db and errors of --json hold these words; a
// renamed one would make the runs of earlier versions Internal.
func TestKindsAreStored(t *testing.T) {
	for kind, want := range map[Kind]string{
		Internal: "internal", Usage: "usage", Config: "config", Incomplete: "incomplete", Auth: "auth",
		Unavailable: "unavailable", NotFound: "not_found", Conflict: "conflict", TaskFailed: "task_failed",
		Running: "running", Timeout: "timeout", Canceled: "canceled", Terminated: "terminated",
	} {
		if string(kind) != want {
			t.Errorf("%q is stored as %q", want, kind)
		}
	}
}

// TestKindAndHint: a layer that adds words with fmt.Errorf must not turn an exit code
// into 1, and one that knows better (a kind or a hint of its own) has the last word.
func TestKindAndHint(t *testing.T) {
	cause := New("a.B", Unavailable, "start the engine", "no engine: %w", fs.ErrNotExist)
	for name, tt := range map[string]struct {
		err  error
		kind Kind
		hint string
	}{
		"nothing":                    {nil, Internal, ""},
		"plain":                      {errors.New("x"), Internal, ""},
		"bare":                       {cause, Unavailable, "start the engine"},
		"wrapped twice":              {fmt.Errorf("a: %w", fmt.Errorf("b: %w", cause)), Unavailable, "start the engine"},
		"the outer kind":             {New("c.D", Conflict, "wait", "c: %w", cause), Conflict, "wait"},
		"the inner hint":             {New("c.D", Conflict, "", "c: %w", cause), Conflict, "start the engine"},
		"a hint below two without":   {New("e.F", Auth, "", "e: %w", fmt.Errorf("c: %w", New("c.D", Conflict, "", "%w", cause))), Auth, "start the engine"},
		"joined behind a plain one":  {errors.Join(errors.New("x"), cause), Unavailable, "start the engine"},
		"the first of two joined":    {errors.Join(New("", Usage, "say it", "u"), cause), Usage, "say it"},
		"two causes in one":          {fmt.Errorf("%w and %w", errors.New("x"), cause), Unavailable, "start the engine"},
		"cancelled":                  {context.Canceled, Canceled, ""},
		"cancelled, wrapped":         {fmt.Errorf("read: %w", context.Canceled), Canceled, ""},
		"cancelled, but with a kind": {New("", Timeout, "", "too long: %w", context.Canceled), Timeout, ""},
		"a deadline is no interrupt": {context.DeadlineExceeded, Internal, ""},
	} {
		if kind, hint := KindOf(tt.err), HintOf(tt.err); kind != tt.kind || hint != tt.hint {
			t.Errorf("%s: %s, %q; want %s, %q", name, kind, hint, tt.kind, tt.hint)
		}
	}
}

// TestTextIsForPeople: the package that made an error and its hint are shown
// elsewhere; in the text they would be told twice.
func TestTextIsForPeople(t *testing.T) {
	err := New("pkg.Verb", Config, "do this", "cannot %s: %w", "read", fs.ErrPermission)
	if err.Error() != "cannot read: permission denied" || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
	var e *Error
	if !errors.As(fmt.Errorf("x: %w", err), &e) || e.Op != "pkg.Verb" {
		t.Errorf("%+v", e)
	}
}
