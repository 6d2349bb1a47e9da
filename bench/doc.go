//go:build linux

// Command bench measures insightscli against yardsticks on the same machine in the
// same run, and prints a table: `make bench`. Every figure is a ratio or a count, so
// that it means the same on another machine. Rows whose yardstick is missing say so.
//
// It is a program and not a test: a timing is never a reason to fail.
package main
