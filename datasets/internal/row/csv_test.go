package row

import (
	"errors"
	"io"
	"strings"
	"testing"

	"reprise/datasets/internal/fault"
)

// A row that is too long is refused.
func TestLongRow(t *testing.T) {
	in := io.MultiReader(strings.NewReader("a,b\n\"\n"), strings.NewReader(strings.Repeat("x", 300_000)))
	c, err := NewCSV(in, CSVOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.in.max = 200_000
	var f *fault.Fault
	if _, err := c.Next(); !errors.As(err, &f) || !f.Stop || !strings.Contains(f.Reason, "longer than 64 MiB") ||
		f.Line == 0 {
		t.Error(err)
	}
}
