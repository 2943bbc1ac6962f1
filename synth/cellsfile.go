package synth

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"reprise/trace"
)

// writeCells writes the model file of cells.
func (m *Model) writeCells(w io.Writer) error {
	out := trace.NewRowsWriter[cellRow](w, nil)
	if _, err := out.Write(m.cells.rows()); err != nil {
		return err
	}
	out.SetMetadata(keySchema, modelSchema)
	out.SetMetadata(keyKind, kindCells)
	out.SetMetadata(keyRequests, strconv.FormatInt(m.cells.requests, 10))
	out.SetMetadata(keySpan, strconv.FormatInt(m.span, 10))
	if m.meta.BlockSize > 0 {
		out.SetMetadata(keyBlock, strconv.Itoa(m.meta.BlockSize))
	}
	for _, p := range inherited(&m.meta) {
		if *p.value != "" {
			out.SetMetadata(p.key, *p.value)
		}
	}
	out.SetMetadata(keyPrivacy, cellsNote)
	return out.Close()
}

// readCells reads what writeCells wrote, and refuses what it could not have.
func readCells(in *trace.RowsReader[cellRow]) (*Model, error) {
	m := &Model{kSwap: 1, cells: &cellModel{}}
	if err := m.cellMetadata(in.Metadata); err != nil {
		return nil, err
	}
	b := cellReader{m: m, at: -1}
	if err := trace.Each(in, b.row); err != nil {
		return nil, err
	}
	if err := b.finish(); err != nil {
		return nil, err
	}
	if m.cellDigest() != m.meta.Digest {
		return nil, errors.New("the model is damaged: its rows do not match their digest")
	}
	m.finish()
	return m, nil
}

func (m *Model) cellMetadata(lookup func(string) (string, bool)) error {
	if kind, _ := lookup(keyKind); kind != kindCells {
		return errors.New("it is not a model of kind " + kindCells)
	}
	number := func(key string, most int64, n *int64) error {
		s, _ := lookup(key)
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < 1 || v > most {
			return fmt.Errorf("its metadata %s is not a number from 1 to %d", key, most)
		}
		*n = v
		return nil
	}
	if err := errors.Join(number(keyRequests, math.MaxInt32, &m.cells.requests),
		number(keySpan, math.MaxInt64/2, &m.span)); err != nil {
		return err
	}
	if _, ok := lookup(keyBlock); ok {
		var n int64
		if err := number(keyBlock, 1<<20, &n); err != nil {
			return err
		}
		m.meta.BlockSize = int(n)
	}
	for _, p := range inherited(&m.meta) {
		*p.value, _ = lookup(p.key)
	}
	return nil
}

// A cellReader builds the tables from their rows.
type cellReader struct {
	m     *Model
	at    int   // table of the last row
	group group // so far
}

func (b *cellReader) row(i int64, r *cellRow) error {
	if reason := b.add(r); reason != "" {
		return fmt.Errorf("row %d of the model: %s", i, reason)
	}
	return nil
}

func (b *cellReader) add(r *cellRow) string {
	k := slices.Index(tableNames[:], r.Table)
	c := categoryOf(r.Category)
	ok := c != uncategorised
	switch r.Category {
	case namedAny:
		c, ok = anyCategory, true
	case namedNone:
		c, ok = uncategorised, true
	}
	switch {
	case r.Category == trace.Global:
		return "it is of an earlier version, whose category global is called template now: fit the histograms again " +
			"with reprise synth fit"
	case k < 0 || k < b.at:
		return "its table is unknown, or out of order"
	case !ok:
		return "its category is unknown"
	case r.From < 0 || r.To < r.From:
		return "its bounds of the given values are out of order"
	case r.Count < 1 || r.Count > maxWeight:
		return "its count is not between 1 and 2^61"
	}
	if reason := b.m.bounds(tableKind(k), r); reason != "" {
		return reason
	}
	if g := &b.group; k != b.at || c != g.category || r.From != g.from || r.To != g.to {
		b.flush()
		b.at, b.group = k, group{category: c, from: r.From, to: r.To}
	}
	g := &b.group
	if n := len(g.cells); n > 0 && r.Lo <= g.cells[n-1].hi {
		return "its values are not above the values of the row before"
	}
	sum := r.Count
	if n := len(g.sums); n > 0 {
		sum += g.sums[n-1]
	}
	if sum > maxWeight {
		return "the counts of its group add up to more than 2^61"
	}
	g.cells, g.sums = append(g.cells, cell{r.Lo, r.Hi, r.Count}), append(g.sums, sum)
	return ""
}

// bounds says what is wrong with the values of a row of table k.
func (m *Model) bounds(k tableKind, r *cellRow) string {
	least, most := int64(0), int64(math.MaxInt64/4)
	switch k {
	case tableCategory:
		most = int64(branch)
	case tableInput:
		most = min(math.MaxInt32/2, maxBlocks*int64(max(1, m.meta.BlockSize)))
	case tableOutput, tableTurn:
		most = math.MaxInt32 / 2
	case tableTrunk:
		least, most = 1, maxBlocks
	case tableHit, tableFresh:
		most = maxBlocks
	}
	if r.Lo < least || r.Hi < r.Lo || r.Hi > most {
		return "its values are out of order, or out of bounds"
	}
	return ""
}

func (b *cellReader) flush() {
	if len(b.group.cells) > 0 {
		b.m.cells.tables[b.at] = append(b.m.cells.tables[b.at], b.group)
	}
}

// finish checks what only the whole tells.
func (b *cellReader) finish() error {
	b.flush()
	t := &b.m.cells.tables
	if t[tableGap].groupFor(anyCategory, 0) == nil {
		return errors.New("the model has no arrivals")
	}
	if t[tableInput] == nil || t[tableOutput] == nil {
		return errors.New("the model has no lengths")
	}
	return nil
}
