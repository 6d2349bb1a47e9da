package firstgc

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// percent reads the setting, which can only be read by changing it.
func percent() int {
	now := debug.SetGCPercent(first)
	debug.SetGCPercent(now)
	return now
}

func TestUsualAfterTheFirstCollection(t *testing.T) {
	before := debug.SetGCPercent(usual)
	defer debug.SetGCPercent(before)
	postpone()
	if got := percent(); got != first {
		t.Fatalf("it is %d, not %d", got, first)
	}
	runtime.GC()
	for end := time.Now().Add(10 * time.Second); percent() != usual; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("it is still %d", percent())
		}
	}
}

func TestWhatWasChosenStays(t *testing.T) {
	before := debug.SetGCPercent(50) // as GOGC does, before the program begins
	defer debug.SetGCPercent(before)
	postpone()
	if got := percent(); got != 50 {
		t.Errorf("50 became %d", got)
	}
	restore(usual) // what the program has chosen since
	if got := percent(); got != 50 {
		t.Errorf("50 became %d", got)
	}
}
