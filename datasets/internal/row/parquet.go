package row

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/trace"
)

// parquetMagic begins and ends every Parquet file.
const parquetMagic = "PAR1"

// IsParquet reports whether an input that begins with head is Parquet.
func IsParquet(head []byte) bool { return bytes.HasPrefix(head, []byte(parquetMagic)) }

// A Parquet is a Parquet file in a temporary file that has no name.
type Parquet struct {
	spool *os.File
	in    *parquet.File
}

const (
	noFooter   = "the Parquet footer is missing"
	badParquet = "the Parquet file is damaged, or uses a feature that is not known here"
	longRow    = "the row is larger than 64 MiB, or has more than a million values"
)

// Bounds of a row, beside the bytes of [record.MaxBytes]: values in lists take more memory than they
// have bytes, those of structures in lists much more.
const (
	rowMemory   = 128 << 20
	valueMemory = 96
	fieldMemory = 480
)

// SpoolParquet copies in to a temporary file and reads the footer. The errors
// of the library are not passed on: they may quote what they stumbled over.
func SpoolParquet(in io.Reader) (*Parquet, error) {
	spool, err := trace.TempFile("")
	if err != nil {
		return nil, fault.Broken(1, 1, err)
	}
	p := &Parquet{spool: spool}
	size, err := io.Copy(spool, in)
	if err != nil {
		return nil, p.Close(fault.Broken(1, 1, err))
	}
	p.in, err = trace.OpenParquet(spool, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	switch {
	case err == nil:
		if schema, _ := p.in.Lookup("reprise.schema"); schema == trace.RawSchema {
			return nil, p.Close(fault.Refuse(1, 1, trace.ErrRaw.Error()))
		}
		return p, nil
	case errors.Is(err, trace.ErrNoFooter):
		return nil, p.Close(fault.CutOff(1, 1, noFooter))
	case errors.Is(err, trace.ErrLZ4), errors.Is(err, trace.ErrPage):
		return nil, p.Close(fault.Refuse(1, 1, err.Error()))
	}
	return nil, p.Close(fault.Refuse(1, 1, badParquet))
}

// Close gives the disk space back and returns err.
func (p *Parquet) Close(err error) error {
	_ = p.spool.Close()
	return err
}

var errParquet = errors.New("the Parquet file is damaged")

// guard turns a panic of the library, which some damaged files cause, into an
// error.
func guard(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errParquet
		}
	}()
	return f()
}

// Columns lists the names of the columns; a nested one is a single column.
func (p *Parquet) Columns() (names []string) {
	for _, c := range p.in.Root().Columns() {
		names = append(names, c.Name())
	}
	return names
}

// count counts the leaves that are not read.
func (p *Parquet) count(wanted func(leaf []string) bool, fields *Fields) {
	for _, leaf := range p.in.Schema().Columns() {
		if !wanted(leaf) {
			fields.column(strings.Join(leaf, "."))
		}
	}
}

// Rows reads the columns that the leaves name, and no others. A leaf is a
// path, with the names that writers give to the inner levels of lists.
func (p *Parquet) Rows(wanted func(leaf []string) bool) (*parquetRows, error) {
	r := &parquetRows{file: p}
	err := guard(func() error {
		r.root = r.node(p.in.Root(), wanted)
		return nil
	})
	if err != nil {
		return nil, fault.Refuse(1, 1, badParquet)
	}
	if r.root == nil {
		return nil, fault.Refuse(1, 1, "the Parquet file has none of the columns that are asked for")
	}
	r.root.optional, r.root.repeated = false, false // whatever the writer declared
	r.values = make([][]parquet.Value, len(r.leaves))
	return r, nil
}

// parquetRows yields the rows of a Parquet file. The line of a place is the
// number of the row, from 1.
type parquetRows struct {
	file   *Parquet
	root   *parquetNode
	leaves []*parquetLeaf
	values [][]parquet.Value // of the current row, for each leaf
	line   int64
	owner  bool // of the file, which it closes when it has no more rows
}

// done closes the file and returns err.
func (r *parquetRows) done(err error) error {
	if r.owner {
		return r.file.Close(err)
	}
	return err
}

func (r *parquetRows) Next() (Row, error) {
	r.line++
	if r.line > r.file.in.NumRows() {
		return nil, r.done(io.EOF)
	}
	current := ParquetRow{line: r.line}
	err := guard(func() error {
		left := rowRoom{bytes: record.MaxBytes, memory: rowMemory}
		for i, leaf := range r.leaves {
			var err error
			if r.values[i], err = leaf.next(&left); err != nil {
				return err
			}
		}
		v, err := r.root.value(r.values)
		current.Root, _ = v.(map[string]any)
		return err
	})
	switch {
	case errors.Is(err, trace.ErrPage):
		return nil, r.done(fault.Refuse(r.line, 1, trace.ErrPage.Error()))
	case errors.Is(err, errLongRow):
		return nil, r.done(fault.Refuse(r.line, 1, longRow))
	case err != nil:
		return nil, r.done(fault.Refuse(r.line, 1, badParquet))
	}
	return current, nil
}

// A ParquetRow is a decoded row.
type ParquetRow struct {
	Root map[string]any
	line int64
}

func (r ParquetRow) Value(path string) (any, bool) { return Lookup(r.Root, path) }

func (r ParquetRow) Place(string) (line, col int64) { return r.line, 1 }

// Cut is false: a file that was cut off has no footer.
func (r ParquetRow) Cut() bool { return false }

// A parquetNode is a level of a schema. Parquet stores the leaves of a record
// apart; the repetition and definition levels beside each value tell where it
// belongs (Dremel, VLDB 2010; the conventions for lists and maps are those of
// the format's LogicalTypes.md, with its rules for older writers).
type parquetNode struct {
	name               string
	optional, repeated bool
	definition         int // level from which on the node is there
	repetition         int // level at which a repeated node begins again
	kind               nodeKind
	children           []*parquetNode
	from, to           int // its leaves among those that are read
	convert            func(parquet.Value) any
}

type nodeKind int

const (
	groupNode   nodeKind = iota
	leafNode             // has convert
	listNode             // its one child is repeated
	mapNode              // its one child is a repeated pair of key and value
	elementNode          // stands between a list and its elements
)

// node builds the tree below a column as far as leaves are wanted, and adds
// these to r; it is nil when none is.
func (r *parquetRows) node(c *parquet.Column, wanted func(leaf []string) bool) *parquetNode {
	n := &parquetNode{
		name: c.Name(), optional: c.Optional(), repeated: c.Repeated(),
		definition: c.MaxDefinitionLevel(), repetition: c.MaxRepetitionLevel(), from: len(r.leaves),
	}
	if c.Leaf() {
		if !wanted(c.Path()) {
			return nil
		}
		n.kind, n.convert = leafNode, converter(c.Type())
		takes := valueMemory
		if c.MaxRepetitionLevel() > 0 && !strings.EqualFold(c.Name(), "element") &&
			!strings.EqualFold(c.Name(), "item") {
			takes = fieldMemory
		}
		r.leaves = append(r.leaves, &parquetLeaf{pages: c.Pages(), takes: takes})
		n.to = len(r.leaves)
		return n
	}
	children := c.Columns()
	for _, child := range children {
		if below := r.node(child, wanted); below != nil {
			n.children = append(n.children, below)
		}
	}
	if n.to = len(r.leaves); n.to == n.from {
		return nil
	}
	if len(children) != 1 || !children[0].Repeated() {
		return n
	}
	if logical := c.Type().LogicalType(); logical != nil {
		switch logical.Value.(type) {
		case *format.ListType:
			n.kind = listNode
			// The repeated child only wraps the elements, unless it is a leaf, or a group
			// of several fields or with the names that Avro and Thrift gave it.
			if in := children[0]; !in.Leaf() && len(in.Columns()) == 1 && in.Name() != "array" &&
				in.Name() != n.name+"_tuple" {
				n.children[0].kind = elementNode
			}
		case *format.MapType:
			n.kind = mapNode
		}
	}
	return n
}

// value assembles the node from the values of its leaves.
func (n *parquetNode) value(leaves [][]parquet.Value) (any, error) {
	if n.repeated {
		return n.list(leaves)
	}
	if len(leaves[0]) == 0 {
		return nil, errParquet
	}
	if n.optional && leaves[0][0].DefinitionLevel() < n.definition {
		return nil, nil
	}
	return n.inner(leaves)
}

// list splits the values of a repeated node where it begins again.
func (n *parquetNode) list(leaves [][]parquet.Value) (any, error) {
	list := []any{}
	if len(leaves[0]) == 0 {
		return nil, errParquet
	}
	if leaves[0][0].DefinitionLevel() < n.definition {
		return list, nil
	}
	rest := append([][]parquet.Value(nil), leaves...)
	one := make([][]parquet.Value, len(leaves))
	for len(rest[0]) > 0 {
		for i, values := range rest {
			if len(values) == 0 {
				return nil, errParquet
			}
			end := 1
			for end < len(values) && values[end].RepetitionLevel() > n.repetition {
				end++
			}
			one[i], rest[i] = values[:end], values[end:]
		}
		v, err := n.inner(one)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// inner assembles a node that is there, once.
func (n *parquetNode) inner(leaves [][]parquet.Value) (any, error) {
	below := func(c *parquetNode) (any, error) { return c.value(leaves[c.from-n.from : c.to-n.from]) }
	switch n.kind {
	case leafNode:
		if len(leaves[0]) == 0 || leaves[0][0].IsNull() {
			return nil, nil
		}
		return n.convert(leaves[0][0]), nil
	case listNode, elementNode:
		return below(n.children[0])
	case mapNode:
		pairs, err := below(n.children[0])
		return object(pairs), err
	}
	fields := make(map[string]any, len(n.children))
	for _, c := range n.children {
		v, err := below(c)
		if err != nil {
			return nil, err
		}
		if v != nil {
			fields[c.name] = v
		}
	}
	return fields, nil
}

// object makes an object of the pairs of a map.
func object(pairs any) map[string]any {
	fields := map[string]any{}
	list, _ := pairs.([]any)
	for _, pair := range list {
		pair, _ := pair.(map[string]any)
		if key := Plain(pair["key"]); key != "" && pair["value"] != nil {
			fields[key] = pair["value"]
		}
	}
	return fields
}

// A parquetLeaf yields the values of one leaf, a row at a time.
type parquetLeaf struct {
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	ahead  [128]parquet.Value
	at, n  int // of ahead
	row    []parquet.Value
	takes  int // bytes of memory for each value
}

// A rowRoom is what a row may still take: bytes of its values, and memory.
type rowRoom struct{ bytes, memory int }

var errLongRow = errors.New("a row of the Parquet file is too large")

// take takes room for a value.
func (r *rowRoom) take(v *parquet.Value, memory int) error {
	if k := v.Kind(); k == parquet.ByteArray || k == parquet.FixedLenByteArray {
		r.bytes -= len(v.ByteArray())
	}
	if r.memory -= memory; r.bytes < 0 || r.memory < 0 {
		return errLongRow
	}
	return nil
}

// next returns the values of the next row, valid until the following call. A
// row may go on in the next page.
func (l *parquetLeaf) next(room *rowRoom) ([]parquet.Value, error) {
	l.row = l.row[:0]
	for {
		err := l.fill()
		if err == io.EOF && len(l.row) > 0 {
			return l.row, nil
		}
		if err != nil {
			return nil, err
		}
		v := l.ahead[l.at]
		if len(l.row) > 0 && v.RepetitionLevel() == 0 {
			return l.row, nil
		}
		if err := room.take(&v, l.takes); err != nil {
			return nil, err
		}
		l.row = append(l.row, v)
		l.at++
	}
}

// fill makes sure that a value is ahead.
func (l *parquetLeaf) fill() error {
	for l.at == l.n {
		if l.values == nil {
			page, err := l.pages.ReadPage()
			if err != nil {
				return err
			}
			l.page, l.values = page, page.Values()
		}
		n, err := l.values.ReadValues(l.ahead[:])
		l.at, l.n = 0, n
		if err != nil && err != io.EOF {
			return err
		}
		if n > 0 {
			continue
		}
		// The page is given back, with the memory that values of the row so far are in.
		for i := range l.row {
			l.row[i] = l.row[i].Clone()
		}
		parquet.Release(l.page)
		l.page, l.values = nil, nil
	}
	return nil
}

// converter returns a function that turns a leaf's values into what encoding/json
// would have decoded, so that the same mappings fit: numbers keep their
// digits, and times become dates, with a zone when they are instants. Numbers
// that are none are missing.
func converter(t parquet.Type) func(parquet.Value) any {
	if logical := t.LogicalType(); logical != nil {
		switch logical := logical.Value.(type) {
		case *format.TimestampType:
			layout := "2006-01-02T15:04:05.999999999"
			if logical.IsAdjustedToUTC {
				layout = time.RFC3339Nano
			}
			if unit, ok := logical.Unit.Value.(interface{ Duration() time.Duration }); ok {
				return dated(unit.Duration(), layout)
			}
		case *format.TimeType:
			if unit, ok := logical.Unit.Value.(interface{ Duration() time.Duration }); ok {
				return dated(unit.Duration(), "15:04:05.999999999")
			}
		case *format.DateType:
			return func(v parquet.Value) any { return time.Unix(int64(v.Int32())*86400, 0).UTC().Format(time.DateOnly) }
		case *format.DecimalType:
			return decimal(int(logical.Scale))
		case *format.IntType:
			if !logical.IsSigned && t.Kind() == parquet.Int32 {
				return func(v parquet.Value) any { return Integer(int64(v.Uint32())) }
			}
			if !logical.IsSigned && t.Kind() == parquet.Int64 {
				return func(v parquet.Value) any { return Number(strconv.FormatUint(v.Uint64(), 10)) }
			}
		}
	}
	switch t.Kind() {
	case parquet.Boolean:
		return func(v parquet.Value) any { return v.Boolean() }
	case parquet.Int32:
		return func(v parquet.Value) any { return Integer(int64(v.Int32())) }
	case parquet.Int64:
		return func(v parquet.Value) any { return Integer(v.Int64()) }
	case parquet.Float:
		return func(v parquet.Value) any { return float(float64(v.Float()), 32) }
	case parquet.Double:
		return func(v parquet.Value) any { return float(v.Double(), 64) }
	case parquet.Int96:
		// The times of older Spark and Impala: nanoseconds of a day, and the Julian day.
		return func(v parquet.Value) any {
			const epochDay = 2440588 // 1970-01-01
			n := v.Int96()
			nanos := int64(n[1])<<32 | int64(n[0])
			return time.Unix((int64(n[2])-epochDay)*86400, nanos).UTC().Format(time.RFC3339Nano)
		}
	}
	return func(v parquet.Value) any { return strings.ToValidUTF8(string(v.ByteArray()), "\uFFFD") }
}

// dated writes times that count a unit, in 32 or 64 bits.
func dated(unit time.Duration, layout string) func(parquet.Value) any {
	perSecond := int64(time.Second / unit)
	return func(v parquet.Value) any {
		n := v.Int64()
		if v.Kind() == parquet.Int32 {
			n = int64(v.Int32())
		}
		return time.Unix(n/perSecond, n%perSecond*int64(unit)).UTC().Format(layout)
	}
}

// float spells all digits: readers of counts and times want no exponents.
func float(f float64, bits int) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return Number(strconv.FormatFloat(f, 'f', -1, bits))
}

// decimal places the point in an integer. Longer integers are big-endian
// bytes in two's complement.
func decimal(scale int) func(parquet.Value) any {
	return func(v parquet.Value) any {
		n := new(big.Int)
		switch v.Kind() {
		case parquet.Int32:
			n.SetInt64(int64(v.Int32()))
		case parquet.Int64:
			n.SetInt64(v.Int64())
		default:
			b := v.ByteArray()
			n.SetBytes(b)
			if len(b) > 0 && b[0] >= 0x80 {
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
			}
		}
		if scale == 0 {
			return Number(n.String())
		}
		if scale < 0 || scale > 76 { // of no precision that there is
			return nil
		}
		digits := new(big.Int).Abs(n).String()
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		at := len(digits) - scale
		if n.Sign() < 0 {
			return Number("-" + digits[:at] + "." + digits[at:])
		}
		return Number(digits[:at] + "." + digits[at:])
	}
}

// Read reads the columns that the leaves name, and the first rows once more. What is not read is
// counted. The file is closed at the end of all, or where it cannot be read.
func (p *Parquet) Read(wanted func(leaf []string) bool, ahead int, fields *Fields) (all, first Reader, err error) {
	in, err := p.Rows(wanted)
	if err != nil {
		return nil, nil, p.Close(err)
	}
	again, err := p.Rows(wanted)
	if err != nil {
		return nil, nil, p.Close(err)
	}
	in.owner = true
	p.count(wanted, fields)
	return in, &First{again, ahead}, nil
}

// ReadTable is [Parquet.Read] of the columns that a format's table names.
func (p *Parquet) ReadTable(fields *Fields) (all, first Reader, err error) {
	return p.Read(func(leaf []string) bool { return fields.Knows(leaf[0]) }, 1000, fields)
}

// Len is how many rows the file has.
func (p *Parquet) Len() int64 { return p.in.NumRows() }
