// Package setup prepares a machine for background agents: an ordered list of small
// steps, each of which looks first and changes only what is missing, so that it may
// run as often as anybody likes.
//
// It does not print, ask, or read the environment. Who calls it passes plain values
// and small interfaces in, decides with [Options.Confirm] about what costs time or
// money, and shows the [Result] of each step.
//
// A step never overwrites a value that is there. Run goes on after a step that
// failed: what can be prepared is prepared, and [Undone] tells what was not.
package setup
