// Package transcript writes what happened in a run into a file for people: Markdown
// ([Markdown]), one HTML page that needs nothing else ([HTML]), and a recording of the
// output for asciinema ([Cast]).
//
// A [Writer] takes the events of a run in order and writes as they come: its memory is
// bounded by a few events, however long the log is. What it is given was masked before it
// was logged; nothing is decoded here that the masks did not see.
//
// All text comes from a sandbox and is hostile: escape sequences are taken out, HTML is
// escaped, and Markdown can neither leave its quotation nor load a picture. A page has no
// script and may load nothing.
package transcript

import (
	"time"

	"github.com/Insights/insightscli/internal/task"
)

// About is what a transcript says of its run before the events. Secrets are masked.
type About struct {
	Run      task.ID
	State    task.State
	Title    string
	Prompt   string   // empty for a plain command
	Command  []string // of a plain command
	Agent    string
	Model    string
	Provider string
	Network  string
	Repos    []string
	Created  time.Time
}

// Writer takes the events of a run, in order.
type Writer interface {
	// Event takes one event. Its bytes are not kept.
	Event(ev task.Event) error
	// Close ends the transcript; it does not close what it was written to.
	Close() error
}

// Options say how much of a run is written.
type Options struct {
	// Full leaves nothing out. Without it, of a command's output the beginning and the end
	// are kept.
	Full bool
}
