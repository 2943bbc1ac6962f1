package result

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// A journal with the columns of another version is refused, with the name of that version.
func TestOtherColumns(t *testing.T) {
	for version, want := range map[string]string{
		"0.4.0":                 `with the columns of Reprise "0.4.0": read it`,
		"":                      "with the columns of another version of Reprise",
		strings.Repeat("9", 65): "with the columns of another version of Reprise",
		"a\nb":                  `with the columns of Reprise "a\nb": read it`,
	} {
		doc, err := (&Run{Schema: Schema, Version: version}).encode()
		if err != nil {
			t.Fatal(err)
		}
		now := journalSchema(doc)
		about := now.Metadata()
		var b bytes.Buffer
		if err := ipc.NewWriter(&b, ipc.WithSchema(arrow.NewSchema(now.Fields()[:now.NumFields()-1], &about))).Close(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "r.parquet.journal")
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want … %s", version, err, want)
		}
	}
}
