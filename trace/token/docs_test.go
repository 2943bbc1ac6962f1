package token

import (
	"os"
	"strings"
	"testing"
)

// The page on the architecture lists the templates that there are.
func TestTemplatesInDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range TemplateTable() {
		if line := "| `" + row[0] + "` | " + row[1] + " |\n"; !strings.Contains(string(page), line) {
			t.Errorf("docs/architecture.md lacks the line\n%s", line)
		}
	}
}
