package arrival

import (
	"encoding/binary"
	"slices"
	"testing"
)

func someRows(t testing.TB) []CascadeRow {
	const span = 120e9
	return fitted(t, bursty(6, span), span).Rows()
}

func TestCascadeRowsRoundTrip(t *testing.T) {
	rows := someRows(t)
	if !slices.IsSortedFunc(rows, CascadeRow.compare) {
		t.Error("rows are out of order")
	}
	c, err := NewCascade(rows)
	if err != nil {
		t.Fatal(err)
	}
	if again := c.Rows(); !slices.Equal(again, rows) {
		t.Error("rows changed")
	}
	const span = 120e9
	a := timesOf(c, Stream(1, "c"), 5000, span)
	if b := timesOf(fitted(t, bursty(6, span), span), Stream(1, "c"), 5000, span); !slices.Equal(a, b) {
		t.Error("a stored cascade draws other instants")
	}
	rows[5].Count++
	if c.Rows()[5] == rows[5] {
		t.Error("the caller's rows are those of the cascade")
	}
}

func TestNewCascadeRefuses(t *testing.T) {
	rows := someRows(t)
	first := func(kind int64) int {
		return slices.IndexFunc(rows, func(r CascadeRow) bool { return r.Kind == kind })
	}
	change := func(i int, f func(*CascadeRow)) []CascadeRow {
		bad := slices.Clone(rows)
		f(&bad[i])
		return bad
	}
	coarse, split, gap := first(cascadeCoarse), first(cascadeSplit), first(cascadeGap)
	for name, bad := range map[string][]CascadeRow{
		"nothing":            nil,
		"only a head":        rows[:1],
		"no head":            rows[1:],
		"no coarse rows":     slices.Concat(rows[:1], rows[split:]),
		"a coarse row lost":  slices.Delete(slices.Clone(rows), coarse, coarse+1),
		"a row twice":        slices.Insert(slices.Clone(rows), split, rows[split]),
		"two heads":          slices.Insert(slices.Clone(rows), 0, rows[0]),
		"levels":             change(0, func(r *CascadeRow) { r.Level = 41 }),
		"negative levels":    change(0, func(r *CascadeRow) { r.Level = -1 }),
		"wide bins":          change(0, func(r *CascadeRow) { r.Right = 1 << 57 }),
		"span":               change(0, func(r *CascadeRow) { r.Right = -5 }),
		"head with a bin":    change(0, func(r *CascadeRow) { r.Bin = 1 }),
		"negative count":     change(coarse, func(r *CascadeRow) { r.Count = -1 }),
		"coarse bin":         change(coarse, func(r *CascadeRow) { r.Bin = 9 }),
		"split of one":       change(split, func(r *CascadeRow) { r.Left, r.Right = 0, 1 }),
		"split busyness":     change(split, func(r *CascadeRow) { r.Bin++ }),
		"split contrast":     change(split, func(r *CascadeRow) { r.Contrast = contrasts }),
		"split level":        change(split, func(r *CascadeRow) { r.Level = -1 }),
		"split count":        change(split, func(r *CascadeRow) { r.Count = 0 }),
		"huge count":         change(split, func(r *CascadeRow) { r.Count = maxCount + 1 }),
		"negative split":     change(split, func(r *CascadeRow) { r.Left = -1 }),
		"reversed gap":       change(gap, func(r *CascadeRow) { r.Left, r.Right = 9, 8 }),
		"long gap":           change(gap, func(r *CascadeRow) { r.Right = 1 << 30 }),
		"gap level":          change(gap, func(r *CascadeRow) { r.Level++ }),
		"long window":        append(slices.Clone(rows), CascadeRow{Kind: cascadeDispersion, Bin: 1 << 40, Count: 1}),
		"windows of nothing": append(slices.Clone(rows), CascadeRow{Kind: cascadeDispersion, Count: 1}),
		"no dispersion":      append(slices.Clone(rows), CascadeRow{Kind: cascadeDispersion, Bin: 1}),
		"dispersion level":   append(slices.Clone(rows), CascadeRow{Kind: cascadeDispersion, Bin: 1, Count: 1, Level: 1}),
		"unknown kind":       change(len(rows)-1, func(r *CascadeRow) { r.Kind = 4 }),
		"few arrivals":       {{Kind: cascadeHead, Right: 5000, Count: 1}, {Kind: cascadeCoarse, Count: 1}},
	} {
		if _, err := NewCascade(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Rows of any content are refused or make a cascade that keeps its promises.
func FuzzNewCascade(f *testing.F) {
	const fields = 7
	encode := func(rows []CascadeRow) (b []byte) {
		for _, r := range rows {
			for _, v := range []int64{r.Kind, r.Level, r.Contrast, r.Bin, r.Left, r.Right, r.Count} {
				b = binary.AppendVarint(b, v)
			}
		}
		return b
	}
	f.Add(encode([]CascadeRow{{Kind: cascadeHead, Right: 5000, Count: 1}, {Kind: cascadeCoarse, Count: 3}}), uint16(100), int64(17_000))
	times := bursty(8, 5e9)
	f.Add(encode(fitted(f, times, 5e9).Rows()), uint16(len(times)), int64(5e9))
	f.Fuzz(func(t *testing.T, b []byte, n uint16, span int64) {
		var rows []CascadeRow
		for len(b) > 0 && len(rows) < 10_000 {
			var v [fields]int64
			for i := range v {
				x, size := binary.Varint(b)
				if size <= 0 {
					return
				}
				v[i], b = x, b[size:]
			}
			rows = append(rows, CascadeRow{v[0], v[1], v[2], v[3], v[4], v[5], v[6]})
		}
		c, err := NewCascade(rows)
		if err != nil {
			return
		}
		if !slices.Equal(c.Rows(), rows) {
			t.Fatal("rows changed")
		}
		if span > 0 {
			checkTimes(t, timesOf(c, Stream(1, "fuzz"), int(n), span), int(n), span)
		}
	})
}
