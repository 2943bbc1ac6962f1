package audit

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"reprise/trace"
)

// A trace has none of what a Parquet writer adds by default, and the
// check sees each of these when it is there.
func TestContainer(t *testing.T) {
	if f := found(t, caseOf(t, bug{}, traffic(8, 12, 200)), "container")["container"]; f.Status != Pass {
		t.Errorf("%s %v", f.Why, f.Figures)
	}
	type row struct {
		ID   int64  `parquet:"id"`
		Dict int64  `parquet:"dict,dict"`
		Name string `parquet:"name,dict"`
	}
	ours := func(skip ...string) []parquet.WriterOption {
		opts := []parquet.WriterOption{parquet.Compression(&zstd.Codec{}), parquet.DataPageStatistics(false), parquet.CreatedBy("reprise", "1", "trace")}
		for _, column := range skip {
			opts = append(opts, parquet.SkipPageBounds(column))
		}
		return opts
	}
	for name, c := range map[string]struct {
		opts []parquet.WriterOption
		want []string
	}{
		"dictionary of ids": {ours("id", "dict", "name"), []string{"dictionaries of numbers"}},
		"bounds":            {ours("dict", "name"), []string{"bounds in the column index", "dictionaries of numbers", "statistics of columns"}},
		"statistics":        {append(ours("dict", "name"), parquet.DataPageStatistics(true)), []string{"bounds in page headers"}},
		"bloom filter":      {append(ours("id", "dict", "name"), parquet.BloomFilters(parquet.SplitBlockFilter(10, "id"))), []string{"Bloom filters"}},
		"creator":           {append(ours("id", "dict", "name"), parquet.CreatedBy("somebody", "1", "x")), []string{"a creator of another name"}},
	} {
		path := filepath.Join(t.TempDir(), "t.parquet")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := parquet.NewGenericWriter[row](file, c.opts...)
		if _, err := w.Write([]row{{7, 8, "x"}, {9, 8, "y"}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		file.Close()
		o, err := OpenOutput(path)
		if err != nil {
			t.Fatal(err)
		}
		f := found(t, &Case{Output: o}, "container")["container"]
		got, _ := f.Figures["found"].([]string)
		for _, want := range c.want {
			if f.Status != Fail || !slices.Contains(got, want) {
				t.Errorf("%s: %s, found %v, want %s", name, f.Status, got, want)
			}
		}
		o.Close()
	}
}

// The writers' own dictionaries are of words alone.
func TestSchemaHasNoDictionariesOfNumbers(t *testing.T) {
	schema := parquet.SchemaOf(new(trace.Request))
	for _, path := range schema.Columns() {
		leaf, _ := schema.Lookup(path...)
		if e := leaf.Node.Encoding(); leaf.Node.Type().Kind() != parquet.ByteArray && e != nil && e.Encoding().String() == "RLE_DICTIONARY" {
			t.Errorf("column %v of numbers has a dictionary", path)
		}
	}
}
