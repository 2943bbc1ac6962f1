package trace

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"slices"
)

// A Spill is a private file for what does not fit in memory. It has no name
// where the system allows that, and is gone when it is closed or the process
// ends. One goroutine may append at a time; readers of what was appended may be
// used beside it and beside each other.
type Spill struct {
	file *os.File
	size int64
}

// An Extent is a stretch of a [Spill], in bytes.
type Extent struct{ At, Len int64 }

// NewSpill opens an empty spill in dir, or in os.TempDir when it is empty.
func NewSpill(dir string) (*Spill, error) {
	f, err := TempFile(dir)
	if err != nil {
		return nil, err
	}
	return &Spill{file: f}, nil
}

// Append writes p after everything before it and returns its place.
func (s *Spill) Append(p []byte) (Extent, error) {
	n, err := s.file.WriteAt(p, s.size)
	e := Extent{s.size, int64(n)}
	s.size += int64(n)
	return e, err
}

// Size is how many bytes were appended.
func (s *Spill) Size() int64 { return s.size }

// Close drops the file.
func (s *Spill) Close() error { return s.file.Close() }

// Reader reads extents one after the other through a buffer of about so many
// bytes, which grows to the longest piece that [SpillReader.Next] is asked for.
// It allocates the buffer when it is first used.
func (s *Spill) Reader(buffer int, extents ...Extent) *SpillReader {
	return &SpillReader{file: s.file, rest: slices.Clone(extents), size: max(buffer, 2*binary.MaxVarintLen64)}
}

// A SpillReader reads numbers and pieces of a [Spill]. Its errors are io.EOF
// at the end and those of the file; a number or a piece that is cut off is
// io.ErrUnexpectedEOF.
type SpillReader struct {
	file io.ReaderAt
	rest []Extent // not in buf yet
	size int
	buf  []byte
	pos  int // of the next byte in buf
}

// fill makes n bytes of buf readable, or as many as there are.
func (r *SpillReader) fill(n int) error {
	if len(r.rest) == 0 {
		return nil
	}
	r.size = max(r.size, n)
	if r.buf == nil || cap(r.buf) < r.size {
		r.buf = append(make([]byte, 0, r.size), r.buf[r.pos:]...)
	} else {
		r.buf = r.buf[:copy(r.buf, r.buf[r.pos:])]
	}
	r.pos = 0
	for len(r.buf) < n && len(r.rest) > 0 {
		e := &r.rest[0]
		end := min(int64(cap(r.buf)), int64(len(r.buf))+e.Len)
		m, err := r.file.ReadAt(r.buf[len(r.buf):end], e.At)
		r.buf = r.buf[:len(r.buf)+m]
		e.At, e.Len = e.At+int64(m), e.Len-int64(m)
		if e.Len == 0 {
			r.rest = r.rest[1:]
		} else if err != nil {
			return errors.Join(io.ErrUnexpectedEOF, err)
		}
	}
	return nil
}

// Uvarint reads a number as encoding/binary writes it.
func (r *SpillReader) Uvarint() (uint64, error) {
	if r.pos < len(r.buf) {
		if b := r.buf[r.pos]; b < 0x80 {
			r.pos++
			return uint64(b), nil
		}
	}
	if len(r.buf)-r.pos < binary.MaxVarintLen64 {
		if err := r.fill(binary.MaxVarintLen64); err != nil {
			return 0, err
		}
	}
	x, n := binary.Uvarint(r.buf[r.pos:])
	switch {
	case n > 0:
		r.pos += n
		return x, nil
	case r.pos == len(r.buf):
		return 0, io.EOF
	}
	return 0, io.ErrUnexpectedEOF
}

// Next returns the next n bytes, which are valid until the following call.
func (r *SpillReader) Next(n int) ([]byte, error) {
	if missing := int64(n - (len(r.buf) - r.pos)); n < 0 || missing > 0 {
		for _, e := range r.rest {
			missing -= e.Len
		}
		if n < 0 || missing > 0 {
			return nil, io.ErrUnexpectedEOF
		}
		if err := r.fill(n); err != nil {
			return nil, err
		}
	}
	p := r.buf[r.pos : r.pos+n]
	r.pos += n
	return p, nil
}

// Rows that wait in memory or in a spill are in the canonical form of the
// [Digest]: a tenth of a Request's size, and many times faster to write and read
// than Parquet.

// errSpill says that a private file does not hold what was written to it.
var errSpill = errors.New("a temporary file is damaged")

// A rowDecoder reads rows in canonical form. What rows point to is cut from
// slabs, which are not used again, so that rows may be kept, unless by reuse.
type rowDecoder struct {
	rest   []byte
	short  bool     // the row ended too early
	like   *Request // see [Sorter]
	names  map[string]string
	latest [16]string // of these, by length and first letter: a hash costs as much as the rest of a row
	words  slab[uint64]
	longs  slab[int64]
	ints   slab[int32]
}

// A slab hands out pieces of large allocations.
type slab[T any] struct {
	rest, all []T
	again     bool // all is used again
}

const slabItems = 4096

// take returns n items, which are zero unless they are used again.
func (s *slab[T]) take(n int) []T {
	if n > len(s.rest) || s.rest == nil { // no items are none, and not missing
		switch {
		case s.again:
			s.all = make([]T, max(n, slabItems, 2*len(s.all)))
		case n > slabItems/4:
			return make([]T, n)
		default:
			s.all = make([]T, slabItems)
		}
		s.rest = s.all
	}
	out := s.rest[:n:n]
	s.rest = s.rest[n:]
	return out
}

// reuse takes back all items.
func (s *slab[T]) reuse() { s.rest, s.again = s.all, true }

// reuse takes back what the rows so far point to.
func (d *rowDecoder) reuse() {
	d.words.reuse()
	d.longs.reuse()
	d.ints.reuse()
}

// decode reads the row that fills b.
func (d *rowDecoder) decode(b []byte, r *Request) error {
	d.rest, d.short = b, false
	arrival := d.varint()
	if d.like != nil && len(d.rest) > 0 && d.rest[0] == likeMark {
		*r = *d.like
		r.ArrivalNS = arrival
		return d.decodeLike(&r.InputTokens, &r.OutputTokens, &r.Blocks)
	}
	d.decodeBegin(r)
	r.ArrivalNS = arrival
	d.decodeLengths(&r.InputTokens, &r.OutputTokens)
	r.ReasoningTokens, r.CachedTokens, r.ImageTokens, r.Images = d.int(), d.int(), d.int(), d.int()
	r.MaxTokens, r.Temperature, r.Stream = d.int(), d.float(), d.bool()
	r.Blocks, r.OutputBlocks = d.ids(), nil
	if d.set() {
		r.OutputBlocks = d.ids()
	}
	d.decodeTail(r)
	if d.short || len(d.rest) > 0 {
		return errSpill
	}
	return nil
}

// isLike reports whether a row in canonical form is like the one that most are like.
func isLike(row []byte) bool {
	_, n := binary.Varint(row)
	return n > 0 && n < len(row) && row[n] == likeMark
}

// decodePlain appends such a row.
func (d *rowDecoder) decodePlain(row []byte, p *PlainRows) error {
	d.rest, d.short = row, false
	p.ArrivalNS = append(p.ArrivalNS, d.varint())
	i := len(p.InputTokens)
	p.Session, p.Turn, p.Category = append(p.Session, nil), append(p.Turn, nil), append(p.Category, d.like.Category)
	p.InputTokens, p.OutputTokens = append(p.InputTokens, 0), append(p.OutputTokens, nil)
	p.Blocks = append(p.Blocks, nil)
	return d.decodeLike(&p.InputTokens[i], &p.OutputTokens[i], &p.Blocks[i])
}

// decodeLike reads what is behind the arrival of it.
func (d *rowDecoder) decodeLike(input *int32, output **int32, blocks *[]uint64) error {
	d.rest = d.rest[min(2, len(d.rest)):] // the mark, and no category
	d.decodeLengths(input, output)
	if *blocks = d.ids(); d.short || len(d.rest) > 0 {
		return errSpill
	}
	return nil
}

func (d *rowDecoder) decodeLengths(input *int32, output **int32) {
	*input, *output = int32(d.varint()), nil
	if n := int32(d.varint()); n >= 0 {
		out := d.ints.take(1)
		out[0], *output = n, &out[0]
	}
}

// decodeBegin reads what is between the arrival and the lengths.
func (d *rowDecoder) decodeBegin(r *Request) {
	r.Session, r.Turn = d.long(), d.int()
	r.Parents = nil
	if n := d.length(); n > 0 {
		r.Parents = d.longs.take(n)
		for i := range r.Parents {
			r.Parents[i] = d.varint()
		}
	}
	r.ThinkNS, r.ToolNS, r.User = d.long(), d.long(), d.long()
	r.Model, r.Adapter, r.Kind = d.name(), d.name(), d.name()
	r.Class, r.Replica = d.optName(), d.optName()
	r.Category = d.name()
}

// decodeTail reads what is behind the blocks.
func (d *rowDecoder) decodeTail(r *Request) {
	r.Status, r.FinishReason = d.name(), d.name()
	r.TTFTNS, r.E2ENS = d.long(), d.long()
	r.LengthSource, r.ReuseSource = "", ""
	if len(d.rest) > 0 {
		r.LengthSource, r.ReuseSource = d.name(), d.name()
	}
	r.Thread = nil
	if len(d.rest) > 0 {
		r.Thread = d.int()
	}
}

func (d *rowDecoder) uvarint() uint64 {
	x, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.rest, d.short = nil, true
		return 0
	}
	d.rest = d.rest[n:]
	return x
}

func (d *rowDecoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// length reads a number of things that take a byte or more each.
func (d *rowDecoder) length() int {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.rest, d.short = nil, true
		return 0
	}
	return int(n)
}

func (d *rowDecoder) bytes(n int) []byte {
	if n > len(d.rest) {
		d.rest, d.short = nil, true
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

// set reads the byte before an optional field.
func (d *rowDecoder) set() bool {
	b := d.bytes(1)
	return b != nil && b[0] == 1
}

func (d *rowDecoder) long() *int64 {
	if !d.set() {
		return nil
	}
	p := &d.longs.take(1)[0]
	*p = d.varint()
	return p
}

func (d *rowDecoder) int() *int32 {
	if !d.set() {
		return nil
	}
	p := &d.ints.take(1)[0]
	*p = int32(d.varint())
	return p
}

func (d *rowDecoder) float() *float32 {
	if !d.set() {
		return nil
	}
	if b := d.bytes(4); b != nil {
		return Ptr(math.Float32frombits(binary.BigEndian.Uint32(b)))
	}
	return nil
}

func (d *rowDecoder) bool() *bool {
	if !d.set() {
		return nil
	}
	return Ptr(d.set())
}

func (d *rowDecoder) ids() []uint64 {
	ids := d.words.take(d.length())
	b := d.rest
	for i := range ids {
		// Most of a trace's bytes are read here, so that the loop is by hand.
		x, shift, k := uint64(0), 0, 0
		for k < len(b) && b[k] >= 0x80 && shift < 63 {
			x |= uint64(b[k]&0x7f) << shift
			shift += 7
			k++
		}
		if k >= len(b) || b[k] >= 0x80 || shift == 63 && b[k] > 1 {
			d.rest, d.short = nil, true
			return nil
		}
		ids[i] = x | uint64(b[k])<<shift
		b = b[k+1:]
	}
	d.rest = b
	return ids
}

// maxNames bounds the strings that are kept to be shared by rows.
const maxNames = 4096

// name reads a string. There are few different ones, and rows share them.
func (d *rowDecoder) name() string {
	b := d.bytes(d.length())
	if len(b) == 0 {
		return ""
	}
	latest := &d.latest[(len(b)+int(b[0]))%len(d.latest)]
	if *latest == string(b) {
		return *latest
	}
	s, ok := d.names[string(b)]
	if !ok {
		if d.names == nil || len(d.names) >= maxNames {
			d.names = map[string]string{}
		}
		s = string(b)
		d.names[s] = s
	}
	*latest = s
	return s
}

func (d *rowDecoder) optName() *string {
	if !d.set() {
		return nil
	}
	return Ptr(d.name())
}
