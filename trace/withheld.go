package trace

import (
	"fmt"
	"log/slog"
)

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
