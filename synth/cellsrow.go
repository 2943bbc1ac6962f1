package synth

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"reprise/trace"
)

// A cellRow is one cell of a model of cells, the other kind of file of schema
// model/2: so many requests of a category whose given quantity lies between
// From and To have a value between Lo and Hi, all bounds included. Rows are in
// order of the tables; of the groups of one table the first that fits counts.
type cellRow struct {
	trace.Row `parquet:"-"`
	Table     string `parquet:"table,dict"`    // the quantity, its unit last
	Category  string `parquet:"category,dict"` // any, or a reuse category; none for requests without blocks
	From      int64  `parquet:"given_from"`
	To        int64  `parquet:"given_to"`
	Lo        int64  `parquet:"lo"`
	Hi        int64  `parquet:"hi"`
	Count     int64  `parquet:"count"`
}

const (
	namedAny  = "any"
	namedNone = "none"
)

func (c category) named() string {
	switch c {
	case anyCategory:
		return namedAny
	case uncategorised:
		return namedNone
	}
	return c.String()
}

// rows lists the tables as rows.
func (m *cellModel) rows() []cellRow {
	var out []cellRow
	for k, t := range m.tables {
		for _, g := range t {
			for _, c := range g.cells {
				out = append(out, cellRow{Table: tableNames[k], Category: g.category.named(), From: g.from, To: g.to,
					Lo: c.lo, Hi: c.hi, Count: c.count})
			}
		}
	}
	return out
}

// cellDigest is the SHA-256 over all that a workload depends on, and what the
// model says about its privacy.
func (m *Model) cellDigest() string {
	h := sha256.New()
	h.Write([]byte(modelSchema + " " + kindCells + "\n"))
	var b []byte
	str := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	num := func(n ...int64) {
		for _, v := range n {
			b = binary.AppendVarint(b, v)
		}
	}
	num(int64(m.meta.BlockSize), m.span, m.cells.requests)
	for _, s := range []string{m.meta.Tier, m.meta.Unit, m.meta.Card} {
		str(s)
	}
	for _, r := range m.cells.rows() {
		str(r.Table)
		str(r.Category)
		num(r.From, r.To, r.Lo, r.Hi, r.Count)
	}
	h.Write(b)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
