package trace_test

import (
	"os"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/trace"
)

// The documentation of the schema names every column and every metadata key.
func TestSchemaIsDocumented(t *testing.T) {
	b, err := os.ReadFile("../docs/schema.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range parquet.SchemaOf(trace.Request{}).Columns() {
		if !strings.Contains(string(b), "`"+c[0]+"`") {
			t.Errorf("docs/schema.md does not name the column %s", c[0])
		}
	}
	full := trace.Meta{Schema: "x", BlockSize: 1, Convention: "x", Tokenizer: "x", Template: "x", SourceFormat: "x", TimeUnit: "x",
		Timing: "x", Sessions: "x", Tier: "x", Unit: "x", Card: "x", CardHash: "x", Breakers: "x", Seed: "x", Text: "x", Corpus: "x", SharedTails: "x", Digest: "x",
		Capture: trace.RelativeCapture(0, 1)}
	full.Each(func(key, _ string) {
		if !strings.Contains(string(b), "`"+strings.TrimPrefix(key, "reprise.")+"`") {
			t.Errorf("docs/schema.md does not name the key %s", key)
		}
	})
}
