package audit

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"reprise/trace"
)

// plainFile is a Parquet file of two columns that repeats nothing, open as an output.
func plainFile(t *testing.T) *Output {
	t.Helper()
	type row struct {
		ID   int64  `parquet:"id"`
		Name string `parquet:"name,dict"`
	}
	path := filepath.Join(t.TempDir(), "t.parquet")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := parquet.NewGenericWriter[row](file, append(trace.WriterOptions(), parquet.DataPageStatistics(false), parquet.SkipPageBounds("id"), parquet.SkipPageBounds("name"))...)
	if _, err := w.Write([]row{{7, "x"}, {9, "y"}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	o, err := OpenOutput(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// Every place of the footer that tells of values is named, and nothing else is.
func TestFootersThatTellOfValues(t *testing.T) {
	const bad = "the file repeats values where readers of its columns do not look, or tells who wrote it"
	for name, c := range map[string]struct {
		change func(m *format.FileMetaData, id, name *format.ColumnMetaData)
		want   string
	}{
		"nothing":                   {func(*format.FileMetaData, *format.ColumnMetaData, *format.ColumnMetaData) {}, ""},
		"old minimum":               {func(_ *format.FileMetaData, id, _ *format.ColumnMetaData) { id.Statistics.Min = []byte{1} }, "statistics of columns"},
		"old maximum":               {func(_ *format.FileMetaData, id, _ *format.ColumnMetaData) { id.Statistics.Max = []byte{1} }, "statistics of columns"},
		"minimum":                   {func(_ *format.FileMetaData, id, _ *format.ColumnMetaData) { id.Statistics.MinValue = []byte{0} }, "statistics of columns"},
		"maximum":                   {func(_ *format.FileMetaData, id, _ *format.ColumnMetaData) { id.Statistics.MaxValue = []byte{0} }, "statistics of columns"},
		"distinct values":           {func(_ *format.FileMetaData, id, _ *format.ColumnMetaData) { id.Statistics.DistinctCount = 1 }, "statistics of columns"},
		"nulls, which readers need": {func(_ *format.FileMetaData, id, _ *format.ColumnMetaData) { id.Statistics.NullCount = 1 }, ""},
		"filter":                    {func(_ *format.FileMetaData, id, _ *format.ColumnMetaData) { id.BloomFilterOffset = 1 }, "Bloom filters"},
		"dictionary of numbers": {func(_ *format.FileMetaData, id, _ *format.ColumnMetaData) {
			id.DictionaryPageOffset = id.DataPageOffset
		}, "dictionaries of numbers"},
		"a dictionary's encoding": {func(_ *format.FileMetaData, id, _ *format.ColumnMetaData) {
			id.Encoding = []format.Encoding{format.RLEDictionary}
		}, "dictionaries of numbers"},
		"the old dictionary encoding": {func(_ *format.FileMetaData, id, _ *format.ColumnMetaData) { id.Encoding = []format.Encoding{2} }, "dictionaries of numbers"},
		"a dictionary of words": {func(_ *format.FileMetaData, _, name *format.ColumnMetaData) {
			name.Encoding = []format.Encoding{format.RLEDictionary}
		}, ""},
		"creator": {func(m *format.FileMetaData, _, _ *format.ColumnMetaData) { m.CreatedBy = "jane" }, "a creator of another name"},
	} {
		o := plainFile(t)
		m := o.Parquet.Metadata()
		c.change(m, &m.RowGroups[0].Columns[0].MetaData, &m.RowGroups[0].Columns[1].MetaData)
		want := passed(Figures{"columns": 2}, "no statistics, bounds, Bloom filters or dictionaries of numbers, and the constant creator")
		if c.want != "" {
			want = failed(Figures{"found": []string{c.want}}, bad)
		}
		if f := container(t.Context(), &Case{Output: o}); !reflect.DeepEqual(f, want) {
			t.Errorf("%s: %+v, want %+v", name, f, want)
		}
	}
	if f := container(t.Context(), &Case{Output: textOutput(t, "x")}); !reflect.DeepEqual(f, skipped("the output is no Parquet")) {
		t.Errorf("a text: %+v", f)
	}
}

// A file whose footer leads elsewhere than to pages is not judged.
func TestFootersThatLeadNowhere(t *testing.T) {
	for name, change := range map[string]func(o *Output, id *format.ColumnMetaData){
		"before the file":        func(_ *Output, id *format.ColumnMetaData) { id.DataPageOffset = -1 },
		"less than no bytes":     func(_ *Output, id *format.ColumnMetaData) { id.TotalCompressedSize = -1 },
		"beyond the file":        func(o *Output, id *format.ColumnMetaData) { id.TotalCompressedSize = o.size - id.DataPageOffset + 1 },
		"into the next column":   func(_ *Output, id *format.ColumnMetaData) { id.TotalCompressedSize++ },
		"into a page":            func(_ *Output, id *format.ColumnMetaData) { id.TotalCompressedSize-- },
		"to bytes that are none": func(_ *Output, id *format.ColumnMetaData) { id.DataPageOffset++ },
	} {
		o := plainFile(t)
		change(o, &o.Parquet.Metadata().RowGroups[0].Columns[0].MetaData)
		if f := container(t.Context(), &Case{Output: o}); !reflect.DeepEqual(f, broken(errDecode)) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	o := plainFile(t)
	o.file.Close()
	if f := container(t.Context(), &Case{Output: o}); !f.broken {
		t.Errorf("a closed file: %+v", f)
	}
	// Dictionary and data pages are each looked at once.
	pages := map[format.PageType]int{}
	if err := eachHeader(plainFile(t).Parquet, func(h *format.PageHeader) { pages[h.Type]++ }); err != nil ||
		pages[format.DictionaryPage] != 1 || pages[format.DataPage]+pages[format.DataPageV2] != 2 {
		t.Errorf("%v, %v", pages, err)
	}
}
