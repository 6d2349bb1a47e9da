// Package message stands in for golang.org/x/text/message, of which the copy needs one
// method and no languages.
package message

import "fmt"

// Printer makes texts.
type Printer struct{}

// Sprintf is fmt.Sprintf.
func (*Printer) Sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }
