package prompt

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/profile"
	"reprise/trace/sample"
)

// conversations makes a workload of sessions whose turns grow by little or much,
// so that partial blocks complete partial ones; that branch, are sent again, and
// fail now and then. Blocks are of size tokens, ids dense and chained.
func conversations(rng *rand.Rand, rows, size int) []trace.Request {
	var ids uint64
	fresh := func(n int) (b []uint64) {
		for range n {
			b = append(b, ids)
			ids++
		}
		return b
	}
	var out []trace.Request
	for len(out) < rows {
		r := trace.Request{ArrivalNS: int64(len(out)), Status: trace.StatusOK}
		kept := 0 // blocks taken over from an earlier row
		if len(out) > 0 && rng.IntN(5) > 0 {
			old := out[max(len(out)-1-rng.IntN(8), 0)]
			full := int(old.InputTokens) / size
			switch k := rng.IntN(10); {
			case k == 0:
				kept, r.InputTokens = len(old.Blocks), old.InputTokens
			case k < 3:
				kept = rng.IntN(full + 1)
				r.InputTokens = int32(kept*size + 1 + rng.IntN(2*size))
			default:
				kept = full
				r.InputTokens = old.InputTokens + int32(1+rng.IntN(1+rng.IntN(2*size)))
			}
			r.Blocks = slices.Clone(old.Blocks[:kept])
		} else {
			r.InputTokens = int32(1 + rng.IntN(3*size))
		}
		r.Blocks = append(r.Blocks, fresh(block.Count(int(r.InputTokens), size)-kept)...)
		switch rng.IntN(20) {
		case 0:
			r.Status = trace.StatusFailed
		case 1:
			r.Category = trace.Branch
		case 2, 3:
			r.Category = trace.Continuation
		}
		out = append(out, r)
	}
	return out
}

// naiveTails is the rule of [ReadTails] by looking at all earlier rows.
func naiveTails(rows []trace.Request, size int) map[uint64]completion {
	found := map[uint64]completion{}
	for i, b := range rows {
		if b.Status == trace.StatusFailed || b.Category != "" && b.Category != trace.Continuation {
			continue
		}
		last := func(id uint64) int { // the row that last touched a block
			for j := i - 1; j >= 0; j-- {
				if rows[j].Status != trace.StatusFailed && slices.Contains(rows[j].Blocks, id) {
					return j
				}
			}
			return -1
		}
		hit := 0
		for hit < len(b.Blocks) && last(b.Blocks[hit]) >= 0 {
			hit++
		}
		if hit == 0 || hit == len(b.Blocks) {
			continue
		}
		a := rows[last(b.Blocks[hit-1])]
		t, own := int(a.InputTokens)-hit*size, min(int(b.InputTokens)-hit*size, size)
		if t > 0 && t < size && own > t {
			found[b.Blocks[hit]] = completion{b.Blocks[hit], newTail(a.Blocks[hit], t)}
		}
	}
	return found
}

func readTails(t testing.TB, rows []trace.Request, size int) *Tails {
	t.Helper()
	tails, err := ReadTails(cloned(rows), size)
	if err != nil {
		t.Fatal(err)
	}
	return tails
}

func TestReadTails(t *testing.T) {
	for seed := range uint64(30) {
		size := []int{4, 16, 64}[seed%3]
		rows := conversations(rand.New(rand.NewPCG(seed, 1)), 300, size)
		want, got := naiveTails(rows, size), readTails(t, rows, size)
		tokens := int64(0)
		for _, r := range rows {
			for _, id := range r.Blocks {
				partial, n := got.Of(id)
				w := want[id].tail
				if w == 0 && n != 0 || w != 0 && (partial != w.block() || int(n) != w.tokens()) {
					t.Fatalf("seed %d: block %d completes %d by %d tokens, want %d by %d", seed, id, partial, n, w.block(), w.tokens())
				}
			}
		}
		for _, c := range want {
			tokens += int64(c.tail.tokens())
		}
		if got.Len() != len(want) || got.Tokens() != tokens || len(want) < 20 {
			t.Errorf("seed %d: %d blocks complete another by %d tokens, want %d by %d", seed, got.Len(), got.Tokens(), len(want), tokens)
		}
	}
}

// What a trace says of tails must not depend on the names of its blocks, be
// they dense or far apart.
func TestTailsUnderOtherIDs(t *testing.T) {
	rows := conversations(rand.New(rand.NewPCG(1, 2)), 400, 16)
	for name, rename := range map[string]func(uint64) uint64{
		"mirrored": func(id uint64) uint64 { p := sample.NewPermutation(3, 4096); return p.At(id) },
		"sparse":   func(id uint64) uint64 { return id*id*977 + 1<<30 },
		"one huge": func(id uint64) uint64 { return (id + 1) % 3000 * (maxBlocks / 3000) },
		"two ends": func(id uint64) uint64 { return id>>1 + id&1*(maxBlocks-1<<20) },
	} {
		renamed := slices.Clone(rows)
		for i := range renamed {
			renamed[i].Blocks = slices.Clone(renamed[i].Blocks)
			for k, id := range renamed[i].Blocks {
				renamed[i].Blocks[k] = rename(id)
			}
		}
		old, now := readTails(t, rows, 16), readTails(t, renamed, 16)
		if old.Len() != now.Len() {
			t.Fatalf("%s: %d tails become %d", name, old.Len(), now.Len())
		}
		for _, r := range rows {
			for _, id := range r.Blocks {
				a, n := old.Of(id)
				b, m := now.Of(rename(id))
				if n != m || n > 0 && rename(a) != b {
					t.Fatalf("%s: block %d completes %d by %d tokens, now %d by %d", name, id, a, n, b, m)
				}
			}
		}
		for range 1000 { // ids that no row has
			if _, n := now.Of(maxBlocks + rand.Uint64N(maxBlocks)); n != 0 {
				t.Fatalf("%s: an unknown block has a tail", name)
			}
		}
	}
}

// limits lists the blocks whose tokens a block begins with, itself included, and
// with how many of each.
func limits(tails map[uint64]completion, block uint64, tokens int) map[uint64]int {
	out := map[uint64]int{block: tokens}
	for c, ok := tails[block]; ok; c, ok = tails[c.tail.block()] {
		out[c.tail.block()] = min(c.tail.tokens(), tokens)
	}
	return out
}

// sharedTokens is how many leading tokens two rows must have in common: their
// shared blocks, and the longest tail that the blocks behind these share.
func sharedTokens(tails map[uint64]completion, a, b *trace.Request, size int) int {
	k := 0
	for k < min(len(a.Blocks), len(b.Blocks)) && a.Blocks[k] == b.Blocks[k] {
		k++
	}
	shared := min(k*size, int(a.InputTokens), int(b.InputTokens))
	if k == len(a.Blocks) || k == len(b.Blocks) {
		return shared
	}
	la := limits(tails, a.Blocks[k], min(size, int(a.InputTokens)-k*size))
	tail := 0
	for id, n := range limits(tails, b.Blocks[k], min(size, int(b.InputTokens)-k*size)) {
		tail = max(tail, min(n, la[id]))
	}
	return shared + tail
}

// The common prefix of any two prompts is their shared blocks and the shared
// tail behind them, and two tokens more at most; in every kind of text, and no
// prompt has a token more or less for it.
func TestTailsAreShared(t *testing.T) {
	e := mustEncoding(t, "o200k_base")
	for _, kind := range kinds {
		text := textOf(t, e, kind)
		for _, size := range []int{5, 16, 64} {
			rows := conversations(rand.New(rand.NewPCG(7, uint64(size))), 250, size)
			tails, naive := readTails(t, rows, size), naiveTails(rows, size)
			p := newTestPrompter(t, "o200k_base", size, WithText(text), WithTails(tails))
			prompts := make([][]uint32, len(rows))
			for i := range rows {
				checkEncodes(t, e, p, &rows[i], int(rows[i].InputTokens))
				prompts[i] = tokensOf(t, p, &rows[i])
			}
			inTails := 0
			for i := range rows {
				for j := range i {
					want := sharedTokens(naive, &rows[i], &rows[j], size)
					if got := sharedPrefix(prompts[i], prompts[j]); got < want || got > want+2 {
						t.Fatalf("%s, size %d: rows %d and %d share %d tokens, want %d and two more at most", kind, size, j, i, got, want)
					}
					if want%size > 0 {
						inTails++
					}
				}
			}
			if inTails < 100 {
				t.Errorf("%s, size %d: only %d pairs share a tail", kind, size, inTails)
			}
		}
	}
}

// symbols writes a prompt as whose token stands at which position of its block:
// a second way of making it, from the naive rule.
func symbols(tails map[uint64]completion, r *trace.Request, size, overhead int) (out [][2]uint64) {
	for i, id := range r.Blocks {
		n := min(size, int(r.InputTokens)-i*size)
		tail := 0
		if c, ok := tails[id]; ok {
			tail = c.tail.tokens()
		}
		cut := min(overhead, max(n-tail-headTokens, 0))
		overhead -= cut
		for pos := range n - cut {
			owner := id
			for c, ok := tails[owner]; ok && pos < c.tail.tokens(); c, ok = tails[owner] {
				owner = c.tail.block()
			}
			out = append(out, [2]uint64{owner, uint64(pos)})
		}
	}
	return out[:max(len(out)-overhead, 1)]
}

// The overhead of a template comes off the ends of blocks, and leaves them their
// tails and their ids.
func TestTailsUnderOverhead(t *testing.T) {
	e := mustEncoding(t, "o200k_base")
	const size = 16
	rows := conversations(rand.New(rand.NewPCG(8, 9)), 250, size)
	tails, naive := readTails(t, rows, size), naiveTails(rows, size)
	for _, overhead := range []int{0, 1, 9, 14, 40} {
		p := newTestPrompter(t, "o200k_base", size, WithTails(tails), WithTemplate(overhead, 0))
		prompts, made := make([][]uint32, len(rows)), make([][][2]uint64, len(rows))
		for i := range rows {
			made[i] = symbols(naive, &rows[i], size, overhead)
			checkEncodes(t, e, p, &rows[i], len(made[i]))
			prompts[i] = tokensOf(t, p, &rows[i])
		}
		for i := range rows {
			for j := range i {
				if got, want := sharedPrefix(prompts[i], prompts[j]), sharedPrefix(made[i], made[j]); got < want || got > want+2 {
					t.Fatalf("overhead %d: rows %d and %d share %d tokens, want %d and two more at most", overhead, j, i, got, want)
				}
			}
		}
	}
}

// What a [profile.KnownPass] expects with tails is what the prompts that were
// sent have in common; those of failed rows are not sent, nor all of the others. Around
// some of them the server puts a template.
func TestTailsAreExpected(t *testing.T) {
	for seed := range uint64(16) {
		const size = 16
		var template [2]int32
		if seed >= 8 {
			template = [2]int32{int32(seed % 6), int32(seed % 7)}
		}
		whole := func(prompt []uint32) []uint32 {
			return slices.Concat(slices.Repeat([]uint32{1 << 30}, int(template[0])), prompt, slices.Repeat([]uint32{1<<30 + 1}, int(template[1])))
		}
		rows := conversations(rand.New(rand.NewPCG(seed, 5)), 300, size)
		tails := readTails(t, rows, size)
		p := newTestPrompter(t, "o200k_base", size, WithTails(tails), WithTemplate(int(template[0]), int(template[1])))
		known := profile.NewKnownPass(size, false, profile.WithTails(tails.Of), profile.WithTemplate(func(*trace.Request) (before, after int32) { return template[0], template[1] }))
		known.Touch(&trace.Request{}) // the template is known from the beginning
		plain := profile.NewKnownPass(size, false)
		var sent [][]uint32
		more := 0
		for i := range rows {
			if rows[i].Status == trace.StatusFailed || seed%2 == 1 && i%3 == 0 {
				continue
			}
			prompt, want := whole(tokensOf(t, p, &rows[i])), int(template[0])
			for _, s := range sent {
				want = max(want, sharedPrefix(prompt, s))
			}
			want = min(want, int(rows[i].InputTokens)) // of one that leaves no room for a template
			got := int(known.Touch(&rows[i]))
			if got > want || got < want-2 {
				t.Fatalf("seed %d: row %d of %d tokens knows %d, expected %d", seed, i, rows[i].InputTokens, want, got)
			}
			if got > int(plain.Touch(&rows[i])) {
				more++
			}
			sent = append(sent, prompt)
		}
		if more < 20 {
			t.Errorf("seed %d: tails matter to %d rows only", seed, more)
		}
	}
}

// A block whose tail leaves it fewer than three tokens cannot spell its id.
func TestShortTailsBehindTails(t *testing.T) {
	for _, c := range []struct{ first, second, short int }{
		{20, 32, 0}, {29, 32, 0}, {30, 32, 1}, {31, 33, 2}, {20, 22, 1}, {20, 23, 0}, {20, 40, 0}, {17, 33, 3},
	} {
		rows := []trace.Request{
			{InputTokens: int32(c.first), Blocks: []uint64{0, 1}},
			{InputTokens: int32(c.second), Blocks: []uint64{0, 2, 3}[:block.Count(int(c.second), 16)]},
		}
		p := newTestPrompter(t, "o200k_base", 16, WithTails(readTails(t, rows, 16)))
		short := 0
		for i := range rows {
			before := p.ShortTails()
			tokensOf(t, p, &rows[i])
			if p.ShortTails() > before {
				short |= 1 << i
			}
		}
		want := map[int]int{0: 0, 1: 2, 2: 2, 3: 3}[c.short]
		if short != want {
			t.Errorf("%d then %d tokens: short %b, want %b", c.first, c.second, short, want)
		}
	}
}

func TestReadTailsRefuses(t *testing.T) {
	rows := []trace.Request{{}, {InputTokens: 1, Blocks: []uint64{1 << 40}}}
	if _, err := ReadTails(cloned(rows), 16); err == nil || !strings.Contains(err.Error(), "row 1:") {
		t.Errorf("got %v, want an error at row 1", err)
	}
	for _, size := range []int{0, -1, 1<<20 + 1} {
		if _, err := ReadTails(cloned(nil), size); err == nil {
			t.Errorf("blocks of %d tokens are taken", size)
		}
	}
	if _, err := New(tiny(4), 1, 16, WithTails(readTails(t, nil, 8))); err == nil {
		t.Error("tails of another block size are taken")
	}
	// Four words spell 64 ids; the partial block with another would be spelt in a
	// row that does not name it.
	for id, ok := range map[uint64]bool{63: true, 64: false} {
		far := []trace.Request{{InputTokens: 20, Blocks: []uint64{0, id}}, {InputTokens: 32, Blocks: []uint64{0, 1}}}
		p, err := New(tiny(4), 1, 16, WithTails(readTails(t, far, 16)))
		if (err == nil) != ok || p != nil && len(tokensOf(t, p, &far[1])) != 32 {
			t.Errorf("a partial block with the id %d: %v", id, err)
		}
	}
}

// The published conversation trace: a continuation in three repeats a tail, with
// 0.67 % of all tokens.
// A turn repeats the end of the last prompt of its session, though another session went on from there
// meanwhile, and never that of another.
func TestTailsOfSessions(t *testing.T) {
	row := func(session int64, input int32, category string, blocks ...uint64) trace.Request {
		return trace.Request{Session: &session, InputTokens: input, Blocks: blocks, Category: category}
	}
	tails := readTails(t, []trace.Request{
		row(0, 20, trace.Cold, 0, 1),
		row(1, 21, trace.Branch, 0, 2),
		row(2, 30, trace.Template, 0, 3),
		row(0, 28, trace.Continuation, 0, 4),
		row(1, 36, trace.Continuation, 0, 5, 6),
		row(1, 36, trace.Continuation, 0, 7, 8), // not behind its last prompt
	}, 16)
	got := map[uint64]tail{}
	for i, block := range tails.keys {
		got[block] = tails.tails[i]
	}
	if want := (map[uint64]tail{4: newTail(1, 4), 5: newTail(2, 5)}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTailsMooncake(t *testing.T) {
	rows := mooncake(t)
	a := profile.NewAnnotator(512, profile.Options{})
	var all int64
	for i := range rows {
		a.Count(&rows[i])
		all += int64(rows[i].InputTokens)
	}
	for i := range rows {
		a.Annotate(int64(i), &rows[i])
	}
	tails := readTails(t, rows, 512)
	if tails.Len() != 3626 || tails.Tokens() != 916_733 || tails.Tokens()*10_000/all != 63 {
		t.Errorf("%d blocks repeat %d of %d tokens", tails.Len(), tails.Tokens(), all)
	}
	if bytes := 16*len(tails.keys) + 4*len(tails.buckets); bytes > 25*tails.Len() {
		t.Errorf("they take %d bytes", bytes)
	}
}

// In a further round of a workload its prompts share with one another what they
// share in the first, tails included, and nothing with those of the first.
func TestRepeatedTails(t *testing.T) {
	const size = 16
	rows := conversations(rand.New(rand.NewPCG(7, 1)), 150, size)
	blocks := uint64(0)
	for _, r := range rows {
		blocks = max(blocks, slices.Max(r.Blocks)+1)
	}
	tails := readTails(t, rows, size)
	p := newTestPrompter(t, "o200k_base", size, WithTails(tails.Repeat(blocks)))
	if p.Blocks() < 1e9 {
		t.Errorf("only %d block ids", p.Blocks())
	}
	first, third := make([][]uint32, len(rows)), make([][]uint32, len(rows))
	for i, r := range rows {
		first[i] = tokensOf(t, p, &r)
		if plain := tokensOf(t, newTestPrompter(t, "o200k_base", size, WithTails(tails)), &r); !slices.Equal(plain, first[i]) {
			t.Fatalf("row %d: the first round differs from a workload played once", i)
		}
		r.Blocks = slices.Clone(r.Blocks)
		for k := range r.Blocks {
			r.Blocks[k] += 2 * blocks
		}
		third[i] = tokensOf(t, p, &r)
	}
	naive, inTails := naiveTails(rows, size), 0
	for i := range rows {
		for j := range i {
			want := sharedTokens(naive, &rows[i], &rows[j], size)
			if got := sharedPrefix(third[i], third[j]); got < want || got > want+2 {
				t.Fatalf("rows %d and %d share %d tokens in the third round, %d in the first", j, i, got, want)
			}
			if want%size > 0 {
				inTails++
			}
			if n := sharedPrefix(third[i], first[j]); n > 2 {
				t.Fatalf("row %d of the third round shares %d tokens with row %d of the first", i, n, j)
			}
		}
	}
	if inTails < 50 {
		t.Errorf("only %d pairs share a tail", inTails)
	}
	if none := (*Tails)(nil).Repeat(3); none != nil {
		t.Error("no tails become some")
	}
}
