//go:build !race

package egress_test

const raceDetector = false
