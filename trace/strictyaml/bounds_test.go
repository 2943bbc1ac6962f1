package strictyaml

import (
	"fmt"
	"testing"

	"reprise/trace/bombtest"
)

// SECURITY.md states the bounds of this package as they are.
func TestBoundsAreStated(t *testing.T) {
	bombtest.Stated(t, "../../SECURITY.md",
		fmt.Sprintf("| a YAML file | %d keys, items and anchors, %d levels, %d aliases |", maxKeys, maxDepth, maxAliases),
	)
}
