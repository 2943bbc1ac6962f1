package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// A rowSource is what readers of a trace read: one file, or partitions.
type rowSource[R TextFree] interface {
	Reader[R]
	only(columns []string) // leaves all others unread
	rows() int64
	lookup(key string) (string, bool) // in the metadata
	holding(row int64) string         // the partition that has a row; empty of one file
}

// A columnReader reads rows column by column, page by page. The library's reader of
// rows makes a value of 24 bytes of each number and sets fields by reflection, which
// takes several times as long.
type columnReader[R TextFree] struct {
	f      *parquet.File
	fields []field[R]
	group  int   // the next row group
	left   int64 // rows of the current one
}

func newColumnReader[R TextFree](f *parquet.File) (r *columnReader[R], err error) {
	fields := fieldsOf[R]() // whose panic is no file's fault
	defer guard(&err)
	if err := hasRows[R](f); err != nil {
		return nil, err
	}
	r = &columnReader[R]{f: f, fields: fields}
	r.fields = slices.DeleteFunc(r.fields, func(c field[R]) bool { return !c.find(f.Schema()) })
	return r, nil
}

func (r *columnReader[R]) rows() int64 { return r.f.NumRows() }

func (r *columnReader[R]) lookup(key string) (string, bool) { return r.f.Lookup(key) }

func (r *columnReader[R]) holding(int64) string { return "" }

func (r *columnReader[R]) only(columns []string) {
	r.fields = slices.DeleteFunc(r.fields, func(c field[R]) bool { return !slices.Contains(columns, c.name()) })
}

// Read implements [Reader]. What rows point to is not used again: they may be
// kept.
func (r *columnReader[R]) Read(rows []R) (n int, err error) {
	defer guard(&err)
	clear(rows)
	for listed := 0; n < len(rows); {
		for r.left == 0 {
			if err := r.next(); err != nil {
				return n, err
			}
		}
		part := rows[n : n+int(min(int64(len(rows)-n), r.left, rowsAtOnce))]
		for _, c := range r.fields {
			if err := c.read(part); err != nil {
				return n, brokenPage(err)
			}
			listed += c.listed()
		}
		n += len(part)
		if r.left -= int64(len(part)); listed > maxListed {
			break
		}
	}
	return n, nil
}

// brokenPage is what is said of an error of the library: nothing but that the file is broken,
// or that it takes more than is allowed.
func brokenPage(err error) error {
	for _, known := range []error{ErrPage, errLongRow} {
		if errors.Is(err, known) {
			return known
		}
	}
	return errBroken
}

// Rows are read rowsAtOnce together, of which no column may have more than MaxListed elements in
// lists. A Read ends once it has maxListed of them.
const (
	rowsAtOnce = 256
	MaxListed  = 48 << 20
	maxListed  = 8 << 20
)

var errLongRow = fmt.Errorf("the lists of %d rows have more than %d elements together", rowsAtOnce, MaxListed)

// next goes on to the next row group.
func (r *columnReader[R]) next() error {
	groups := r.f.RowGroups()
	if r.group == len(groups) {
		for _, c := range r.fields {
			c.close()
		}
		return io.EOF
	}
	g := groups[r.group]
	r.group++
	if r.left = g.NumRows(); r.left < 0 {
		return errBroken
	}
	chunks := g.ColumnChunks()
	for _, c := range r.fields {
		c.open(chunks)
	}
	return nil
}

// A leaf is a column of values of type T, and its position in the current page.
type leaf[R, T any] struct {
	path   []string
	decode func(*encoding.Values, int) []T
	put    func(c *leaf[R, T], rows []R) (int, error) // fills some rows from the current page
	column int
	max    byte // the definition level of a value
	pages  parquet.Pages
	page   parquet.Page
	slab   slab[T]

	values   []T
	def, rep []byte // levels, where the column has any
	level    int    // of the next value or null
	next     int    // value
	dict     []T    // of the row group
	elems    int    // of lists, since they were last asked for
}

func (c *leaf[R, T]) name() string { return c.path[0] }

func (c *leaf[R, T]) listed() int {
	n := c.elems
	c.elems = 0
	return n
}

func (c *leaf[R, T]) find(s *parquet.Schema) bool {
	leaf, ok := s.Lookup(c.path...) // one that may be missing is not there: see hasRows
	c.column, c.max = leaf.ColumnIndex, byte(leaf.MaxDefinitionLevel)
	return ok
}

func (c *leaf[R, T]) open(chunks []parquet.ColumnChunk) {
	c.close()
	c.pages = chunks[c.column].Pages()
}

// close gives memory back, to be used for other pages.
func (c *leaf[R, T]) close() {
	c.drop()
	c.dict = nil
	if c.pages != nil {
		c.pages.Close()
		c.pages = nil
	}
}

func (c *leaf[R, T]) drop() {
	if c.page != nil {
		parquet.Release(c.page)
	}
	c.page, c.values, c.def, c.rep, c.level, c.next = nil, nil, nil, nil, 0, 0
}

func (c *leaf[R, T]) read(rows []R) error {
	for len(rows) > 0 {
		if c.level == c.size() {
			if err := c.load(); err != nil {
				return err
			}
			continue
		}
		n, err := c.put(c, rows)
		if err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// size is how many values and nulls the page has.
func (c *leaf[R, T]) size() int {
	if c.max > 0 {
		return len(c.def)
	}
	return len(c.values)
}

// load reads the next page; io.EOF is the end of the row group.
func (c *leaf[R, T]) load() error {
	c.drop()
	p, err := c.pages.ReadPage()
	if err != nil {
		return err
	}
	c.page = p
	data, n := p.Data(), int(p.NumValues()-p.NumNulls())
	if dict := p.Dictionary(); dict != nil {
		err = c.look(dict, data.Int32())
	} else {
		c.values = c.decode(&data, n)
	}
	if c.max > 0 {
		c.def, c.rep = p.DefinitionLevels(), p.RepetitionLevels()
	}
	if err != nil || n > len(c.values) {
		return errBroken
	}
	c.values = c.values[:n]
	return nil
}

// look takes values from a dictionary.
func (c *leaf[R, T]) look(dict parquet.Dictionary, indexes []int32) error {
	if c.dict == nil {
		page := dict.Page()
		data := page.Data()
		c.dict = append([]T{}, c.decode(&data, int(page.NumValues()))...)
	}
	c.values = make([]T, len(indexes))
	for i, at := range indexes {
		if at < 0 || int(at) >= len(c.dict) {
			return errBroken
		}
		c.values[i] = c.dict[at]
	}
	return nil
}

// present calls f for the values of the next rows that are not null. A file of an earlier
// version may hold a value in every row of a column that has nulls since.
func (c *leaf[R, T]) present(rows []R, f func(i int, v T)) (int, error) {
	if c.max == 0 {
		values := c.values[c.level:]
		values = values[:min(len(values), len(rows))]
		for i, v := range values {
			f(i, v)
		}
		c.level += len(values)
		return len(values), nil
	}

	levels := c.def[c.level:]
	levels = levels[:min(len(levels), len(rows))]
	if c.next < len(c.values) {
		for i, level := range levels {
			if level != c.max {
				continue
			}
			if c.next == len(c.values) {
				return 0, errBroken
			}
			f(i, c.values[c.next])
			c.next++
		}
	}
	c.level += len(levels)
	return len(levels), nil
}

// valueField is a column of values, where a null is the zero value.
func valueField[R, T any](path []string, decode func(*encoding.Values, int) []T, at func(*R) *T) field[R] {
	return &leaf[R, T]{path: path, decode: decode, put: func(c *leaf[R, T], rows []R) (int, error) {
		if c.max > 0 {
			return c.present(rows, func(i int, v T) { *at(&rows[i]) = v })
		}
		values := c.values[c.level:]
		n := min(len(rows), len(values))
		for i := range n {
			*at(&rows[i]) = values[i]
		}
		c.level += n
		return n, nil
	}}
}

// pointerField is a column whose nulls are nil.
func pointerField[R, T any](path []string, decode func(*encoding.Values, int) []T, at func(*R) **T) field[R] {
	return &leaf[R, T]{path: path, decode: decode, put: func(c *leaf[R, T], rows []R) (int, error) {
		return c.present(rows, func(i int, v T) {
			p := &c.slab.take(1)[0]
			*p = v
			*at(&rows[i]) = p
		})
	}}
}

// listField is a column of lists, which may be null where the level of an empty one is
// above 0.
func listField[R, T any](path []string, decode func(*encoding.Values, int) []T, at func(*R) *[]T) field[R] {
	return &leaf[R, T]{path: path, decode: decode, put: func(c *leaf[R, T], rows []R) (int, error) {
		for i := range rows {
			if c.level == len(c.def) {
				return i, nil
			}
			to := at(&rows[i])
			if c.rep[c.level] != 0 {
				return i, errBroken
			}
			if level := c.def[c.level]; level < c.max {
				if c.level++; level+1 == c.max {
					*to = c.slab.take(0)
				}
				continue
			}
			if err := c.elements(to); err != nil {
				return i, err
			}
		}
		return len(rows), nil
	}}
}

// elements reads a list that has some. In pages of the first version it may go on
// in the next one, so that one is looked at before the row is given away.
func (c *leaf[R, T]) elements(to *[]T) error {
	for from := 1; ; from = 0 {
		n := len(c.rep) - c.level
		end := bytes.IndexByte(c.rep[c.level+from:], 0)
		if end >= 0 {
			n = end + from
		}
		if n > len(c.values)-c.next || bytes.Count(c.def[c.level:c.level+n], []byte{c.max}) != n {
			return errBroken
		}
		values := c.values[c.next : c.next+n]
		c.level, c.next = c.level+n, c.next+n
		if c.elems += n; c.elems > MaxListed {
			return errLongRow
		}
		if from > 0 {
			*to = c.slab.take(n)
			copy(*to, values)
		} else {
			*to = append(*to, values...)
		}
		if end >= 0 {
			return nil
		}
		switch err := c.load(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case len(c.rep) == 0 || c.rep[0] == 0:
			return nil
		}
	}
}
