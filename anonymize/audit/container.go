package audit

import (
	"context"
	"io"
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
	f := c.Output.Parquet
	if f == nil {
		return skipped("the output is no Parquet")
	}
	found := map[string]int{}
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
			if m.Type != format.ByteArray && (m.DictionaryPageOffset != 0 || slices.Contains(m.Encoding, format.RLEDictionary) || slices.Contains(m.Encoding, format.PlainDictionary)) {
				found["dictionaries of numbers"]++
			}
		}
	}
	for _, x := range f.ColumnIndexes() {
		// The library writes zeros where it is told to leave bounds out.
		if slices.ContainsFunc(slices.Concat(x.MinValues, x.MaxValues), func(b []byte) bool { return strings.Trim(string(b), "\x00") != "" }) {
			found["bounds in the column index"]++
		}
	}
	if err := eachHeader(f, func(h *format.PageHeader) {
		for _, s := range []*format.Statistics{&h.DataPageHeader.V.Statistics, &h.DataPageHeaderV2.V.Statistics} {
			if bounded(s) {
				found["bounds in page headers"]++
			}
		}
	}); err != nil {
		return broken(err)
	}
	fig := Figures{}
	var names []string
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	if f.Metadata().CreatedBy != createdBy {
		names = append(names, "a creator of another name")
	}
	if len(names) > 0 {
		fig["found"] = names
		return failed(fig, "the file repeats values where readers of its columns do not look, or tells who wrote it")
	}
	fig["columns"] = len(f.Schema().Columns())
	return passed(fig, "no statistics, bounds, Bloom filters or dictionaries of numbers, and the constant creator")
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
				if err := thrift.NewDecoder(r).Decode(&h); err != nil || h.CompressedPageSize < 0 || r.BytesRead()+int(h.CompressedPageSize) > len(chunk) {
					return errDecode
				}
				do(&h)
				chunk = chunk[r.BytesRead()+int(h.CompressedPageSize):]
			}
		}
	}
	return nil
}
