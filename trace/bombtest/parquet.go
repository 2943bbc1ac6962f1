// Package bombtest makes files of some KiB that claim or unpack to gigabytes, for the tests of
// everything that reads files of their kind. What is added here, all of them must refuse. It also
// holds the table of bounds in SECURITY.md against the code.
//
// # Files
//
//   - parquet.go: bombs of Parquet
//   - stated.go: the table of bounds
package bombtest

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// A Bomb is a file.
type Bomb struct {
	Name string
	Data []byte
}

// Parquet puts each kind of bomb into a sound Parquet file, in place of the first page of the
// columns whose paths begin with a name, or of the first column of each type where none is named.
func Parquet(sound []byte, columns ...string) (bombs []Bomb) {
	meta := footerOf(sound)
	seen := map[format.Type]bool{}
	levels := levelsOf(meta.Schema)
	for i, c := range meta.RowGroups[0].Columns {
		path := strings.Join(c.MetaData.PathInSchema, ".")
		wanted := slices.ContainsFunc(columns, func(name string) bool {
			return path == name || strings.HasPrefix(path, name+".")
		})
		if wanted || len(columns) == 0 && !seen[c.MetaData.Type] {
			seen[c.MetaData.Type] = true
			for _, p := range pages(c.MetaData.Type, levels[i]) {
				bombs = append(bombs, Bomb{path + ": " + p.name, withPages(sound, i, p)})
			}
		}
	}
	return append(bombs, footers(sound)...)
}

func footerOf(file []byte) (m format.FileMetaData) {
	n := int(binary.LittleEndian.Uint32(file[len(file)-8:]))
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), file[len(file)-8-n:len(file)-8], &m); err != nil {
		panic(err) // the file is not sound
	}
	return m
}

func encoded(v any) []byte {
	b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil {
		panic(err)
	}
	return b
}

// withFooter ends the data of a file.
func withFooter(data, footer []byte) []byte {
	data = append(slices.Clip(data), footer...)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(footer)))
	return append(data, "PAR1"...)
}

// A chunk is the pages of a column.
type chunk struct {
	name   string
	codec  format.CompressionCodec
	dict   bool // it begins with a dictionary
	values int64
	data   []byte
}

// withPages puts a chunk in place of that of a column.
func withPages(sound []byte, column int, p chunk) []byte {
	m := footerOf(sound)
	n := int(binary.LittleEndian.Uint32(sound[len(sound)-8:]))
	data := append([]byte{}, sound[:len(sound)-8-n]...)
	for g := range m.RowGroups {
		for i := range m.RowGroups[g].Columns {
			c := &m.RowGroups[g].Columns[i]
			c.OffsetIndexOffset, c.OffsetIndexLength, c.ColumnIndexOffset, c.ColumnIndexLength = 0, 0, 0, 0
		}
	}
	c := &m.RowGroups[0].Columns[column]
	at := int64(len(data))
	c.MetaData.Codec, c.MetaData.DataPageOffset, c.MetaData.DictionaryPageOffset = p.codec, at, 0
	if p.dict {
		c.MetaData.DictionaryPageOffset = at
	}
	c.MetaData.TotalCompressedSize, c.MetaData.NumValues = int64(len(p.data)), p.values
	m.RowGroups[0].NumRows, m.NumRows = max(p.values, 1), max(p.values, 1)
	return withFooter(append(data, p.data...), encoded(m))
}

// levelsOf are whether the leaves of a schema have levels of repetition and of definition.
func levelsOf(schema []format.SchemaElement) (leaves [][2]bool) {
	next := 1
	var walk func(children int32, rep, def bool)
	walk = func(children int32, rep, def bool) {
		for ; children > 0; children-- {
			e := schema[next]
			next++
			r, d := rep || e.RepetitionType.V == format.Repeated, def || e.RepetitionType.V != format.Required
			if e.NumChildren.V > 0 {
				walk(e.NumChildren.V, r, d)
			} else {
				leaves = append(leaves, [2]bool{r, d})
			}
		}
	}
	walk(schema[0].NumChildren.V, false, false)
	return leaves
}

const many = math.MaxInt32

// pages are the bombs that a column of a type can hold.
func pages(kind format.Type, levels [2]bool) (all []chunk) {
	// What stands before the values of a page of so many: one for each, and none in a list.
	before := func(values uint64) (b []byte) {
		for i, has := range levels {
			if has {
				run := append(binary.AppendUvarint(nil, values<<1), byte(i))
				b = append(binary.LittleEndian.AppendUint32(b, uint32(len(run))), run...)
			}
		}
		return b
	}
	one := value(kind)
	add := func(name string, codec format.CompressionCodec, values int64, data []byte, claimed int,
		encoding format.Encoding, dictionary []byte) {
		c := chunk{name: name, codec: codec, values: values, dict: dictionary != nil}
		if c.dict {
			c.data = append(page(format.DictionaryPage, 1, len(dictionary), len(dictionary), format.Plain),
				dictionary...)
		}
		c.data = append(append(c.data, page(format.DataPage, int32(min(values, many)), len(data), claimed,
			encoding)...), data...)
		all = append(all, c)
	}

	if levels[0] || levels[1] {
		add("levels", format.Uncompressed, many, before(many), 64, format.Plain, nil)
		add("more levels than values", format.Uncompressed, 8, before(many), 64, format.Plain, nil)
	}
	if kind != format.Boolean {
		run := append(binary.AppendUvarint([]byte{1}, many<<1), 0)
		add("indexes", format.Uncompressed, many, append(before(many), run...), 64, format.RLEDictionary, one)
		add("more indexes than values", format.Uncompressed, 8, append(before(8), run...), 64,
			format.RLEDictionary, one)
		repeated := append([]byte{1}, bytes.Repeat(run[1:], 100)...)
		add("many runs of indexes", format.Uncompressed, 8, append(before(8), repeated...), 1024,
			format.RLEDictionary, one)
		wide := append([]byte{0}, bytes.Repeat(binary.AppendUvarint(nil, (1<<27)<<1|1), 100)...)
		add("indexes of no bits", format.Uncompressed, 8, append(before(8), wide...), 1024, format.RLEDictionary, one)
	}
	add("a size that is claimed", format.Zstd, 8, []byte{0}, many, format.Plain, nil)
	add("a size that snappy claims", format.Snappy, 8, binary.AppendUvarint(nil, math.MaxUint32-64), 64,
		format.Plain, nil)
	add("a size that snappy claims as the page does", format.Snappy, 8, append(binary.AppendUvarint(nil, many), 0),
		many, format.Plain, nil)
	zeros := zstdZeros(1 << 30)
	add("zstd", format.Zstd, 8, zeros, 1<<30, format.Plain, nil)
	add("zstd that claims little", format.Zstd, 8, zeros, 64, format.Plain, nil)
	add("gzip", format.Gzip, 8, gzipZeros(), zeroBytes, format.Plain, nil)
	add("gzip that claims little", format.Gzip, 8, gzipZeros(), 64, format.Plain, nil)
	if kind == format.Int32 || kind == format.Int64 {
		count := deltaHeader(many)
		add("a count of differences", format.Uncompressed, 8, append(before(8), count...), 64,
			format.DeltaBinaryPacked, nil)
		add("differences", format.Uncompressed, many, append(before(many), count...), 64, format.DeltaBinaryPacked, nil)
	}
	if kind == format.ByteArray {
		add("a count of lengths", format.Uncompressed, 8, append(before(8), deltaHeader(many)...), 64,
			format.DeltaLengthByteArray, nil)
		const repeats, length = 1 << 13, 1 << 20
		prefixes, lengths := make([]int32, repeats), make([]int32, repeats)
		for i := 1; i < repeats; i++ {
			prefixes[i] = length
		}
		lengths[0] = length
		data := append(before(repeats), deltas(prefixes)...)
		data = append(append(data, deltas(lengths)...), make([]byte, length)...)
		add("values that begin alike", format.Uncompressed, repeats, data, len(data), format.DeltaByteArray, nil)
	}
	return all
}

// page is the header of a page.
func page(kind format.PageType, values int32, packed, claimed int, encoding format.Encoding) []byte {
	h := format.PageHeader{Type: kind, CompressedPageSize: int32(packed), UncompressedPageSize: int32(claimed)}
	if kind == format.DictionaryPage {
		h.DictionaryPageHeader.Valid = true
		h.DictionaryPageHeader.V = format.DictionaryPageHeader{NumValues: values, Encoding: encoding}
	} else {
		h.DataPageHeader.Valid = true
		h.DataPageHeader.V = format.DataPageHeader{NumValues: values, Encoding: encoding,
			DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE}
	}
	return encoded(h)
}

// value is one value of a type, as a dictionary holds it.
func value(kind format.Type) []byte {
	switch kind {
	case format.Int32, format.Float:
		return make([]byte, 4)
	case format.Int96:
		return make([]byte, 12)
	case format.ByteArray:
		return append([]byte{1, 0, 0, 0}, 'a')
	}
	return make([]byte, 8)
}

func deltaHeader(count uint64) []byte {
	b := binary.AppendUvarint(nil, 128)
	b = binary.AppendUvarint(b, 4)
	b = binary.AppendUvarint(b, count)
	return append(b, 0, 0, 0, 0, 0, 0)
}

func deltas(values []int32) []byte {
	b, err := new(delta.BinaryPackedEncoding).EncodeInt32(nil, values)
	if err != nil {
		panic(err)
	}
	return b
}

// zstdZeros is a frame of so many zeros, in blocks of one byte that is repeated.
func zstdZeros(n int) []byte {
	const block = 128 << 10
	b := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3} // a window of 128 KiB, and no size
	for left := n / block; left > 0; left-- {
		head := uint32(block<<3 | 1<<1)
		if left == 1 {
			head |= 1
		}
		b = append(b, byte(head), byte(head>>8), byte(head>>16), 0)
	}
	return b
}

// zeroBytes is what gzipZeros holds.
const zeroBytes = 512 << 20

var gzipZeros = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	part := make([]byte, 1<<20)
	for range zeroBytes / len(part) {
		_, _ = w.Write(part)
	}
	_ = w.Close()
	return b.Bytes()
})

// footers are files whose footer claims more than there is.
func footers(sound []byte) (all []Bomb) {
	n := int(binary.LittleEndian.Uint32(sound[len(sound)-8:]))
	data := sound[:len(sound)-8-n]
	list := func(field, kind byte, count uint64) []byte {
		return binary.AppendUvarint([]byte{field<<4 | 9, 0xf0 | kind}, count)
	}
	all = append(all,
		Bomb{"footer: columns", withFooter(data, list(2, 12, many))},
		Bomb{"footer: groups of rows", withFooter(data, append(list(4, 12, 4<<20), make([]byte, 4<<20)...))},
		Bomb{"footer: a text", withFooter(data, binary.AppendUvarint([]byte{0x68}, many))})
	m := footerOf(sound)
	c := &m.RowGroups[0].Columns[0]
	c.ColumnIndexOffset, c.ColumnIndexLength, c.OffsetIndexOffset, c.OffsetIndexLength = 4, many, 4, many
	all = append(all, Bomb{"footer: a length of indexes", withFooter(data, encoded(m))})
	index := list(2, 8, many)
	c.ColumnIndexOffset, c.ColumnIndexLength = int64(len(data)), int32(len(index))
	c.OffsetIndexOffset, c.OffsetIndexLength = int64(len(data)), int32(len(index))
	all = append(all, Bomb{"footer: an index", withFooter(append(slices.Clip(data), index...), encoded(m))})
	m = footerOf(sound)
	m.NumRows = math.MaxInt64 / 2
	for i := range m.RowGroups {
		m.RowGroups[i].NumRows = math.MaxInt64 / 2
	}
	return append(all, Bomb{"footer: rows", withFooter(data, encoded(m))})
}
