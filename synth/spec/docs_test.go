package spec_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The YAML that docs/workloads.md prints runs as it is; a block without arrivals
// is the part of a specification that the text above it speaks of.
func TestSpecsOfTheDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "workloads.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 2 {
		t.Fatalf("%d blocks of YAML", len(blocks))
	}
	whole := blocks[0][1]
	for i, b := range blocks {
		spec := b[1]
		if !strings.Contains(spec, "arrivals:") {
			spec = regexp.MustCompile(`(?m)^sessions:.*\n`).ReplaceAllString(whole, "") + spec
		}
		rows, s := rowsOf(t, spec, 1)
		if int64(len(rows)) != s.Requests {
			t.Errorf("block %d: %d rows, want %d", i, len(rows), s.Requests)
		}
	}
}
