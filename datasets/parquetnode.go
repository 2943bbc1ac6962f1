package datasets

import (
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

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
		r.leaves = append(r.leaves, &parquetLeaf{pages: c.Pages()})
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
			n.children[0].between(children[0], n.name)
		case *format.MapType:
			n.kind = mapNode
		}
	}
	return n
}

// between marks the repeated child of a list that only wraps its elements. A
// repeated leaf, or a group of several fields or with the names that Avro and
// Thrift gave it, is the element itself.
func (n *parquetNode) between(c *parquet.Column, list string) {
	if !c.Leaf() && len(c.Columns()) == 1 && c.Name() != "array" && c.Name() != list+"_tuple" {
		n.kind = elementNode
	}
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
		if key := plain(pair["key"]); key != "" && pair["value"] != nil {
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
}

// next returns the values of the next row, valid until the following call. A
// row may go on in the next page.
func (l *parquetLeaf) next() ([]parquet.Value, error) {
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
		if n == 0 {
			l.leave()
		}
	}
	return nil
}

// leave gives a page back, with the memory that values of the row so far are in.
func (l *parquetLeaf) leave() {
	for i := range l.row {
		l.row[i] = l.row[i].Clone()
	}
	parquet.Release(l.page)
	l.page, l.values = nil, nil
}
