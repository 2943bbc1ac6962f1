package synth

import (
	"math"
	"testing"

	"reprise/trace"
)

// someCells is a small model of cells, without privacy.
func someCells() *Model {
	m := &Model{kSwap: 1, span: 3000, meta: trace.Meta{BlockSize: 16}, cells: &cellModel{requests: 500}}
	set := func(k tableKind, g ...group) { m.cells.tables[k] = g }
	set(tableGap, every([]cell{{0, 9, 3}, {10, 29, 1}}))
	set(tableCategory, newGroup(anyCategory, 0, 999, []cell{{1, 1, 2}}), every([]cell{{1, 1, 2}, {2, 2, 3}}))
	set(tableInput, newGroup(uncategorised, 0, math.MaxInt64, []cell{{0, 0, 1}}), newGroup(onTemplate, 5, 9, []cell{{10, 30, 1}}), every([]cell{{1, 99, 2}, {100, 900, 5}}))
	set(tableOutput, every([]cell{{5, 500, 1}}))
	set(tableTurn, every([]cell{{1, 1, 1}, {2, 9, 4}}))
	m.meta.Digest = m.cellDigest()
	m.finish()
	return m
}

// The rows of a model of cells, and its digest, which were written down so that
// files of earlier builds still read.
func TestCellRows(t *testing.T) {
	m := someCells()
	all := func(table string, lo, hi, count int64) cellRow {
		return cellRow{Table: table, Category: "any", To: math.MaxInt64, Lo: lo, Hi: hi, Count: count}
	}
	want := []cellRow{
		all("inter_arrival_ns", 0, 9, 3), all("inter_arrival_ns", 10, 29, 1),
		{Table: "category", Category: "any", To: 999, Lo: 1, Hi: 1, Count: 2}, all("category", 1, 1, 2), all("category", 2, 2, 3),
		{Table: "input_tokens", Category: "none", To: math.MaxInt64, Count: 1},
		{Table: "input_tokens", Category: "template", From: 5, To: 9, Lo: 10, Hi: 30, Count: 1},
		all("input_tokens", 1, 99, 2), all("input_tokens", 100, 900, 5), all("output_tokens", 5, 500, 1),
		all("turn", 1, 1, 1), all("turn", 2, 9, 4),
	}
	got := m.cells.rows()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("row %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	const digest = "sha256:d1e8775062e1cfc9460b6484c888d9a8ebf4358cda82ded295f87219ff9bd236"
	if m.meta.Digest != digest {
		t.Errorf("the digest is %s, want %s", m.meta.Digest, digest)
	}
	seen := map[string]string{digest: "nothing"}
	for what, change := range map[string]func(m *Model){
		"the block size": func(m *Model) { m.meta.BlockSize++ }, "the span": func(m *Model) { m.span++ }, "the requests": func(m *Model) { m.cells.requests++ },
		"the tier": func(m *Model) { m.meta.Tier = "internal" },
		"the unit": func(m *Model) { m.meta.Unit = UnitUser }, "the card": func(m *Model) { m.meta.Card = "{}" },
		"a table": func(m *Model) {
			m.cells.tables[tableOutput], m.cells.tables[tableHit] = nil, m.cells.tables[tableOutput]
		},
		"a category": func(m *Model) { m.cells.tables[tableOutput][0].category = cold },
		"a from":     func(m *Model) { m.cells.tables[tableOutput][0].from = 1 }, "a to": func(m *Model) { m.cells.tables[tableOutput][0].to = 1 },
		"a lo": func(m *Model) { m.cells.tables[tableOutput][0].cells[0].lo = 4 }, "a hi": func(m *Model) { m.cells.tables[tableOutput][0].cells[0].hi = 4 },
		"a count": func(m *Model) { m.cells.tables[tableOutput][0].cells[0].count = 4 },
	} {
		m := someCells()
		change(m)
		if old, ok := seen[m.cellDigest()]; ok {
			t.Errorf("the digest does not tell %s from %s", what, old)
		}
		seen[m.cellDigest()] = what
	}
}

// The values of each table have bounds: those at them are read, those beyond are not.
func TestCellBounds(t *testing.T) {
	const far = math.MaxInt64 / 4
	m := &Model{span: 1000, meta: trace.Meta{BlockSize: 16}, cells: &cellModel{}}
	for k, c := range [tableKinds][2]int64{tableGap: {0, far}, tableCategory: {0, 5}, tableInput: {0, 16 * maxBlocks}, tableOutput: {0, math.MaxInt32 / 2},
		tableHit: {0, maxBlocks}, tableFresh: {0, maxBlocks}, tableTrunk: {1, maxBlocks}, tableDistance: {0, far}, tableTurn: {0, math.MaxInt32 / 2}} {
		lo, hi := c[0], c[1]
		for _, x := range []struct {
			lo, hi int64
			want   string
		}{{lo, hi, ""}, {lo, lo, ""}, {hi, hi, ""}, {lo - 1, hi, "its values are out of order, or out of bounds"},
			{lo, hi + 1, "its values are out of order, or out of bounds"}, {lo + 1, lo, "its values are out of order, or out of bounds"}} {
			b := cellReader{m: m, at: -1}
			if got := b.add(&cellRow{Table: tableNames[k], Category: namedAny, To: math.MaxInt64, Lo: x.lo, Hi: x.hi, Count: 1}); got != x.want {
				t.Errorf("%s of %d to %d: %q, want %q", tableNames[k], x.lo, x.hi, got, x.want)
			}
		}
	}
	for size, most := range map[int]int64{0: maxBlocks, 1: maxBlocks, 64: math.MaxInt32 / 2, 63: 63 * maxBlocks} {
		m.meta.BlockSize = size
		for hi, want := range map[int64]string{most: "", most + 1: "its values are out of order, or out of bounds"} {
			if got := m.bounds(tableInput, &cellRow{Hi: hi}); got != want {
				t.Errorf("%d tokens in blocks of %d: %q, want %q", hi, size, got, want)
			}
		}
	}
}

// What is wrong with the rows of a file of cells, by the first that is.
func TestCellRowsChecked(t *testing.T) {
	row := func(table tableKind, c string, from, to, lo, hi, count int64) cellRow {
		return cellRow{Table: tableNames[table], Category: c, From: from, To: to, Lo: lo, Hi: hi, Count: count}
	}
	ok := row(tableOutput, namedAny, 5, 9, 3, 4, 7)
	const count, sums, given, above, order = "its count is not between 1 and 2^61", "the counts of its group add up to more than 2^61",
		"its bounds of the given values are out of order", "its values are not above the values of the row before",
		"its table is unknown, or out of order"
	for _, c := range []struct {
		r    cellRow
		want string
	}{
		{row(tableOutput, namedAny, 5, 9, 5, 6, 1), ""},
		{row(tableOutput, namedAny, 5, 9, 4, 6, 1), above},
		{row(tableOutput, namedAny, 5, 8, 3, 4, 1), ""},
		{row(tableOutput, namedAny, 6, 9, 3, 4, 1), ""},
		{row(tableOutput, namedNone, 5, 9, 3, 4, 1), ""},
		{row(tableOutput, "cold", 5, 9, 3, 4, 1), ""},
		{row(tableHit, namedAny, 5, 9, 3, 4, 1), ""},
		{row(tableInput, namedAny, 5, 9, 5, 6, 1), order},
		{cellRow{Table: "output"}, order},
		{row(tableOutput, "", 5, 9, 5, 6, 1), "its category is unknown"},
		{row(tableOutput, "warm", 5, 9, 5, 6, 1), "its category is unknown"},
		{row(tableOutput, namedAny, -1, 9, 5, 6, 1), given},
		{row(tableOutput, namedAny, 9, 8, 5, 6, 1), given},
		{row(tableOutput, namedAny, 0, 0, 5, 6, 1), ""},
		{row(tableOutput, namedAny, 5, 9, 5, 6, 0), count},
		{row(tableOutput, namedAny, 5, 9, 5, 6, maxWeight+1), count},
		{row(tableOutput, namedAny, 6, 9, 5, 6, maxWeight), ""},
		{row(tableOutput, namedAny, 5, 9, 5, 6, maxWeight-7), ""},
		{row(tableOutput, namedAny, 5, 9, 5, 6, maxWeight-6), sums},
	} {
		b := cellReader{m: &Model{span: 10, cells: &cellModel{}}, at: -1}
		if reason := b.add(&ok); reason != "" {
			t.Fatal(reason)
		}
		if got := b.add(&c.r); got != c.want {
			t.Errorf("%+v: %q, want %q", c.r, got, c.want)
		}
	}
}

// What is wrong with a file of cells as a whole.
func TestCellFileSaysWhatIsWrong(t *testing.T) {
	m := someCells()
	without := func(k tableKind) func(rows []cellRow) []cellRow {
		return func(rows []cellRow) (out []cellRow) {
			for _, r := range rows {
				if r.Table != tableNames[k] {
					out = append(out, r)
				}
			}
			return out
		}
	}
	const damaged = "the model is damaged: its rows do not match their digest"
	const requests, span = "its metadata reprise.fitted_requests is not a number from 1 to 2147483647", "its metadata reprise.span_ns is not a number from 1 to 4611686018427387903"
	for name, c := range map[string]struct {
		change func(rows []cellRow) []cellRow
		meta   map[string]string
		want   string
	}{
		"nothing":      {nil, nil, ""},
		"arrivals":     {without(tableGap), nil, "the model has no arrivals"},
		"input":        {without(tableInput), nil, "the model has no lengths"},
		"output":       {without(tableOutput), nil, "the model has no lengths"},
		"turns":        {without(tableTurn), nil, damaged},
		"a row":        {func(rows []cellRow) []cellRow { rows[4].Count = 0; return rows }, nil, "row 4 of the model: its count is not between 1 and 2^61"},
		"schema":       {nil, map[string]string{keySchema: "model/3"}, ErrNotModel.Error()},
		"an earlier":   {nil, map[string]string{keySchema: "model/1"}, errOldModel.Error()},
		"kind":         {nil, map[string]string{keyKind: kindPlaces}, "it is not a model of kind cells"},
		"requests":     {nil, map[string]string{keyRequests: "0"}, requests},
		"too many":     {nil, map[string]string{keyRequests: "2147483648"}, requests},
		"no number":    {nil, map[string]string{keyRequests: "many"}, requests},
		"more":         {nil, map[string]string{keyRequests: "2147483647"}, damaged},
		"span":         {nil, map[string]string{keySpan: "4611686018427387904"}, span},
		"both":         {nil, map[string]string{keySpan: "", keyRequests: ""}, requests + "\n" + span},
		"one":          {nil, map[string]string{keyRequests: "1"}, damaged},
		"size":         {nil, map[string]string{keyBlock: "0"}, "its metadata reprise.block_size is not a number from 1 to 1048576"},
		"a great size": {nil, map[string]string{keyBlock: "1048577"}, "its metadata reprise.block_size is not a number from 1 to 1048576"},
		"another size": {nil, map[string]string{keyBlock: "1048576"}, damaged},
	} {
		got := ""
		if _, err := read(rewrittenCells(t, m, c.change, c.meta)); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
