package token

import (
	"fmt"
	"testing"

	"reprise/trace/bombtest"
)

// SECURITY.md states the bounds that the code has.
func TestBoundsAreStated(t *testing.T) {
	bombtest.Stated(t, "../../SECURITY.md", fmt.Sprintf(
		"| a chat template | %d million steps; it makes %d MiB of text, and %d bytes for each byte of the chat, at most %d MiB |",
		templateLimits.Steps/1e6, templateLimits.Bytes>>20, writtenAgain, mostWritten>>20))
}
