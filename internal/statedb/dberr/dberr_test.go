package dberr

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
)

type coded int

func (c coded) Error() string { return fmt.Sprintf("sqlite says %d", int(c)) }
func (c coded) Code() int     { return int(c) }

func TestWrapSaysWhatIsWrong(t *testing.T) {
	tests := map[coded]struct {
		kind        errs.Kind
		words, hint string
	}{
		codeFull:           {errs.Internal, "disk is full", "free some space"},
		codeNoRoomForShm:   {errs.Internal, "disk is full", "free some space"},
		codeIO | 3<<8:      {errs.Internal, "cannot be read or written", "check the disk"},
		codeBusy | 1<<8:    {errs.Internal, "another process", "run the command again"},
		codeReadOnly:       {errs.Config, "cannot be written", "INSIGHTSCLI_STATE_DIR"},
		codeCantOpen:       {errs.Config, "cannot be opened", "INSIGHTSCLI_STATE_DIR"},
		codeCorrupt | 1<<8: {errs.Internal, "damaged", "move state.db"},
		codeNotADB:         {errs.Internal, "damaged", "move state.db"},
		1:                  {errs.Internal, "sqlite says 1", ""},
	}
	for code, tt := range tests {
		err := Wrap("x.Do", "do it", fmt.Errorf("inner: %w", code))
		text := err.Error()
		if errs.KindOf(err) != tt.kind || !strings.HasPrefix(text, "do it: ") || !strings.Contains(text, tt.words) ||
			!strings.Contains(errs.HintOf(err), tt.hint) || !errors.Is(err, code) {
			t.Errorf("%d: %v (%s, %q)", int(code), err, errs.KindOf(err), errs.HintOf(err))
		}
		if want := code&0xff == codeCorrupt || code == codeNotADB; Damaged(err) != want {
			t.Errorf("Damaged(%v) = %t", err, !want)
		}
	}
}

func TestWrapKeepsWhatHasAMeaning(t *testing.T) {
	if err := Wrap("x.Do", "do it", nil); err != nil {
		t.Error(err)
	}
	known := errs.New("y", errs.Conflict, "wait", "not now")
	for _, in := range []error{known, sql.ErrNoRows, context.Canceled, context.DeadlineExceeded} {
		err := Wrap("x.Do", "do it", in)
		if !errors.Is(err, in) || errs.KindOf(err) != errs.KindOf(in) || errs.HintOf(err) != errs.HintOf(in) {
			t.Errorf("%v became %v (%s)", in, err, errs.KindOf(err))
		}
	}
}
