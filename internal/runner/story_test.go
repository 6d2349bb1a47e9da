package runner

import (
	"errors"
	"testing"
)

// A commit of the log that failed once ended the acknowledgements and nothing else: the
// sandbox's journal filled up and the agent stood still.
func TestACommitThatFailsIsToldOnce(t *testing.T) {
	s := quietFollower(t, nil).x.story
	first := errors.New("no space left on device")
	s.fail(first)
	s.fail(errors.New("another"))
	select {
	case <-s.broken:
	default:
		t.Fatal("nobody is told")
	}
	if !errors.Is(s.err(), first) {
		t.Errorf("error %v", s.err())
	}
}
