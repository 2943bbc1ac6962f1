package trace

import (
	"fmt"
	"log/slog"
)

// Text holds prompt text or another string that must not leave the process.
//
// Its one field is unexported and every formatter and encoder of the standard
// library prints a redaction. The field is a pointer because fmt does not call
// the methods of a value that sits in an unexported field of another struct: it
// would print a plain string there, and prints an address instead. Two Texts
// made by one call of NewText are equal under ==; equal strings are not.
type Text struct {
	withheld
	s *string
}

// NewText wraps s. The zero Text is the empty string.
func NewText(s string) Text { return Text{s: &s} }

// Reveal returns the string. Only package anonymize, which turns text into
// counts and keyed ids, calls it; a test holds that.
func (t Text) Reveal() string {
	if t.s == nil {
		return ""
	}
	return *t.s
}

// Len returns the length in bytes.
func (t Text) Len() int { return len(t.Reveal()) }

const redaction = "[withheld]"

// withheld is embedded by the types that are as secret as prompt text. Its
// methods are promoted, so every formatter, encoder and log handler of the
// standard library prints a redaction in place of the whole value.
type withheld struct{}

// String withholds the value.
func (withheld) String() string { return redaction }

// GoString withholds the value from %#v.
func (withheld) GoString() string { return redaction }

// Format withholds the value under every verb.
func (withheld) Format(f fmt.State, _ rune) { fmt.Fprint(f, redaction) }

// MarshalText withholds the value; encoding/xml and map keys use it.
func (withheld) MarshalText() ([]byte, error) { return []byte(redaction), nil }

// MarshalJSON withholds the value.
func (withheld) MarshalJSON() ([]byte, error) { return []byte(`"` + redaction + `"`), nil }

// MarshalBinary withholds the value; encoding/gob uses it.
func (withheld) MarshalBinary() ([]byte, error) { return []byte(redaction), nil }

// LogValue withholds the value from log/slog.
func (withheld) LogValue() slog.Value { return slog.StringValue(redaction) }
