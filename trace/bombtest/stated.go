package bombtest

import (
	"os"
	"strings"
	"testing"
)

// Stated holds that rows of the table of bounds in SECURITY.md, which is at a path, are as the code
// has them.
func Stated(t *testing.T, security string, rows ...string) {
	t.Helper()
	doc, err := os.ReadFile(security)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if !strings.Contains(string(doc), row) {
			t.Errorf("SECURITY.md lacks this row:\n%s", row)
		}
	}
}
