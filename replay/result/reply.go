package result

import (
	"fmt"
	"log/slog"
)

// A Reply is what a server wrote. It stays in memory, for the next turn's
// prompt: every formatter, encoder and log handler of the standard library
// prints a redaction in its place.
type Reply struct{ written *written }

// written is what a Reply withholds. It is kept by a pointer, since fmt would print
// an unexported field of another struct.
type written struct {
	text []byte
	ids  []uint32
}

// Set takes a copy of the text, and of its token ids where the server told them.
func (r *Reply) Set(text []byte, ids []uint32) {
	r.written = &written{append([]byte(nil), text...), append([]uint32(nil), ids...)}
}

// Take returns what was set, and leaves the Reply empty. Both are nil where nothing was.
func (r *Reply) Take() (text []byte, ids []uint32) {
	if r.written == nil {
		return nil, nil
	}
	text, ids = r.written.text, r.written.ids
	r.written = nil
	return text, ids
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
