package token

import (
	"os"
	"strings"
	"testing"
)

// The page on templates lists the templates that there are.
func TestTemplatesInDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/templates.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range templateTable() {
		if line := "| `" + row[0] + "` | " + row[1] + " |\n"; !strings.Contains(string(page), line) {
			t.Errorf("docs/templates.md lacks the line\n%s", line)
		}
	}
}

// templateTable lists the templates that are built in, each with what it is.
func templateTable() [][2]string {
	var table [][2]string
	for _, f := range styles() {
		table = append(table, [2]string{f.name, f.about})
	}
	return append(table, [2]string{autoName, "one of these for each request, by the name of its model; none where that is unknown"})
}
