package audit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"reprise/anonymize"
	"reprise/trace"
)

// A pairCopies says how many rows of an output have the exact two lengths of a request of
// the source, and how many would by chance: if the outputs of rows were shuffled within
// each octave of both lengths.
type pairCopies struct {
	Rows   int     `json:"rows"`
	Copied int     `json:"copied"`
	Chance float64 `json:"by_chance"`
}

// mostCopied is the share of rows beyond chance that may be copies.
const mostCopied = 0.005

// Beyond reports whether more are copied than chance explains.
func (p pairCopies) Beyond() bool {
	more := float64(p.Copied) - p.Chance
	return more > mostCopied*float64(p.Rows) && more > 4*math.Sqrt(p.Chance)
}

// String is a line for people.
func (p pairCopies) String() string {
	n := float64(max(1, p.Rows))
	return fmt.Sprintf("%.2f %% of the rows have the two lengths of a request of the source, %.2f %% by chance",
		100*float64(p.Copied)/n, 100*p.Chance/n)
}

// A lengthPair is sorted by the octaves of its lengths, then by these.
type lengthPair struct{ in, out int32 }

func comparePairs(a, b lengthPair) int {
	return cmp.Or(compareCells(a, b), cmp.Compare(a.in, b.in), cmp.Compare(a.out, b.out))
}

func compareCells(a, b lengthPair) int {
	octave := func(n int32) int { return bits.Len32(uint32(max(n, 0))) }
	return cmp.Or(cmp.Compare(octave(a.in), octave(b.in)), cmp.Compare(octave(a.out), octave(b.out)))
}

// copiedPairs compares the pairs of an output with those of its source.
func copiedPairs(ctx context.Context, src, out anonymize.Source) (p pairCopies, err error) {
	var of [2][]lengthPair
	for i, s := range []anonymize.Source{src, out} {
		err := eachRow(ctx, s, func(_ int64, r *trace.Request) error {
			of[i] = append(of[i], lengthPair{r.InputTokens, r.OutputOr(-1)})
			return nil
		})
		if err != nil {
			return p, err
		}
		slices.SortFunc(of[i], comparePairs)
	}
	real, rows := slices.Compact(of[0]), of[1]
	p.Rows = len(rows)
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && compareCells(rows[0], rows[n]) == 0 {
			n++
		}
		ins, outs := map[int32]int{}, map[int32]int{}
		for _, r := range rows[:n] {
			ins[r.in]++
			outs[r.out]++
			if _, ok := slices.BinarySearchFunc(real, r, comparePairs); ok {
				p.Copied++
			}
		}
		at, _ := slices.BinarySearchFunc(real, rows[0], compareCells)
		for ; at < len(real) && compareCells(real[at], rows[0]) == 0; at++ {
			p.Chance += float64(ins[real[at].in]) * float64(outs[real[at].out]) / float64(n)
		}
		rows = rows[n:]
	}
	return p, nil
}
