// Package task is the vocabulary of the system: what is asked for ([Spec]), what
// happens ([Event]), what a person may say meanwhile ([Input]) and how it ended
// ([Result]).
//
// Everything here is a plain value: no function fields, no channels, no clocks.
// A Spec is frozen before anything starts, so that it can be journalled, printed
// by --dry-run or sent to another machine unchanged. The package imports the
// standard library only and knows no provider, no storage and no screen.
package task
