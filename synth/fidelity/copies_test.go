package fidelity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/trace"
	"reprise/trace/longtest"
)

// Answers of a few tokens repeat whole chains by chance, which is no copy; that of the trace is one.
func TestFewLengthsAreNoCopies(t *testing.T) {
	meta := trace.Meta{BlockSize: 8, Convention: trace.PartialTail}
	answered := func(seed uint64, most int) []trace.Request {
		rng := rand.New(rand.NewPCG(seed, 9))
		rows := burst(chatTrace{seed: 31, n: 500, size: 8}.rows())
		for i := range rows {
			rows[i].OutputTokens = trace.Ptr(int32(1 + rng.IntN(most)))
		}
		return rows
	}
	repeated := func(ref, cand []trace.Request) float64 {
		f := compared(t, meta, ref, cand)
		return *f.Measures[slices.IndexFunc(f.Measures, func(m Measure) bool { return m.Name == chainExactName })].Distance
	}

	for seed := range uint64(5) {
		if got := repeated(answered(2*seed, 2), answered(2*seed+1, 2)); got > 0 {
			t.Errorf("unrelated answers repeat %.3f of the chains", got)
		}
	}
	for _, most := range []int{2, 1000} {
		if got := repeated(answered(1, most), answered(1, most)); got < 0.1 {
			t.Errorf("a copy with answers of up to %d tokens repeats %.3f of the chains", most, got)
		}
	}
}

// problems are prompts that grow, one after the other, with answers of all lengths; or every other one is a verdict of
// a few tokens.
func problems(seed uint64, n int, verdicts bool) (rows []trace.Request) {
	rng, next := rand.New(rand.NewPCG(seed, 6)), seed<<32
	id := func() uint64 { next++; return next }
	var path []uint64
	var tokens int32
	for i := range n {
		if i%10 == 0 {
			path, tokens = nil, 1500+rng.Int32N(1500)
		}
		tokens += 20 + rng.Int32N(200)
		for len(path) < int(tokens-1)/512 {
			path = append(path, id())
		}
		output := int32(1 + 200*math.Exp(rng.NormFloat64()))
		if verdicts && i%2 > 0 {
			output = 1 + rng.Int32N(4)
		}
		rows = append(rows, trace.Request{ArrivalNS: int64(i) * 1e9, InputTokens: tokens,
			OutputTokens: &output, Blocks: append(slices.Clone(path), id())})
	}
	return rows
}

// withCopies has the requests of a stretch of others, at its place, as they are or with lengths that jitter.
func withCopies(rows, of []trace.Request, from, n int, jitter float64) []trace.Request {
	rng, out := rand.New(rand.NewPCG(7, 7)), slices.Clone(rows)
	for i := from; i < from+n; i++ {
		r, block := of[i], int32(512*(len(of[i].Blocks)-1))
		by := func(n int32, share float64) int32 {
			return int32(math.Round(float64(n) * (1 + share*jitter*(2*rng.Float64()-1))))
		}
		r.InputTokens = max(block+1, min(by(r.InputTokens, 0.5), block+512))
		r.OutputTokens = trace.Ptr(max(1, by(*r.OutputTokens, 1)))
		out[i] = r
	}
	return out
}

// Another part of the same traffic is no copy, whatever of it repeats by chance. A stretch of the trace is one.
func TestCopiesAreFoundAndPartsAreNone(t *testing.T) {
	longtest.Skip(t)
	meta := trace.Meta{BlockSize: 512, Convention: trace.PartialTail}
	failed := func(ref, cand []trace.Request) (names []string) {
		c := comparison{ref: tallyOf(t, signatureOf(t, meta, ref, Options{})),
			cand: tallyOf(t, signatureOf(t, meta, cand, Options{}))}
		c.pairs()
		c.copies()
		limits := DefaultThresholds(int64(len(ref)))
		for _, m := range c.f.Measures {
			if m.Distance != nil && *m.Distance > limits[m.Name] {
				names = append(names, m.Name)
			}
		}
		return names
	}

	for _, verdicts := range []bool{false, true} {
		for _, n := range []int{300, 1000} {
			var off [][]string
			for seed := range uint64(6) {
				if names := failed(problems(2*seed+1, n, verdicts), problems(2*seed+2, n, verdicts)); names != nil {
					off = append(off, names)
				}
			}
			if len(off) > 1 { // chance gives what it gives once in a hundred times
				t.Errorf("verdicts %v, %d requests: %d of 6 parts fail: %v", verdicts, n, len(off), off)
			}
		}

		const n = 4000
		ref, part := problems(1, n, verdicts), problems(2, n, verdicts)
		for _, copied := range []int{n / 100, n / 20, n} {
			for _, jitter := range []float64{0, 0.04} {
				// Of verdicts, some 40 chains that are near are as many as come by chance.
				names := failed(ref, withCopies(part, ref, (n-copied)/2, copied, jitter))
				if names == nil && !(verdicts && copied == n/100 && jitter > 0) {
					t.Errorf("verdicts %v: %d copied requests with a jitter of %v are not found", verdicts, copied, jitter)
				}
			}
		}
	}
}

// jobs are a third of all requests: a batch of one prompt, with texts of about the same length, that asks for answers
// of 256 tokens. The others are conversations.
func jobs(seed uint64, n int) []trace.Request {
	rng, id := rand.New(rand.NewPCG(seed, 8)), seed<<32|1<<31
	rows := problems(seed, n, false)
	for i := n / 3; i < 2*n/3; i++ {
		tokens := 1730 + int32(60*math.Exp(rng.NormFloat64()/2))
		rows[i] = trace.Request{ArrivalNS: int64(i) * 1e9, InputTokens: tokens, OutputTokens: trace.Ptr[int32](256),
			Blocks: []uint64{1, 2, 3}}
		for len(rows[i].Blocks) < int(tokens+511)/512 {
			id++
			rows[i].Blocks = append(rows[i].Blocks, id)
		}
	}
	return rows
}

// A batch of one answer length repeats inputs, and with them pairs and chains, in any two of its parts. That is no
// copy, and copies beside it, or of it all, still are.
func TestBatchesAreNoCopies(t *testing.T) {
	meta := trace.Meta{BlockSize: 512, Convention: trace.PartialTail}
	measured := func(ref, cand []trace.Request) comparison {
		c := comparison{ref: tallyOf(t, signatureOf(t, meta, ref, Options{})),
			cand: tallyOf(t, signatureOf(t, meta, cand, Options{}))}
		c.pairs()
		c.copies()
		return c
	}
	distance := func(c comparison, name string) float64 { m, _ := c.f.Measure(name); return *m.Distance }
	const n = 2000
	names := []string{pairMatchName, uniquePairMatchName, chainNearName}

	beyond := map[string]int{}
	for seed := range uint64(8) {
		c := measured(jobs(2*seed+1, n), jobs(2*seed+2, n))
		for _, name := range names {
			if distance(c, name) > DefaultThresholds(n)[name] {
				beyond[name]++
			}
		}
	}
	for name, times := range beyond {
		if times > 1 { // chance gives what it gives once in a hundred times
			t.Errorf("%s is beyond its limit in %d of 8 other batches", name, times)
		}
	}

	ref := jobs(1, n)
	for _, copied := range []int{n / 20, n / 4, n} {
		c := measured(ref, withCopies(jobs(2, n), ref, 0, copied, 0))
		if of := distance(c, pairMatchName); of < 0.5*float64(copied)/n || of > 1.5*float64(copied)/n {
			t.Errorf("of %d copied requests in %d the share found is %.3f", copied, n, of)
		}
		if distance(c, chainExactName) == 0 || distance(c, chainNearName) < DefaultThresholds(n)[chainNearName] {
			t.Errorf("%d copied requests in %d have no chains of the trace", copied, n)
		}
	}
}

// What parts of a trace have in common is chance, and what a candidate has more of is not. Without parts, or where
// dealing gives as much, dealing decides.
func TestRepeatsBeyondChance(t *testing.T) {
	for name, c := range map[string]struct {
		r    repeats
		want float64
	}{
		"nothing found":              {repeats{of: 1000, parts: 0.1, partsOf: 1000}, 0},
		"as much as dealt":           {repeats{found: 0.1, chance: 0.1, of: 1000}, 0},
		"more than dealt":            {repeats{found: 0.2, chance: 0.1, of: 1000}, 0.1},
		"parts repeat as much":       {repeats{0.2, 0.05, 1000, 0.12, 0.12, 1000}, 0},
		"parts repeat more":          {repeats{0.2, 0.05, 1000, 0.12, 0.2, 1000}, 0},
		"parts repeat less":          {repeats{0.4, 0.05, 1000, 0.25, 0.1, 1000}, 0.3},
		"parts repeat by dealing":    {repeats{0.4, 0.1, 1000, 0.2, 0.05, 1000}, 0.3},
		"too few to tell from parts": {repeats{0.4, 0.05, 20, 0.25, 0.2, 20}, 0},
		"a copy of all":              {repeats{1, 0.05, 1000, 0.55, 0.1, 1000}, 0.9},
	} {
		if got := c.r.above(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Conversations are in one part as a whole, whether the source names them or not, and prompts that share no more than
// their beginning are not.
func TestPartsHaveWholeConversations(t *testing.T) {
	rows := problems(1, 10*partRows, false)
	for i := range rows {
		rows[i].OutputTokens = trace.Ptr[int32](20) // of which the next turn holds all
	}
	for _, sessions := range []string{"", sourceSessions} {
		meta := trace.Meta{BlockSize: 512, Convention: trace.PartialTail, Sessions: sessions}
		for i := range rows {
			if rows[i].Session = nil; sessions != "" {
				rows[i].Session = trace.Ptr(int64(i / 10))
			}
		}
		list, first := tallyOf(t, signatureOf(t, meta, rows, Options{})).kept.firstPart(inFirstPart), 0
		for i := range list {
			if list[i] != list[i/10*10] {
				t.Fatalf("%q: row %d is in another part than the conversation that it belongs to", sessions, i)
			}
			if list[i] {
				first++
			}
		}
		if first < 3*partRows || first > 7*partRows {
			t.Errorf("%q: the first part has %d of %d rows", sessions, first, len(list))
		}
	}

	batch := jobs(1, 30*partRows)[10*partRows : 20*partRows]
	list := tallyOf(t, signatureOf(t, trace.Meta{BlockSize: 512, Convention: trace.PartialTail}, batch,
		Options{})).kept.firstPart(inFirstPart)
	moved := 0
	for i := range list {
		if list[i] != inFirstPart(int64(i)) {
			moved++
		}
	}
	if moved > len(list)/20 {
		t.Errorf("%d of %d requests of a batch follow another", moved, len(list))
	}
}

// Outputs of one order are dealt among themselves.
func TestOutputsAlike(t *testing.T) {
	plain := outputClasses{}
	for _, c := range []struct {
		a, b  int64
		alike bool
	}{{-1, 1, true}, {1, 7, true}, {7, 8, false}, {8, 31, true}, {31, 32, false}, {32, 127, true}} {
		if got := plain.class(c.a) == plain.class(c.b); got != c.alike {
			t.Errorf("%d and %d tokens are alike: %v", c.a, c.b, got)
		}
	}

	outputs := make([]int32, 400)
	for i := range outputs {
		outputs[i] = []int32{2, 300}[i%2] + int32(i/2%3)
	}
	counts := valueCounts{}
	for _, output := range outputs {
		counts[int64(output)]++
	}
	moved, now := 0, plain.dealt(outputs, rand.New(rand.NewPCG(1, 1)))
	for i, output := range now {
		if outputs[i] < 100 != (output < 100) {
			t.Fatalf("%d tokens are dealt to a request with %d", output, outputs[i])
		}
		if output != outputs[i] {
			moved++
		}
		counts[int64(output)]--
	}
	for output, n := range counts {
		if n != 0 {
			t.Errorf("%d more requests had %d tokens", n, output)
		}
	}
	if moved < 200 {
		t.Errorf("%d of %d outputs moved", moved, len(outputs))
	}
}

// Traffic whose lengths grow is not linked to other such traffic, but to its copy.
func TestDriftIsNotLinkage(t *testing.T) {
	longtest.Skip(t)
	meta := trace.Meta{BlockSize: 8, Convention: trace.PartialTail}
	grown := func(seed uint64) []trace.Request {
		rng := rand.New(rand.NewPCG(seed, 5))
		rows := burst(chatTrace{seed: 31, n: 500, size: 8}.rows())
		for i := range rows {
			in := int32(float64(2000+30*i) * math.Exp(rng.NormFloat64()/2))
			rows[i].InputTokens, rows[i].Blocks = in, nil
			rows[i].OutputTokens = trace.Ptr(int32(100 * math.Exp(rng.NormFloat64())))
		}
		return rows
	}
	kept := func(rows []trace.Request) *keptRows { return tallyOf(t, signatureOf(t, meta, rows, Options{})).kept }

	var apart float64
	const pairs = 10
	for seed := range uint64(pairs) {
		other := linked(kept(grown(2*seed)), kept(grown(2*seed+1)))
		apart += (other.found - other.chance) / pairs
	}
	if math.Abs(apart) > 0.01 {
		t.Errorf("unrelated traffic is linked by %.3f", apart)
	}
	if same := linked(kept(grown(1)), kept(grown(1))); same.found-same.chance < 0.5 {
		t.Errorf("a copy is linked by %.3f", same.found-same.chance)
	}
}

// bursts are single requests that come in bursts of 30 from one of 40 jobs, each with lengths of its own. Which job
// comes when is the same for every seed, and the lengths of a request are not.
func bursts(seed uint64, n int) (rows []trace.Request) {
	jobs, rng := rand.New(rand.NewPCG(9, 9)), rand.New(rand.NewPCG(seed, 9))
	var lengths [40][2]float64
	for i := range lengths {
		lengths[i] = [2]float64{300 * math.Exp(2*jobs.Float64()), 10 * math.Exp(4*jobs.Float64())}
	}
	job := lengths[0]
	for i := range n {
		if i%30 == 0 {
			job = lengths[jobs.IntN(len(lengths))]
		}
		in, out := job[0]*math.Exp(rng.NormFloat64()/8), job[1]*math.Exp(rng.NormFloat64()/8)
		rows = append(rows, trace.Request{ArrivalNS: int64(i) * 1e9, InputTokens: int32(in),
			OutputTokens: trace.Ptr(1 + int32(out))})
	}
	return rows
}

// Who is in a burst of requests that are alike is not known from another such burst at its place, although more is
// found there than elsewhere. Requests of the trace, with lengths that jitter, still are.
func TestBurstsAreNotLinkage(t *testing.T) {
	const n = 4000
	kept := func(rows []trace.Request) *keptRows {
		return tallyOf(t, signatureOf(t, trace.Meta{}, rows, Options{})).kept
	}
	ref, other := bursts(1, n), bursts(2, n)
	if r := linked(kept(ref), kept(other)); r.found < r.chance+0.1 || r.above() > 0.02 {
		t.Errorf("other requests in bursts of the same jobs are linked by %.3f: %+v", r.above(), r)
	}

	rng := rand.New(rand.NewPCG(10, 10))
	for _, copied := range []int{n / 4, n} {
		cand := slices.Clone(other)
		for i := range cand[:copied] {
			near := func(v int32) int32 { return int32(math.Round(float64(v) * (1 + 0.04*(2*rng.Float64()-1)))) }
			cand[i].InputTokens = near(ref[i].InputTokens)
			cand[i].OutputTokens = trace.Ptr(near(*ref[i].OutputTokens))
		}
		if r := linked(kept(ref), kept(cand)); r.above() < 0.3*float64(copied)/n {
			t.Errorf("%d copies among %d requests are linked by %.3f: %+v", copied, n, r.above(), r)
		}
	}
}

// Linkage and chains are what a comparison of everything with everything finds.
func TestCopiesAreWhatPlainLoopsFind(t *testing.T) {
	meta := trace.Meta{BlockSize: 8, Convention: trace.PartialTail}
	rows := burst(chatTrace{seed: 31, n: 700, size: 8}.rows())
	cand := slices.Clone(rows)
	rng := rand.New(rand.NewPCG(3, 1))
	for i := range cand {
		near := func(v int32) int32 { return v + int32(rng.IntN(7)-3)*v/50 }
		cand[i].InputTokens, cand[i].OutputTokens = near(cand[i].InputTokens), trace.Ptr(near(*cand[i].OutputTokens))
	}
	a, b := tallyOf(t, signatureOf(t, meta, rows, Options{})).kept, tallyOf(t, signatureOf(t, meta, cand, Options{From: 0.1})).kept
	close := func(x, y int32, share float64) bool { return math.Abs(float64(x-y)) <= share*float64(y) }
	var found, chance float64
	for q := b.from; q < len(b.at); q++ {
		place := (q - b.from) * len(a.at) / b.counted()
		at := func(offset int) float64 {
			for j := range a.at {
				if j >= place+offset-20 && j <= place+offset+20 && close(b.in[q], a.in[j], 0.05) && close(b.out[q], a.out[j], 0.05) {
					return 1
				}
			}
			return 0
		}
		found += at(0)
		switch within := func(offset int) bool { return place+offset-20 >= 0 && place+offset+20 < len(a.at) }; {
		case within(-41) && within(41):
			chance += (at(-41) + at(41)) / 2
		case within(41):
			chance += at(41)
		default:
			chance += at(-41)
		}
	}
	got := linked(a, b)
	near(t, "linkage", got.found, found/float64(b.counted()))
	near(t, "chance", got.chance, chance/float64(b.counted()))
	if got.found < 1.3*got.chance || got.chance == 0 {
		t.Errorf("linkage %v and chance %v tell nothing", got.found, got.chance)
	}
	index := newChainIndex(a, a.chains(true))
	for _, tolerance := range []float64{0, 0.05} {
		n := 0
		for _, chain := range b.chains(false) {
			x := lengthsOf(b, chain, b.out)
			if slices.ContainsFunc(a.chains(true), func(other [3]int32) bool {
				y := lengthsOf(a, other, a.out)
				for i := range x {
					if !close(x[i], y[i], tolerance) {
						return false
					}
				}
				return true
			}) {
				n++
			}
		}
		got := index.share(b, b.chains(false), b.out, tolerance)
		near(t, fmt.Sprint("chains within ", tolerance), got, float64(n)/float64(len(b.chains(false))))
		if tolerance > 0 && (got == 0 || got == 1) {
			t.Errorf("%v of the chains are near, which tells nothing", got)
		}
	}
}
