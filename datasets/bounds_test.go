package datasets

import (
	"fmt"
	"testing"

	"reprise/datasets/internal/record"
	"reprise/trace/arrowipc"
	"reprise/trace/bombtest"
)

// SECURITY.md states the bounds of this package as they are.
func TestBoundsAreStated(t *testing.T) {
	bombtest.Stated(t, "../SECURITY.md",
		fmt.Sprintf("| a record of a log | %d MiB, as text or as a row of Parquet or Arrow, and %d million values "+
			"of JSON or Arrow;", record.MaxBytes>>20, record.MaxValues>>20),
		fmt.Sprintf("| a batch of Arrow | %d MiB, or four times its size in the file where that is more, and %d GiB in the file; in an archive %d MiB |",
			arrowipc.MaxBatch>>20, arrowipc.MaxPlainBatch>>30, arrowipc.MaxBatch>>20),
		fmt.Sprintf("| what comes out of gzip or zstd | %d,000 times what went in, beyond %d MiB; a window of %d MiB |", bombRatio/1000, bombBytes>>20, maxWindow>>20),
	)
}
