// Package dberr says in plain words what went wrong with state.db. It is shared by
// everything that keeps tables there, and knows the SQLite result codes but not the
// driver, so that no SDK type crosses a package border.
package dberr

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/Insights/insightscli/internal/errs"
)

// Primary SQLite result codes; they are part of the file format's documentation and
// do not change.
const (
	codeBusy     = 5
	codeLocked   = 6
	codeReadOnly = 8
	codeIO       = 10
	codeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	codeNotADB   = 26

	// codeNoRoomForShm is the extended code of a -shm file that cannot grow.
	codeNoRoomForShm = codeIO | 19<<8
)

// Hints that several errors share.
const (
	HintStateDir = "set INSIGHTSCLI_STATE_DIR to a directory of yours on a local disk"
	HintSpace    = "free some space on the disk of the state directory, then run the command again"
)

// Wrap makes err an [errs.Error] that says what was being done. nil stays nil; an
// error that has a kind already, a cancellation and sql.ErrNoRows keep their meaning.
func Wrap(op, doing string, err error) error {
	var known *errs.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.Is(err, sql.ErrNoRows),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", doing, err)
	}
	kind, hint, text := explain(code(err))
	if text == "" {
		return errs.New(op, kind, hint, "%s: %w", doing, err)
	}
	return errs.New(op, kind, hint, "%s: %s: %w", doing, text, err)
}

func explain(code int) (kind errs.Kind, hint, text string) {
	if code == codeNoRoomForShm {
		return errs.Internal, HintSpace, "the disk is full"
	}
	switch code & 0xff {
	case codeFull:
		return errs.Internal, HintSpace, "the disk is full"
	case codeBusy, codeLocked:
		return errs.Internal, "run the command again; if it stays so, look for a stopped insightscli process",
			"another process holds state.db"
	case codeReadOnly:
		return errs.Config, HintStateDir, "state.db cannot be written"
	case codeCantOpen:
		return errs.Config, HintStateDir, "state.db cannot be opened"
	case codeCorrupt, codeNotADB:
		return errs.Internal, "move state.db out of the state directory; the next command makes a new one",
			"state.db is damaged"
	case codeIO:
		return errs.Internal, "check the disk of the state directory", "state.db cannot be read or written"
	}
	return errs.Internal, "", ""
}

// Damaged reports whether err says that the database file is not one, or is broken.
func Damaged(err error) bool {
	c := code(err) & 0xff
	return c == codeCorrupt || c == codeNotADB
}

// code finds the SQLite result code in err's chain, 0 if there is none.
func code(err error) int {
	var c interface{ Code() int }
	if errors.As(err, &c) {
		return c.Code()
	}
	return 0
}
