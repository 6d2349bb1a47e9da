//go:build race

package egress_test

// raceDetector keeps a shadow of all memory, so that how much there is says nothing.
const raceDetector = true
