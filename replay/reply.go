package replay

import (
	"fmt"
	"log/slog"
)

// A Reply is what a server wrote. It stays in memory, for the next turn's
// prompt: every formatter, encoder and log handler of the standard library
// prints a redaction in its place.
type Reply struct{ said *said }

// said is a piece of a conversation, as text or as token ids. It is kept behind
// a pointer, since fmt would print an unexported field of another struct.
type said struct {
	text []byte
	ids  []uint32
}

func (s *said) bytes() int64 { return int64(len(s.text) + 4*len(s.ids)) }

// Set takes a copy of the text, and of its token ids where the server told them.
func (r *Reply) Set(text []byte, ids []uint32) {
	r.said = &said{append([]byte(nil), text...), append([]uint32(nil), ids...)}
}

const withheld = "[withheld]"

// String withholds the reply.
func (Reply) String() string { return withheld }

// Format withholds it under every verb.
func (Reply) Format(f fmt.State, _ rune) { fmt.Fprint(f, withheld) }

// MarshalText withholds it from encoders.
func (Reply) MarshalText() ([]byte, error) { return []byte(withheld), nil }

// MarshalJSON withholds it.
func (Reply) MarshalJSON() ([]byte, error) { return []byte(`"` + withheld + `"`), nil }

// MarshalBinary withholds it.
func (Reply) MarshalBinary() ([]byte, error) { return []byte(withheld), nil }

// LogValue withholds it from log/slog.
func (Reply) LogValue() slog.Value { return slog.StringValue(withheld) }
