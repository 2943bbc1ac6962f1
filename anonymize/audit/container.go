package audit

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// container looks at what a Parquet file repeats of its values where readers of
// the columns do not look: bounds in the footer, in page headers and in the column
// index, Bloom filters, and dictionaries of numbers.
func container(_ context.Context, c *Case) Finding {
	if !c.Output.isParquet() {
		return skipped("the output is no Parquet")
	}
	found, columns := map[string]int{}, 0
	if err := c.Output.eachFile(func(f *parquet.File) error {
		columns = len(f.Schema().Columns())
		return repeated(f, found)
	}); err != nil {
		return broken(err)
	}
	names := slices.Sorted(maps.Keys(found))
	if len(names) > 0 {
		return failed(Figures{"found": names},
			"the file repeats values where readers of its columns do not look, or tells who wrote it")
	}
	return passed(Figures{"columns": columns},
		"no statistics, bounds, Bloom filters or dictionaries of numbers, and the constant creator")
}

// repeated counts where a file repeats its values.
func repeated(f *parquet.File, found map[string]int) error {
	if f.Metadata().CreatedBy != createdBy {
		found["a creator of another name"]++
	}
	for _, g := range f.Metadata().RowGroups {
		for _, col := range g.Columns {
			m := &col.MetaData
			s := &m.Statistics
			if bounded(s) || s.DistinctCount > 0 {
				found["statistics of columns"]++
			}
			if m.BloomFilterOffset != 0 {
				found["Bloom filters"]++
			}
			//lint:ignore SA1019 older writers still have PlainDictionary
			old := slices.Contains(m.Encoding, format.PlainDictionary)
			dictionary := old || m.DictionaryPageOffset != 0 || slices.Contains(m.Encoding, format.RLEDictionary)
			if dictionary && m.Type != format.ByteArray {
				found["dictionaries of numbers"]++
			}
		}
	}
	for _, x := range f.ColumnIndexes() {
		// The library writes zeros where it is told to leave bounds out.
		if slices.ContainsFunc(slices.Concat(x.MinValues, x.MaxValues),
			func(b []byte) bool { return strings.Trim(string(b), "\x00") != "" }) {
			found["bounds in the column index"]++
		}
	}
	return eachHeader(f, func(h *format.PageHeader) {
		for _, s := range []*format.Statistics{&h.DataPageHeader.V.Statistics, &h.DataPageHeaderV2.V.Statistics} {
			if bounded(s) {
				found["bounds in page headers"]++
			}
		}
	})
}

func bounded(s *format.Statistics) bool {
	return len(s.Min)+len(s.Max)+len(s.MinValue)+len(s.MaxValue) > 0
}

// eachHeader calls do for the header of every page. The library gives pages, and
// not what their headers say.
func eachHeader(f *parquet.File, do func(*format.PageHeader)) (err error) {
	defer guard(&err)
	for _, g := range f.Metadata().RowGroups {
		for _, col := range g.Columns {
			m := &col.MetaData
			from := m.DataPageOffset
			if m.DictionaryPageOffset > 0 {
				from = min(from, m.DictionaryPageOffset)
			}
			if from < 0 || m.TotalCompressedSize < 0 || m.TotalCompressedSize > f.Size()-from {
				return errDecode
			}
			chunk := make([]byte, m.TotalCompressedSize)
			if _, err := f.ReadAt(chunk, from); err != nil && err != io.EOF {
				return err
			}
			for len(chunk) > 0 {
				var h format.PageHeader
				r := new(thrift.CompactProtocol).NewReaderFromBytes(chunk)
				if err := thrift.NewDecoder(r).Decode(&h); err != nil || h.CompressedPageSize < 0 ||
					r.BytesRead()+int(h.CompressedPageSize) > len(chunk) {
					return errDecode
				}
				do(&h)
				chunk = chunk[r.BytesRead()+int(h.CompressedPageSize):]
			}
		}
	}
	return nil
}
