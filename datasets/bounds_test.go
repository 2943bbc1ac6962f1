package datasets

import (
	"fmt"
	"testing"

	"reprise/datasets/internal/record"
	"reprise/trace/bombtest"
)

// SECURITY.md states the bounds of this package as they are.
func TestBoundsAreStated(t *testing.T) {
	bombtest.Stated(t, "../SECURITY.md",
		fmt.Sprintf("| a record of a log | %d MiB, as text or as a row of Parquet or Arrow, and %d million values "+
			"of JSON or Arrow;", record.MaxBytes>>20, record.MaxValues>>20),
	)
}
