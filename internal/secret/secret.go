// Package secret keeps secret values from being seen: [String] is a value that
// prints as "[hidden]" everywhere, and [Masker] replaces known values and
// well-known token shapes in a stream of bytes, also where a chunk border cuts
// one in two.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// Hidden is what stands where a secret stood.
const Hidden = "[hidden]"

// String is a secret value. fmt, encoding/json and log/slog all print [Hidden];
// only [String.Reveal] gives the value.
type String struct{ v string }

// New makes v a secret.
func New(v string) String { return String{v} }

// Reveal returns the value. Call it where the value is used, never to pass it on.
func (s String) Reveal() string { return s.v }

// Empty reports whether there is no value.
func (s String) Empty() bool { return s.v == "" }

// String implements fmt.Stringer.
func (String) String() string { return Hidden }

// Format implements fmt.Formatter. A verb that is not for text, such as %d, would show
// the value in fmt's complaint about it.
func (String) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Hidden) }

// MarshalText implements encoding.TextMarshaler, which encoding/json uses too.
func (String) MarshalText() ([]byte, error) { return []byte(Hidden), nil }

// LogValue implements slog.LogValuer.
func (String) LogValue() slog.Value { return slog.StringValue(Hidden) }
