// Package quiet keeps the terminal libraries from talking to the terminal when the
// program starts. The initialisation of bubbletea v1 asks the terminal for its background
// and waits five seconds for one that does not answer, whatever the command is.
//
// Packages that are ready are initialised in the order of their import paths, and
// "github.com/Insights" comes before "github.com/charmbracelet": so this package says,
// before bubbletea asks, what the background is. Nothing of package tui depends on the
// answer: its colours are those of the terminal's own palette. It can go with bubbletea v2,
// which asks nothing.
package quiet

import "github.com/charmbracelet/lipgloss"

func init() { lipgloss.SetHasDarkBackground(true) }
