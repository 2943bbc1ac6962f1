package block

import (
	"crypto/rand"
	"fmt"
	"io"
)

// A Key is the secret of block ids. In its place package fmt, encoding/json and log/slog print a redaction, but for two cases
// in which fmt calls no method: a key in an unexported field, for which a struct should hold a function that returns it, as
// [Hasher] does; and the verbs %p and %w, wrong for it, which go vet refuses.
type Key [32]byte

const redacted = "block.Key(redacted)"

// NewKey draws a key from the operating system's generator.
func NewKey() (Key, error) {
	var k Key
	if _, err := io.ReadFull(rand.Reader, k[:]); err != nil {
		return Key{}, fmt.Errorf("draw a key for block ids: %w", err)
	}
	return k, nil
}

// String implements [fmt.Stringer].
func (Key) String() string { return redacted }

// GoString implements [fmt.GoStringer].
func (Key) GoString() string { return redacted }

// Format implements [fmt.Formatter], so that no verb prints the key, %x and %d included.
func (Key) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) }

// MarshalText implements [encoding.TextMarshaler], which encoding/json and log/slog use.
func (Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }
