package runs

import (
	"fmt"
	"testing"

	"reprise/trace/bombtest"
)

// SECURITY.md states the bounds of this package as they are.
func TestBoundsAreStated(t *testing.T) {
	bombtest.Stated(t, "../../../../SECURITY.md",
		fmt.Sprintf("| all that is asked before a load | %d min, or `--timeout` where that is longer |", int(beforeLoad.Minutes())),
	)
}
