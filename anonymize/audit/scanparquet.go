package audit

import (
	"errors"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Parquet looks through a Parquet file: all its bytes, among them the footer, the
// page headers and the indexes, which are not compressed; and all that is decoded
// of them: values, dictionaries, bounds, key-value metadata, names. A scan of the
// bytes alone would see nothing of compressed pages.
func (s *Scanner) Parquet(h *Hits, f *parquet.File) (err error) {
	defer guard(&err)
	if err := s.Bytes(h, "bytes of the file", io.NewSectionReader(f, 0, f.Size())); err != nil {
		return err
	}
	m := f.Metadata()
	s.text(h, "created by", m.CreatedBy)
	for _, kv := range m.KeyValueMetadata {
		s.text(h, "metadata", kv.Key)
		s.text(h, "metadata", kv.Value)
	}
	for _, e := range m.Schema {
		s.text(h, "names of columns", e.Name)
	}
	for _, g := range m.RowGroups {
		for _, c := range g.Columns {
			s.bounds(h, "statistics of columns", c.MetaData.Type,
				[][]byte{c.MetaData.Statistics.Min, c.MetaData.Statistics.Max,
					c.MetaData.Statistics.MinValue, c.MetaData.Statistics.MaxValue})
		}
	}
	for i, x := range f.ColumnIndexes() {
		if i < len(m.RowGroups[0].Columns)*len(m.RowGroups) {
			kind := m.RowGroups[0].Columns[i%len(m.RowGroups[0].Columns)].MetaData.Type
			s.bounds(h, "column index", kind, append(append([][]byte{}, x.MinValues...), x.MaxValues...))
		}
	}
	return eachChunk(f, func(c parquet.ColumnChunk) error { return s.chunk(h, c) })
}

func (s *Scanner) text(h *Hits, where, text string) {
	w := s.walk(h, where)
	w.Write([]byte(text))
	w.endNumber()
}

// bounds looks at encoded values.
func (s *Scanner) bounds(h *Hits, where string, kind format.Type, values [][]byte) {
	for _, b := range values {
		if len(b) == 0 {
			continue
		}
		if k := parquet.Kind(kind); k != parquet.ByteArray && k != parquet.FixedLenByteArray {
			s.value(h, where, k.Value(b))
			continue
		}
		s.text(h, where, string(b))
	}
}

// chunk looks at the dictionary and the values of a column chunk.
func (s *Scanner) chunk(h *Hits, c parquet.ColumnChunk) error {
	return eachValue(c, func(dictionary bool, v parquet.Value) {
		where := "values"
		if dictionary {
			where = "dictionaries"
		}
		s.value(h, where, v)
	})
}

func (s *Scanner) value(h *Hits, where string, v parquet.Value) {
	switch {
	case v.IsNull():
	case v.Kind() == parquet.Int32, v.Kind() == parquet.Int64:
		s.Value(h, where, v.Uint64())
	case v.Kind() == parquet.Float:
		s.float(h, where, float64(v.Float()))
	case v.Kind() == parquet.Double:
		s.float(h, where, v.Double())
	case v.Kind() == parquet.ByteArray, v.Kind() == parquet.FixedLenByteArray:
		s.text(h, where, string(v.ByteArray()))
	}
}

func (s *Scanner) float(h *Hits, where string, v float64) {
	if v >= 0 && v < 1<<63 && v == math.Trunc(v) {
		s.Value(h, where, uint64(v))
	}
}

var errDecode = errors.New("a column of the file does not decode")

// guard makes an error of a panic of the Parquet library, which some broken files
// cause.
func guard(err *error) {
	if recover() != nil {
		*err = errDecode
	}
}

// eachChunk calls do for every column chunk.
func eachChunk(f *parquet.File, do func(parquet.ColumnChunk) error) (err error) {
	defer guard(&err)
	for _, g := range f.RowGroups() {
		for _, c := range g.ColumnChunks() {
			if err := do(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachValue calls do for the values of a column chunk, and before those of a page
// for its dictionary, once.
func eachValue(c parquet.ColumnChunk, do func(dictionary bool, v parquet.Value)) (err error) {
	pages := c.Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	values := make([]parquet.Value, 1024)
	seen := false
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return errDecode
		}
		if d := page.Dictionary(); d != nil && !seen {
			seen = true
			for i := range d.Len() {
				do(true, d.Index(int32(i)))
			}
		}
		for r := page.Values(); ; {
			n, err := r.ReadValues(values)
			for _, v := range values[:n] {
				do(false, v)
			}
			if err == io.EOF {
				break
			}
			if err != nil || n == 0 { // a broken page may give nothing for ever
				return errDecode
			}
		}
		parquet.Release(page)
	}
}
