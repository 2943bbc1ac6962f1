package scrape

import (
	"fmt"
	"testing"

	"reprise/trace/bombtest"
)

// SECURITY.md states the bounds of this package as they are.
func TestBoundsAreStated(t *testing.T) {
	bombtest.Stated(t, "../../SECURITY.md",
		fmt.Sprintf("| a page of metrics | %d MiB |", maxBody>>20),
	)
}
