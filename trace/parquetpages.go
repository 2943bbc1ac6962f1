package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Bounds of a Parquet file. Its headers say how large what they stand before is, and the library
// takes the memory that they name; a run of a few bytes may stand for billions of values.
const (
	// MaxParquetPage bounds a page, in bytes as it is unpacked and in what its values are then.
	MaxParquetPage = 128 << 20
	// MaxPageValues bounds the values of a page, nulls among them.
	MaxPageValues = 8 << 20
	// MaxParquetPages bounds the pages that are read at once, one of each column: of each of
	// them what is beyond smallPage.
	MaxParquetPages = 256 << 20
	smallPage       = 4 << 20
	// MaxParquetFooter bounds the footer, and maxFooterGroups what it lists of rows and columns.
	MaxParquetFooter = 64 << 20
	maxFooterGroups  = 512 << 10
	// maxPageHeader bounds the header of a page, in which some writers repeat values.
	maxPageHeader = 16 << 20
)

// ErrPage says that a page of a Parquet file takes more than any should, or not what it claims.
var ErrPage = errors.New("it is damaged or made to take all memory: a page of a column, or the footer, claims or " +
	"unpacks to more than is allowed (a page of 128 MiB or 8 million values, pages of 256 MiB at once). If it is " +
	"sound, write it anew with smaller pages, such as data_page_size and write_batch_size of pyarrow say")

// A checkedFile is a Parquet file of which the library sees no page that was not looked at
// before: one that is as large as it says, and has as many values.
type checkedFile struct {
	io.ReaderAt

	mu       sync.Mutex
	chunks   []*pageChunk // in the order of the file; nil before the footer is read
	weight   int64        // bytes that a value takes once it is decoded
	open     map[int]int64
	sum      int64  // of open: what the pages of each column take
	body     []byte // used again
	unpacked []byte
	zstd     *zstd.Decoder
}

// A pageChunk is the pages of one column in one group of rows, from and up to an offset.
type pageChunk struct {
	column   int
	codec    format.CompressionCodec
	leaf     parquetLevels
	from, to int64
	checked  int64 // up to here all pages have been looked at
	fault    error
}

// expect says which pages a file has, by its footer.
func (f *checkedFile) expect(m *format.FileMetaData) error {
	levels := levelsOf(m.Schema)
	var chunks []*pageChunk
	for _, g := range m.RowGroups {
		for i := range g.Columns {
			meta := &g.Columns[i].MetaData
			from := meta.DataPageOffset
			if meta.DictionaryPageOffset != 0 {
				from = meta.DictionaryPageOffset
			}
			if i >= len(levels) || from < 0 || meta.TotalCompressedSize < 0 ||
				from > math.MaxInt64-meta.TotalCompressedSize {
				return errBroken
			}
			if meta.TotalCompressedSize == 0 {
				continue
			}
			chunks = append(chunks, &pageChunk{column: i, codec: meta.Codec, leaf: levels[i],
				from: from, to: from + meta.TotalCompressedSize, checked: from})
		}
	}
	slices.SortFunc(chunks, func(a, b *pageChunk) int { return int(min(max(a.from-b.from, -1), 1)) })
	for i := 1; i < len(chunks); i++ {
		if chunks[i].from < chunks[i-1].to {
			return errBroken
		}
	}

	f.weight = 8
	for _, kv := range m.KeyValueMetadata {
		if strings.HasPrefix(kv.Key, metaPrefix) {
			f.weight = 24 // our rows have strings and pointers, and our pages are small
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chunks, f.open = chunks, map[int]int64{}
	return nil
}

// parquetLevels are the highest levels of repetition and of definition of a leaf of a schema, and
// how many bytes its values have, where they are of one length.
type parquetLevels struct{ rep, def, length int }

// levelsOf are the levels of each leaf.
func levelsOf(schema []format.SchemaElement) (leaves []parquetLevels) {
	next := 1 // after the root
	var walk func(children int32, above parquetLevels, depth int)
	walk = func(children int32, above parquetLevels, depth int) {
		for ; children > 0 && next < len(schema) && depth < 256; children-- {
			e := &schema[next]
			next++
			level := above
			if e.RepetitionType.Valid && e.RepetitionType.V != format.Required {
				level.def++
				if e.RepetitionType.V == format.Repeated {
					level.rep++
				}
			}
			if e.NumChildren.Valid && e.NumChildren.V > 0 {
				walk(e.NumChildren.V, level, depth+1)
				continue
			}
			if e.Type.Valid && e.Type.V == format.FixedLenByteArray && e.TypeLength.Valid {
				level.length = int(e.TypeLength.V)
			}
			leaves = append(leaves, level)
		}
	}
	if len(schema) > 0 && schema[0].NumChildren.Valid {
		walk(schema[0].NumChildren.V, parquetLevels{}, 0)
	}
	return leaves
}

// ReadAt implements [io.ReaderAt]. Pages are looked at before any of their bytes are given.
func (f *checkedFile) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, found := slices.BinarySearchFunc(f.chunks, off, func(c *pageChunk, off int64) int {
		return int(min(max(c.from-off, -1), 1))
	})
	if !found && i > 0 {
		i--
	}
	for ; i < len(f.chunks) && f.chunks[i].from < off+int64(len(p)); i++ {
		c := f.chunks[i]
		for c.fault == nil && c.checked < min(off+int64(len(p)), c.to) {
			c.fault = f.check(c)
		}
		if c.fault != nil && c.checked < off+int64(len(p)) {
			return 0, c.fault
		}
	}
	return f.ReaderAt.ReadAt(p, off)
}

// check looks at the next page of a chunk.
func (f *checkedFile) check(c *pageChunk) (err error) {
	defer func() { // decoders may panic at what is no page
		if recover() != nil {
			err = errBroken
		}
	}()
	header, n, err := f.header(c)
	if err != nil {
		return err
	}
	packed := int64(header.CompressedPageSize)
	values, err := valuesOf(header)
	switch {
	case err != nil:
		return err
	case packed < 0 || packed > c.to-c.checked-n || header.UncompressedPageSize < 0 || values < 0:
		return errBroken
	case values*int64(max(c.leaf.length, 0)) > MaxParquetPage, packed > MaxParquetPage ||
		header.UncompressedPageSize > MaxParquetPage || values > MaxPageValues:
		return ErrPage
	}

	f.body = slices.Grow(f.body[:0], int(packed))[:packed]
	if _, err := f.ReaderAt.ReadAt(f.body, c.checked+n); err != nil && err != io.EOF {
		return err
	}
	takes, err := f.look(c, header, int(values))
	if err != nil {
		return err
	}
	if cap(f.body)+cap(f.unpacked) > 4*smallPage {
		f.body, f.unpacked = nil, nil
	}

	f.sum -= f.open[c.column]
	f.open[c.column] = max(takes+values*f.weight-smallPage, 0)
	f.sum += f.open[c.column]
	if f.sum > MaxParquetPages {
		return ErrPage
	}
	c.checked += n + packed
	return nil
}

// header reads the header of the next page, and how long it is.
func (f *checkedFile) header(c *pageChunk) (*format.PageHeader, int64, error) {
	for size := int64(512); ; size *= 8 {
		head := make([]byte, min(size, c.to-c.checked, maxPageHeader))
		got, err := f.ReaderAt.ReadAt(head, c.checked)
		if err != nil && err != io.EOF {
			return nil, 0, err
		}
		n, err := (&thriftWalk{groups: maxFooterGroups}).length(head[:got])
		if errors.Is(err, io.ErrUnexpectedEOF) && got == len(head) && int64(got) < min(c.to-c.checked, maxPageHeader) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		header := new(format.PageHeader)
		if thrift.NewDecoder(new(thrift.CompactProtocol).NewReaderFromBytes(head[:n])).Decode(header) != nil {
			return nil, 0, errBroken
		}
		return header, int64(n), nil
	}
}

// valuesOf is how many values a page says that it has.
func valuesOf(h *format.PageHeader) (int64, error) {
	switch {
	case h.Type == format.DataPage && h.DataPageHeader.Valid:
		return int64(h.DataPageHeader.V.NumValues), nil
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		return int64(h.DataPageHeaderV2.V.NumValues), nil
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
		return int64(h.DictionaryPageHeader.V.NumValues), nil
	}
	return 0, errBroken
}

// look unpacks the page in body and counts what its runs stand for. It returns how many bytes the
// page takes once it is decoded, beside its values.
func (f *checkedFile) look(c *pageChunk, h *format.PageHeader, values int) (takes int64, err error) {
	claimed := int(h.UncompressedPageSize)
	switch h.Type {
	case format.DictionaryPage:
		data, err := f.unpack(c.codec, f.body, claimed)
		return int64(len(data)), err
	case format.DataPage:
		data, err := f.unpack(c.codec, f.body, claimed)
		if err != nil {
			return 0, err
		}
		takes = int64(len(data))
		p := h.DataPageHeader.V
		for _, level := range []struct {
			highest  int
			encoding format.Encoding
		}{{c.leaf.rep, p.RepetitionLevelEncoding}, {c.leaf.def, p.DefinitionLevelEncoding}} {
			if level.highest == 0 {
				continue
			}
			if len(data) < 4 || int64(binary.LittleEndian.Uint32(data)) > int64(len(data)-4) {
				return 0, errBroken
			}
			n := 4 + int(binary.LittleEndian.Uint32(data))
			if err := levelRuns(data[4:n], level.encoding, level.highest, values); err != nil {
				return 0, err
			}
			data = data[n:]
		}
		more, err := expands(data, p.Encoding, values)
		return takes + more, err
	}

	p := h.DataPageHeaderV2.V
	rep, def := int64(p.RepetitionLevelsByteLength), int64(p.DefinitionLevelsByteLength)
	if rep < 0 || def < 0 || rep+def > int64(len(f.body)) {
		return 0, errBroken
	}
	if err := levelRuns(f.body[:rep], format.RLE, c.leaf.rep, values); err != nil {
		return 0, err
	}
	if err := levelRuns(f.body[rep:rep+def], format.RLE, c.leaf.def, values); err != nil {
		return 0, err
	}
	data := f.body[rep+def:]
	if !p.IsCompressed.Valid || p.IsCompressed.V {
		if data, err = f.unpack(c.codec, data, claimed); err != nil {
			return 0, err
		}
	}
	more, err := expands(data, p.Encoding, values)
	return int64(claimed) + more, err
}

// unpack unpacks a page, which may not be larger than it claims.
func (f *checkedFile) unpack(codec format.CompressionCodec, packed []byte, claimed int) (data []byte, err error) {
	if len(packed) == 0 {
		return nil, nil
	}
	var stream io.Reader
	switch codec {
	case format.Uncompressed:
		return packed, nil
	case format.Snappy:
		n, err := snappy.DecodedLen(packed)
		if err != nil || n > claimed {
			return nil, errBroken
		}
		f.unpacked = slices.Grow(f.unpacked[:0], n)[:n]
		if data, err = snappy.Decode(f.unpacked, packed); err != nil {
			return nil, errBroken
		}
		return data, nil
	case format.Zstd:
		if f.zstd == nil {
			// of sound options
			f.zstd, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(MaxParquetPage))
		}
		stream = f.zstd
		if f.zstd.Reset(bytes.NewReader(packed)) != nil {
			return nil, errBroken
		}
	case format.Gzip:
		if stream, err = gzip.NewReader(bytes.NewReader(packed)); err != nil {
			return nil, errBroken
		}
	case format.Brotli:
		stream = brotli.NewReader(bytes.NewReader(packed))
	default:
		return nil, errBroken
	}

	f.unpacked = slices.Grow(f.unpacked[:0], claimed+1)[:claimed+1]
	n, err := io.ReadFull(stream, f.unpacked)
	switch {
	case err == nil:
		return nil, ErrPage // there is more than it claims
	case err != io.EOF && err != io.ErrUnexpectedEOF:
		return nil, errBroken
	}
	return f.unpacked[:n], nil
}

// Runs may be this many values longer than the page has: the last is filled up to a whole number
// of groups.
const runSlack = 4 << 10

// levelRuns counts the levels of a page, which are up to highest.
func levelRuns(data []byte, encoding format.Encoding, highest, values int) error {
	if highest == 0 || encoding == format.BitPacked { // older writers'; such levels take the bytes that they have
		return nil
	}
	return runs(data, values+runSlack, bits.Len(uint(highest)))
}

// runs counts what run-length encoding stands for: values of so many bits, of which there may be
// only so many.
func runs(data []byte, most, width int) error {
	for left := uint64(most); len(data) > 0; {
		u, n := binary.Uvarint(data)
		if n <= 0 {
			return errBroken
		}
		data = data[n:]
		count, taken := u>>1, (width+7)/8
		if u&1 != 0 { // packed, in groups of eight
			if count > left/8 {
				return ErrPage
			}
			count, taken = count*8, int(count)*width
		}
		if count > left {
			return ErrPage
		}
		left -= count
		data = data[min(taken, len(data)):]
	}
	return nil
}

// expands says how many bytes more than there are the values of a page take, where its encoding
// repeats some, and refuses one that stands for more values than the page has.
func expands(data []byte, encoding format.Encoding, values int) (more int64, err error) {
	switch encoding {
	//lint:ignore SA1019 older writers still have PlainDictionary
	case format.PlainDictionary, format.RLEDictionary:
		if len(data) == 0 {
			return 0, nil
		}
		return 0, runs(data[1:], values+runSlack, int(data[0]))
	case format.RLE:
		if len(data) < 4 {
			return 0, nil
		}
		return 0, runs(data[4:], values+runSlack, 1) // of booleans, after their length
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
		return 0, deltaCount(data, values)
	case format.DeltaByteArray:
		if err := deltaCount(data, values); err != nil {
			return 0, err
		}
		prefixes, err := new(delta.BinaryPackedEncoding).DecodeInt32(nil, data)
		if err != nil {
			return 0, errBroken
		}
		for _, n := range prefixes {
			if more += int64(max(n, 0)); more > MaxParquetPage {
				return 0, ErrPage
			}
		}
	}
	return more, nil
}

// deltaCount reads the header of delta-encoded numbers, which says how many there are.
func deltaCount(data []byte, values int) error {
	for i := range 3 { // the size of a block, how many parts it has, and how many values there are
		u, n := binary.Uvarint(data)
		if n <= 0 {
			if len(data) == 0 && i == 0 {
				return nil
			}
			return errBroken
		}
		if data = data[n:]; u > uint64(MaxPageValues) || i == 2 && u > uint64(values) {
			return ErrPage
		}
	}
	return nil
}

// A thriftWalk passes over a structure in Thrift's compact protocol and refuses one that claims
// more than there is. groups is how many structures it may hold in lists.
type thriftWalk struct {
	b      []byte
	at     int
	groups int
}

// length is how many bytes of b the structure takes that b begins with: io.ErrUnexpectedEOF where
// b ends before it.
func (w *thriftWalk) length(b []byte) (int, error) {
	w.b, w.at = b, 0
	err := w.structure(0)
	return w.at, err
}

func (w *thriftWalk) skip(n uint64) error {
	if n > uint64(len(w.b)-w.at) {
		return io.ErrUnexpectedEOF
	}
	w.at += int(n)
	return nil
}

func (w *thriftWalk) varint() (uint64, error) {
	u, n := binary.Uvarint(w.b[w.at:])
	if n == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	if n < 0 {
		return 0, errBroken
	}
	w.at += n
	return u, nil
}

// maxThriftDepth is deeper than any structure of the format.
const maxThriftDepth = 32

func (w *thriftWalk) structure(depth int) error {
	if depth > maxThriftDepth {
		return errBroken
	}
	for {
		if w.at == len(w.b) {
			return io.ErrUnexpectedEOF
		}
		field := w.b[w.at]
		w.at++
		if field&0xf == 0 {
			return nil
		}
		if field>>4 == 0 {
			if _, err := w.varint(); err != nil {
				return err
			}
		}
		if err := w.value(field&0xf, depth, false); err != nil {
			return err
		}
	}
}

// value passes over a value of a type. A boolean takes a byte in lists alone.
func (w *thriftWalk) value(kind byte, depth int, listed bool) error {
	switch kind {
	case 1, 2:
		if listed {
			return w.skip(1)
		}
		return nil
	case 3:
		return w.skip(1)
	case 4, 5, 6:
		_, err := w.varint()
		return err
	case 7:
		return w.skip(8)
	case 8:
		n, err := w.varint()
		if err != nil {
			return err
		}
		return w.skip(n)
	case 9, 10:
		return w.list(depth)
	case 12:
		return w.structure(depth + 1)
	}
	return errBroken // maps are in no structure of the format
}

func (w *thriftWalk) list(depth int) error {
	if w.at == len(w.b) {
		return io.ErrUnexpectedEOF
	}
	head := w.b[w.at]
	w.at++
	n := uint64(head >> 4)
	if n == 15 {
		var err error
		if n, err = w.varint(); err != nil {
			return err
		}
	}
	if head&0xf == 12 {
		if w.groups -= int(min(n, math.MaxInt32)); w.groups < 0 {
			return ErrPage
		}
	}
	if n > uint64(len(w.b)-w.at) { // each takes a byte at least
		return io.ErrUnexpectedEOF
	}
	for range n {
		if err := w.value(head&0xf, depth, true); err != nil {
			return err
		}
	}
	return nil
}

// checkFooter refuses a footer that claims more than there is.
func checkFooter(r io.ReaderAt, size int64, length uint32) error {
	if length > MaxParquetFooter {
		return fmt.Errorf("%w: its footer has %d MiB", ErrPage, length>>20)
	}
	footer := make([]byte, length)
	if _, err := r.ReadAt(footer, size-8-int64(length)); err != nil && err != io.EOF {
		return err
	}
	n, err := (&thriftWalk{groups: maxFooterGroups}).length(footer)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errBroken
	}
	if err != nil {
		return err
	}
	var m format.FileMetaData
	if thrift.NewDecoder(new(thrift.CompactProtocol).NewReaderFromBytes(footer[:n])).Decode(&m) != nil {
		return errBroken
	}
	return checkIndexes(r, size, &m)
}

// maxIndexes bounds the indexes of pages that a file has beside them, in bytes.
const maxIndexes = 16 << 20

// checkIndexes refuses indexes of pages that claim more than there is.
func checkIndexes(r io.ReaderAt, size int64, m *format.FileMetaData) error {
	left, walk := int64(maxIndexes), &thriftWalk{groups: maxFooterGroups}
	for i := range m.RowGroups {
		if len(m.RowGroups[i].Columns) != len(m.RowGroups[0].Columns) { // the library multiplies the two
			return errBroken
		}
		for j := range m.RowGroups[i].Columns {
			c := &m.RowGroups[i].Columns[j]
			for _, at := range [][2]int64{{c.ColumnIndexOffset, int64(c.ColumnIndexLength)},
				{c.OffsetIndexOffset, int64(c.OffsetIndexLength)}} {
				if at[0] == 0 && at[1] == 0 {
					continue
				}
				if at[0] < 0 || at[1] < 0 || at[0] > size || at[1] > size-at[0] {
					return errBroken
				}
				if left -= at[1]; left < 0 {
					return ErrPage
				}
				index := make([]byte, at[1])
				if _, err := r.ReadAt(index, at[0]); err != nil && err != io.EOF {
					return err
				}
				switch _, err := walk.length(index); {
				case errors.Is(err, ErrPage):
					return err
				case err != nil:
					return errBroken
				}
			}
		}
	}
	return nil
}
