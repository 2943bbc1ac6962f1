package release

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"reprise/trace/sample"
)

// A random draws whole numbers, the same on every machine.
type random struct{ pcg *rand.PCG }

// streams of random numbers that the seed of a generation drives.
const (
	forSessions = iota + 1
	forStarts
)

func newRandom(seed, stream uint64) random {
	return random{rand.NewPCG(sample.Key(seed, stream), stream)}
}

// below is uniform in [0, n), but for less than n in 2^64.
func (r random) below(n int64) int64 {
	hi, _ := bits.Mul64(r.pcg.Uint64(), uint64(n))
	return int64(hi)
}

// between is uniform in [lo, hi), and lo where that is empty.
func (r random) between(lo, hi int64) int64 {
	if hi <= lo {
		return lo
	}
	return lo + r.below(hi-lo)
}

func shuffle[T any](r random, x []T) {
	for i := len(x) - 1; i > 0; i-- {
		j := r.below(int64(i + 1))
		x[i], x[j] = x[j], x[i]
	}
}

// Dice draw cells in proportion to their weights: they are running sums.
type dice []int64

func newDice(weights []int64) dice {
	d := slices.Clone(weights)
	for i := 1; i < len(d); i++ {
		d[i] += d[i-1]
	}
	return d
}

func (d dice) total() int64 {
	if len(d) == 0 {
		return 0
	}
	return d[len(d)-1]
}

// quota draws n cells, each as often as its weight asks for, within one; in random
// order.
func (d dice) quota(r random, n int) []int32 {
	out := make([]int32, n)
	if d.total() == 0 {
		return out
	}
	cell := 0
	for i := range out {
		u := (int64(i)*d.total() + r.below(d.total())) / int64(n)
		for d[cell] <= u {
			cell++
		}
		out[i] = int32(cell)
	}
	shuffle(r, out)
	return out
}

// A deck deals cells: of so many in a row, each as often as its weight asks for, so that
// totals vary less than those of dice would.
type deck struct {
	dice
	dealt []int32
}

const deckSize = 512

func (d *deck) draw(r random) int {
	if len(d.dealt) == 0 {
		d.dealt = d.quota(r, deckSize)
	}
	c := d.dealt[0]
	d.dealt = d.dealt[1:]
	return int(c)
}

// rowsOf are the decks of the rows of a table.
func rowsOf(weights []int64, columns int) (out []*deck) {
	for i := 0; columns > 0 && i+columns <= len(weights); i += columns {
		out = append(out, &deck{dice: newDice(weights[i : i+columns])})
	}
	return out
}

// mulDiv is x·num/den rounded down, for a result within 63 bits.
func mulDiv(x, num, den int64) int64 {
	hi, lo := bits.Mul64(uint64(x), uint64(num))
	q, _ := bits.Div64(hi, lo, uint64(den))
	return int64(q)
}
