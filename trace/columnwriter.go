package trace

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"maps"
	"math/bits"
	"reflect"
	"slices"
	"unsafe"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// A columnWriter writes rows to Parquet column by column, page by page, as [columnReader] reads them. The
// library's writer of rows takes each value by reflection and asks of each null where it stands, which
// takes several times as long where most columns are null or have one value. Files have no statistics, no bounds and no
// index of pages.
type columnWriter[R any] struct {
	out    io.Writer
	at     int64 // bytes written
	rows   int64 // of the row group
	fields []outField
	places []uintptr // of the fields in a row
	footer format.FileMetaData
	meta   map[string]string
}

// An outField takes one field of rows into its column.
type outField interface {
	add(at unsafe.Pointer, stride uintptr, n int) error                   // n values that are so far apart
	flush(to func(...[]byte) error, at int64) (format.ColumnChunk, error) // ends the row group
}

const parquetPage = 1 << 20 // bytes of values, before they are compressed

// newColumnWriter begins a file. Columns whose tag names no compression have that of codec. It panics where a row type
// of the program has another kind of field, which its first test shows.
func newColumnWriter[R any](out io.Writer, codec compress.Codec) *columnWriter[R] {
	w := &columnWriter[R]{out: out, meta: map[string]string{}}
	schema := parquet.SchemaOf(new(R))
	eachField(reflect.TypeFor[R](), 0, nil, schema.Columns(), func(path []string, t reflect.Type, offset uintptr) {
		leaf, _ := schema.Lookup(path...)
		leaf.Path = path // of the library it is the last name
		w.fields, w.places = append(w.fields, outFieldOf(leaf, t, codec)), append(w.places, offset)
	})
	// What says of itself which columns there are is an empty file of the library.
	var empty bytes.Buffer
	err := parquet.NewGenericWriter[R](&empty, WriterOptions()...).Close()
	if err == nil {
		var f *parquet.File
		if f, err = parquet.OpenFile(bytes.NewReader(empty.Bytes()), int64(empty.Len())); err == nil {
			w.footer = *f.Metadata()
		}
	}
	if err != nil {
		panic(err)
	}
	return w
}

func (w *columnWriter[R]) write(pieces ...[]byte) error {
	if w.at == 0 {
		pieces = slices.Insert(pieces, 0, []byte(parquetMagic))
	}
	for _, p := range pieces {
		n, err := w.out.Write(p)
		if w.at += int64(n); err != nil {
			return err
		}
	}
	return nil
}

// add takes rows into the row group, from the one to the other. at says by the place of a field in a row where its
// values begin, and how far they are apart: 0 where all rows have the same.
func (w *columnWriter[R]) add(from, to int, at func(offset uintptr) (first unsafe.Pointer, stride uintptr)) error {
	w.rows += int64(to - from)
	for ; from < to; from += batchRows {
		for i, f := range w.fields {
			first, stride := at(w.places[i])
			if err := f.add(unsafe.Add(first, uintptr(from)*stride), stride, min(to-from, batchRows)); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes the row group.
func (w *columnWriter[R]) flush() error {
	if w.rows == 0 {
		return nil
	}
	g := format.RowGroup{NumRows: w.rows, FileOffset: max(w.at, int64(len(parquetMagic))),
		Ordinal: int16(len(w.footer.RowGroups))}
	for _, f := range w.fields {
		c, err := f.flush(w.write, max(w.at, int64(len(parquetMagic))))
		if err != nil {
			return err
		}
		g.TotalByteSize += c.MetaData.TotalUncompressedSize
		g.TotalCompressedSize += c.MetaData.TotalCompressedSize
		g.Columns = append(g.Columns, c)
	}
	w.footer.NumRows, w.footer.RowGroups, w.rows = w.footer.NumRows+w.rows, append(w.footer.RowGroups, g), 0
	return nil
}

// close writes what is left, and the footer.
func (w *columnWriter[R]) close() error {
	if err := w.flush(); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(w.meta)) {
		w.footer.KeyValueMetadata = append(w.footer.KeyValueMetadata, format.KeyValue{Key: key, Value: w.meta[key]})
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &w.footer)
	if err != nil {
		return err
	}
	return w.write(footer, binary.LittleEndian.AppendUint32(nil, uint32(len(footer))), []byte(parquetMagic))
}

// outFieldOf is the column of a field of type t.
func outFieldOf(leaf parquet.LeafColumn, t reflect.Type, codec compress.Codec) outField {
	kind := t.Kind()
	if kind == reflect.Pointer || kind == reflect.Slice {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Int64:
		return newOut(leaf, kind, codec, encoding.Encoding.EncodeInt64)
	case reflect.Int32:
		return newOut(leaf, kind, codec, encoding.Encoding.EncodeInt32)
	case reflect.Uint64:
		return newOut(leaf, kind, codec, func(e encoding.Encoding, dst []byte, v []uint64) ([]byte, error) {
			return e.EncodeInt64(dst, unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(v))), len(v)))
		})
	case reflect.Float64:
		return newOut(leaf, kind, codec, encoding.Encoding.EncodeDouble)
	case reflect.Float32:
		return newOut(leaf, kind, codec, encoding.Encoding.EncodeFloat)
	case reflect.Bool:
		return newOut(leaf, kind, codec, encodeBools)
	case reflect.String:
		return newOut(leaf, kind, codec, encodeNames)
	}
	panic("trace: a column has values of type " + t.String())
}

func encodeBools(e encoding.Encoding, dst []byte, values []bool) ([]byte, error) {
	packed := make([]byte, (len(values)+7)/8)
	for i, v := range values {
		if v {
			packed[i/8] |= 1 << (i % 8)
		}
	}
	return e.EncodeBoolean(dst, packed)
}

func encodeNames(e encoding.Encoding, dst []byte, values []string) ([]byte, error) {
	var all []byte
	ends := make([]uint32, 1, len(values)+1)
	for _, v := range values {
		all = append(all, v...)
		ends = append(ends, uint32(len(all)))
	}
	return e.EncodeByteArray(dst, all, ends)
}

// An outLeaf is a column of values of type T in a row group: the values of its next page, and the pages before.
type outLeaf[T comparable] struct {
	leaf     parquet.LeafColumn
	encoding encoding.Encoding
	codec    compress.Codec
	encode   func(e encoding.Encoding, dst []byte, values []T) ([]byte, error)
	kind     reflect.Kind // of the field: a pointer, a list, or the value itself
	most     byte         // the definition level of a value
	width    int
	string   func(T) int // bytes of a string; nil for others
	def, rep levels
	rows     int
	size     int // bytes of the values
	values   []T
	nulls    int

	dict  bool
	of    map[T]int32 // places in names
	names []T
	last  int32   // place of the last value
	at    []int32 // in place of values

	pages      []byte // that are compressed
	unpacked   int64  // bytes of all pages before that
	levels     int64  // in all pages
	allNulls   int64
	plain, zip []byte // used again
}

func newOut[T comparable](leaf parquet.LeafColumn, kind reflect.Kind, codec compress.Codec,
	encode func(encoding.Encoding, []byte, []T) ([]byte, error)) outField {
	c := &outLeaf[T]{leaf: leaf, encoding: leaf.Node.Encoding(), codec: leaf.Node.Compression(), encode: encode,
		kind: kind, most: byte(leaf.MaxDefinitionLevel)}
	if c.codec == nil {
		c.codec = codec
	}
	var zero T
	c.width = int(unsafe.Sizeof(zero))
	if _, names := any(zero).(string); names {
		c.string = func(v T) int { return len(any(v).(string)) }
	}
	switch {
	case c.encoding != nil:
		c.dict = c.encoding.Encoding() == format.RLEDictionary
	case c.string != nil:
		c.encoding = &parquet.DeltaLengthByteArray
	default:
		c.encoding = &parquet.Plain
	}
	return c
}

func (c *outLeaf[T]) add(at unsafe.Pointer, stride uintptr, n int) error {
	for i, k := 0, 0; i < n; i += k {
		switch c.kind {
		case reflect.Pointer:
			k = c.addPointers(unsafe.Add(at, uintptr(i)*stride), stride, n-i)
		case reflect.Slice:
			k = 1
			c.addList(*(*[]T)(unsafe.Add(at, uintptr(i)*stride)))
		default:
			k = c.addValues(unsafe.Add(at, uintptr(i)*stride), stride, n-i)
		}
		c.rows += k
		if c.size >= parquetPage {
			if err := c.endPage(); err != nil {
				return err
			}
		}
	}
	return nil
}

// addPointers takes the first values that are null, or all that are none, and says how many these are.
func (c *outLeaf[T]) addPointers(at unsafe.Pointer, stride uintptr, n int) (k int) {
	if *(**T)(at) == nil {
		for k = 1; k < n && (stride == 0 || *(**T)(unsafe.Add(at, uintptr(k)*stride)) == nil); k++ {
		}
		c.null(0, k)
		return k
	}
	for ; k < n; k++ {
		p := *(**T)(unsafe.Add(at, uintptr(k)*stride))
		if p == nil {
			break
		}
		c.value(*p, 1)
	}
	c.def.add(c.most, k)
	return k
}

// addValues takes the first values that are the same, or all of a column that cannot be null, and says how many these
// are.
func (c *outLeaf[T]) addValues(at unsafe.Pointer, stride uintptr, n int) (k int) {
	var zero T
	v := *(*T)(at)
	if c.most == 0 && !c.dict {
		for k = range n {
			c.value(*(*T)(unsafe.Add(at, uintptr(k)*stride)), 1)
		}
		return n
	}
	for k = 1; k < n && (stride == 0 || *(*T)(unsafe.Add(at, uintptr(k)*stride)) == v); k++ {
	}
	if c.most > 0 && v == zero {
		c.null(0, k)
		return k
	}
	c.value(v, k)
	c.def.add(c.most, k)
	return k
}

func (c *outLeaf[T]) addList(list []T) {
	c.rep.add(0, 1)
	switch n := len(list); {
	case list == nil:
		c.null(0, 1)
	case n == 0:
		c.null(c.most-1, 1)
	default:
		c.rep.add(1, n-1)
		c.def.add(c.most, n)
		if c.dict || c.string != nil {
			for _, v := range list {
				c.value(v, 1)
			}
			return
		}
		c.values = append(c.values, list...)
		c.size += n * c.width
	}
}

func (c *outLeaf[T]) null(level byte, n int) {
	c.def.add(level, n)
	c.nulls += n
}

// value takes a value n times: itself, or its place in the dictionary.
func (c *outLeaf[T]) value(v T, n int) {
	if !c.dict {
		for range n {
			c.values = append(c.values, v)
		}
		if c.size += n * c.width; c.string != nil {
			c.size += n * c.string(v)
		}
		return
	}
	if len(c.names) == 0 || c.names[c.last] != v {
		place, ok := c.of[v]
		if !ok {
			if c.of == nil {
				c.of = map[T]int32{}
			}
			place = int32(len(c.names))
			c.names, c.of[v] = append(c.names, v), place
		}
		c.last = place
	}
	for range n {
		c.at = append(c.at, c.last)
	}
	c.size += 4 * n
}

// endPage encodes the values of a page.
func (c *outLeaf[T]) endPage() (err error) {
	values := len(c.values)
	if c.dict {
		values = len(c.at)
		c.plain, err = c.encoding.EncodeInt32(c.plain, c.at)
	} else {
		c.plain, err = c.encode(c.encoding, c.plain, c.values)
	}
	if err != nil {
		return err
	}
	var rep, def []byte
	if c.leaf.MaxRepetitionLevel > 0 {
		rep = c.rep.encode(c.leaf.MaxRepetitionLevel)
	}
	if c.most > 0 {
		def = c.def.encode(c.leaf.MaxDefinitionLevel)
	}
	n := values + c.nulls
	header := format.PageHeader{Type: format.DataPageV2, DataPageHeaderV2: thrift.New(format.DataPageHeaderV2{
		NumValues: int32(n), NumNulls: int32(c.nulls), NumRows: int32(c.rows), Encoding: c.encoding.Encoding(),
		RepetitionLevelsByteLength: int32(len(rep)), DefinitionLevelsByteLength: int32(len(def)),
		IsCompressed: thrift.New(true)})}
	if c.pages, err = c.page(c.pages, &header, rep, def); err != nil {
		return err
	}
	c.levels, c.allNulls = c.levels+int64(n), c.allNulls+int64(c.nulls)
	clear(c.values) // strings
	c.values, c.at, c.def, c.rep = c.values[:0], c.at[:0], levels{list: c.def.list[:0]}, levels{list: c.rep.list[:0]}
	c.rows, c.size, c.nulls = 0, 0, 0
	return nil
}

// page appends a page: its header, levels, and what is plain, compressed.
func (c *outLeaf[T]) page(dst []byte, header *format.PageHeader, rep, def []byte) (_ []byte, err error) {
	if c.zip, err = c.codec.Encode(c.zip, c.plain); err != nil {
		return dst, err
	}
	header.UncompressedPageSize = int32(len(rep) + len(def) + len(c.plain))
	header.CompressedPageSize = int32(len(rep) + len(def) + len(c.zip))
	header.CRC = int32(crc32.Update(crc32.Update(crc32.ChecksumIEEE(rep), crc32.IEEETable, def),
		crc32.IEEETable, c.zip))
	head, err := thrift.Marshal(new(thrift.CompactProtocol), header)
	c.unpacked += int64(len(head)) + int64(header.UncompressedPageSize)
	return append(append(append(append(dst, head...), rep...), def...), c.zip...), err
}

func (c *outLeaf[T]) flush(to func(...[]byte) error, at int64) (chunk format.ColumnChunk, err error) {
	if c.rows > 0 {
		if err := c.endPage(); err != nil {
			return chunk, err
		}
	}
	m := &chunk.MetaData
	m.Type, m.Codec = format.Type(c.leaf.Node.Type().Kind()), c.codec.CompressionCodec()
	m.PathInSchema, m.NumValues, m.DataPageOffset = c.leaf.Path, c.levels, at
	m.Encoding = []format.Encoding{c.encoding.Encoding()}
	if c.leaf.MaxDefinitionLevel > 0 && !c.dict {
		m.Encoding = append(m.Encoding, format.RLE)
	}
	var dict []byte
	if c.dict {
		m.Encoding = []format.Encoding{format.Plain, format.RLE, format.RLEDictionary}
		if c.plain, err = c.encode(&parquet.Plain, c.plain, c.names); err != nil {
			return chunk, err
		}
		header := format.PageHeader{Type: format.DictionaryPage,
			DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{
				NumValues: int32(len(c.names)), Encoding: format.Plain})}
		if dict, err = c.page(nil, &header, nil, nil); err != nil {
			return chunk, err
		}
		m.DictionaryPageOffset, m.DataPageOffset = at, at+int64(len(dict))
	}
	m.Statistics.NullCount = c.allNulls // where it is not said, some readers suppose none
	slices.Sort(m.Encoding)
	m.TotalCompressedSize, m.TotalUncompressedSize = int64(len(dict)+len(c.pages)), c.unpacked
	err = to(dict, c.pages)
	clear(c.of)
	c.names, c.pages, c.unpacked, c.levels, c.allNulls = c.names[:0], c.pages[:0], 0, 0, 0
	return chunk, err
}

// Levels are definition or repetition levels. Most columns have one for all rows.
type levels struct {
	n    int  // that are the first
	of   byte // the first
	list []byte
}

func (l *levels) add(level byte, n int) {
	if n <= 0 {
		return
	}
	if len(l.list) == 0 {
		if l.n == 0 {
			l.of = level
		}
		if l.of == level {
			l.n += n
			return
		}
		l.list = append(l.list, bytes.Repeat([]byte{l.of}, l.n)...)
	}
	for range n {
		l.list = append(l.list, level)
	}
}

// encode gives the levels in runs.
func (l *levels) encode(most int) []byte {
	if len(l.list) == 0 {
		return append(binary.AppendUvarint(nil, uint64(l.n)<<1), l.of)
	}
	out, err := (&rle.Encoding{BitWidth: bits.Len8(uint8(most))}).EncodeLevels(nil, l.list)
	if err != nil {
		panic(err) // a width that is none
	}
	return out
}
