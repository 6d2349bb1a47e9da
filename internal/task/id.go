package task

import (
	"crypto/rand"
	"fmt"
	"strings"
)

// ID names a task or a run: a random UUID in its canonical lower-case form.
// Random rather than time-ordered, so that a short prefix tells two runs apart.
type ID string

// NewID returns a fresh random ID.
func NewID() ID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return ID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

// Short returns the first eight characters, which is what people are shown and
// may type.
func (id ID) Short() string {
	if len(id) <= 8 {
		return string(id)
	}
	return string(id[:8])
}

// Valid reports whether id has the canonical form. IDs become path elements, so
// everything read back from outside is checked with it first.
func (id ID) Valid() bool {
	if len(id) != 36 {
		return false
	}
	for i, r := range string(id) {
		switch i {
		case 8, 13, 18, 23:
			if r != '-' {
				return false
			}
		default:
			if !strings.ContainsRune("0123456789abcdef", r) {
				return false
			}
		}
	}
	return true
}
