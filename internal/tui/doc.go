// Package tui is what people see on a terminal: the table of runs, and one run with its
// steps, its conversation, its log and its changes.
//
// # Design
//
// The model is a fold: Update takes a message and returns what is to be done next. It does
// no I/O and starts no goroutine; reading, searching and acting are commands that answer
// with a message. What the screens need from outside is a [Source] and [Actions].
//
// A run is read from its log and from nothing else, also while this process carries it
// out: [Screen], the sink of such a run, only remembers that there is more and can
// therefore neither block nor slow the run. A log of a million events is not held in
// memory. The scanner keeps 16 bytes of every event; the events that are on the screen,
// and some around them, are read again by their place in the file. A screen that opens a
// long log reads its end first and the rest behind what is shown.
//
// Whatever a sandbox said is shown as text: it is cleaned before it is measured, and cells
// are what is counted, never bytes. Colours are those of the terminal's own palette, so
// that they suit a dark and a light one and nothing needs to be asked.
//
// The terminal is given back however the program ends: by the end of [Show], and where the
// process dies without one (a panic in any goroutine, kill -9), by the guard, a process
// that waits for just that.
package tui
