// Package firstgc lets the first garbage collection of a program that imports it wait
// until there is more to collect. What libraries allocate when they are initialised, most
// of it for the schemas of JSON Schema's drafts (see internal/reply), comes near the four
// megabytes at which the runtime begins: that was a tenth of the time of
// `insightscli version`, for next to no garbage.
//
// Of the packages whose imports are initialised, Go takes the one whose path sorts first.
// This one imports next to nothing, and the capital letter in its path sorts before the
// libraries'. A test of cmd/insightscli holds that order.
package firstgc

import (
	"runtime"
	"runtime/debug"
)

const (
	usual = 100 // the percentage of a program that nobody has told another one
	first = 400 // the first collection at 16 MB instead of 4
)

// collected is unreachable from its beginning, and freed by the first collection.
type collected struct{ _ [64]byte }

func init() { postpone() }

// postpone sets the percentage for the first collection, which sets it back.
func postpone() {
	if before := debug.SetGCPercent(first); before != usual { // GOGC is set
		debug.SetGCPercent(before)
		return
	}
	runtime.AddCleanup(new(collected), restore, usual)
}

// restore brings the usual percentage back, unless the program has chosen one meanwhile.
func restore(percent int) {
	if now := debug.SetGCPercent(percent); now != first {
		debug.SetGCPercent(now)
	}
}
