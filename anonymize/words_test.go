package anonymize

import (
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/trace/block"
)

// Keys come back from words one by one, and stretches end with their fields.
func TestWords(t *testing.T) {
	numbered := block.NewIDs(0, 0)
	for lo := range uint64(9) {
		numbered.ID(3, 1000+lo)
	}
	numbered.Freeze()
	lists := [][]key{{}, {{0, 0}}, {{0, 1}, {0, 2}}, {{0, 1}, {1, 2}}, {{1, 7}, {1, 8}, {1, 8}, {1, 7}},
		{{2, ^uint64(0)}, {2, 0}, {2, 1}}, {{0, 1<<62 - 1}, {0, 1 << 62}, {5, 1<<62 + 1}, {5, 3}}}
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		var list []key
		for k := (key{}); len(list) < 40; {
			if rnd.IntN(3) == 0 {
				k = key{rnd.Uint64N(3), rnd.Uint64() >> rnd.IntN(64)}
			}
			for range rnd.Uint64N(1 << rnd.IntN(11)) {
				list = append(list, k)
				k = k.plus(1)
			}
		}
		lists = append(lists, list)
	}
	for _, list := range lists {
		var words []uint64
		var want, got []key
		var w keyWriter
		var numbers []uint64
		for range rnd.IntN(4) { // what is numbered comes before what is not
			for n := rnd.IntN(9); n < 9 && rnd.IntN(8) > 0; n++ {
				words, numbers = w.number(words, n), append(numbers, uint64(n))
				want = append(want, key{3, 1000 + uint64(n)})
			}
		}
		if got, err := appendNumbers(nil, words); err != nil || !slices.Equal(got, numbers) {
			t.Fatalf("the numbers %v came back as %v: %v", numbers, got, err)
		}
		for _, k := range list {
			words = w.append(words, k)
		}
		r := keyReader{words: words, numbered: numbered}
		for {
			k, n, err := r.nextStretch()
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
			if last := k.plus(n - 1); k.lo>>fieldBits != last.lo>>fieldBits {
				t.Fatalf("a stretch from %d to %d", k.lo, last.lo)
			}
			for i := range n {
				got = append(got, k.plus(i))
			}
		}
		if want = append(want, list...); !slices.Equal(got, want) {
			t.Fatalf("%v came back as %v", want, got)
		}
	}
	for _, words := range [][]uint64{{1<<wordBits | wordRun}, {wordKey}, {wordKey, 1, 1<<wordBits | wordRun, 1<<wordBits | wordRun}} {
		r := keyReader{words: words, numbered: numbered}
		for n, err := 1, error(nil); err == nil; _, n, err = r.nextStretch() {
			if n == 0 {
				t.Errorf("%v are the words of a list", words)
				break
			}
		}
	}
}
