package prompt

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"reprise/synth"
	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/longtest"
	"reprise/trace/token"
)

// rowOf makes a row of tokens in blocks of size with random ids.
func rowOf(rng *rand.Rand, tokens, size int) *trace.Request {
	r := &trace.Request{InputTokens: int32(tokens)}
	for range block.Count(int(r.InputTokens), size) {
		r.Blocks = append(r.Blocks, rng.Uint64N(1<<35))
	}
	return r
}

// checkEncodes holds that the prompt of r encodes to its token ids, want of
// them, and gives its text back.
func checkEncodes(t *testing.T, e *token.Encoding, p *Prompter, r *trace.Request, want int) string {
	t.Helper()
	text, err := p.Prompt(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	ids := tokensOf(t, p, r)
	if len(ids) != want {
		t.Fatalf("%s: %d token ids, want %d", e.Name(), len(ids), want)
	}
	if got := e.Append(nil, string(text)); !slices.Equal(got, ids) {
		t.Fatalf("%s: a prompt of %d tokens encodes to %d, or to others", e.Name(), want, len(got))
	}
	return string(text)
}

func TestPromptsAreExact(t *testing.T) {
	for _, name := range token.Names() {
		t.Run(name, func(t *testing.T) {
			e, err := token.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(5, 6))
			sizes, overheads := []int{0, 3, 16, 64, 512}, []int{0, 1, 7, 40, 600}
			prompters := map[[2]int]*Prompter{}
			for _, size := range sizes {
				for _, overhead := range overheads {
					prompters[[2]int{size, overhead}] = newTestPrompter(t, name, size, WithTemplate(overhead, 0))
				}
			}
			for i, tokens := range lengths() {
				size, overhead := sizes[i%len(sizes)], overheads[i/len(sizes)%len(overheads)]
				r := &trace.Request{InputTokens: int32(tokens), ArrivalNS: int64(i)}
				if size > 0 {
					r = rowOf(rng, tokens, size)
				}
				checkEncodes(t, e, prompters[[2]int{size, overhead}], r, max(tokens-overhead, 1))
			}
		})
	}
}

// lengths are all prompt lengths to 1000, then some to 5000, and three long ones.
func lengths() (l []int) {
	for n := 1; n <= 5000; n++ {
		if n <= 1000 || n%5 == 0 {
			l = append(l, n)
		}
	}
	return append(l, 100_000, 100_001, 131_072)
}

// A second oracle: the prompts as tiktoken-go counts them.
func TestPromptsAreExactByTiktoken(t *testing.T) {
	longtest.Skip(t)
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	for _, name := range token.Names() {
		oracle, err := tiktoken.GetEncoding(name)
		if err != nil {
			t.Fatal(err)
		}
		p := newTestPrompter(t, name, 64)
		rng := rand.New(rand.NewPCG(7, 8))
		for tokens := 1; tokens < 3000; tokens += 1 + tokens/8 {
			r := rowOf(rng, tokens, 64)
			text, err := p.Prompt(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, want := oracle.EncodeOrdinary(string(text)), tokensOf(t, p, r)
			if !slices.EqualFunc(got, want, func(g int, w uint32) bool { return g == int(w) }) {
				t.Errorf("%s: %d tokens become %d by tiktoken-go, or others", name, tokens, len(got))
			}
		}
	}
}

// digestOf is over the token ids and the texts of rows that use every path.
func digestOf(t *testing.T, name string, seed uint64) string {
	t.Helper()
	e, err := token.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	for _, overhead := range []int{0, 11, 70} {
		p, err := New(e.Words(), seed, 16, WithTemplate(overhead, 0))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*trace.Request{
			{InputTokens: 40, Blocks: []uint64{0, 1, 2}},
			{InputTokens: 41, Blocks: []uint64{0, 1, 3}},
			{InputTokens: 1, Blocks: []uint64{300_000_000_000}},
			{InputTokens: 700, ArrivalNS: 12345, Session: trace.Ptr(int64(3)), Turn: trace.Ptr(int32(1)), Parents: []int64{4}},
		} {
			text, err := p.Prompt(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			h.Write(text)
			for _, id := range tokensOf(t, p, r) {
				h.Write(binary.LittleEndian.AppendUint32(nil, id))
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// The digests hold the prompts of a seed, on every machine and for good.
func TestPromptsGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		seed uint64
		want string
	}{
		{"cl100k_base", 1, "5467993d8824a2162dd01812d0a5b06ae668b589d7984f0bedad3e91a25ec4af"},
		{"o200k_base", 1, "c1e14447776fa365496626794b9365fea96dc3fa6452f3528db66e8f96fb5f3e"},
		{"o200k_base", 2, "f9cd73ae4ceb74987cd30a35c2e1e70099f170a682afcf9830b9de03a861039c"},
	} {
		if got := digestOf(t, c.name, c.seed); got != c.want {
			t.Errorf("%s, seed %d: got %s, want %s", c.name, c.seed, got, c.want)
		}
	}
}

// sharedPrefix counts leading elements in common.
func sharedPrefix[T comparable](a, b []T) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Two rows that share k whole blocks share their tokens, and two more at most.
func TestPrefixesAreShared(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, size := range []int{3, 16, 64} {
		for _, overhead := range []int{0, 5, 20, 150} {
			p := newTestPrompter(t, "o200k_base", size, WithTemplate(overhead, 0))
			for range 300 {
				k := rng.IntN(9)
				head := rowOf(rng, k*size, size).Blocks
				a, b := rowOf(rng, (k+2)*size+rng.IntN(300), size), rowOf(rng, (k+2)*size+rng.IntN(300), size)
				copy(a.Blocks, head)
				copy(b.Blocks, head)
				// Each block gives the overhead all but the tokens that spell its id.
				want := max(k*size-overhead, k*headTokens)
				ta, tb := tokensOf(t, p, a), tokensOf(t, p, b)
				if len(ta) < want+headTokens || len(tb) < want+headTokens {
					continue // the overhead has eaten the blocks in which they differ
				}
				if got := sharedPrefix(ta, tb); got < want || got >= want+headTokens {
					t.Fatalf("size %d, overhead %d, %d shared blocks: %d tokens shared, want %d and at most two more", size, overhead, k, got, want)
				}
			}
		}
	}
}

// The words of a block must not depend on what stands before it, nor on where
// the cursor's chunks end: blocks of three begin at every place in a chunk.
func TestBlocksReadTheSameAnywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for _, size := range []int{3, 7, 300} {
		p := newTestPrompter(t, "o200k_base", size)
		r := rowOf(rng, 400*size, size)
		whole := tokensOf(t, p, r)
		for i := 1; i < len(r.Blocks); i++ {
			pair := tokensOf(t, p, &trace.Request{InputTokens: int32(2 * size), Blocks: []uint64{0, r.Blocks[i]}})
			if !slices.Equal(pair[size:], whole[i*size:(i+1)*size]) {
				t.Fatalf("size %d: block %d reads otherwise as a second block", size, i)
			}
		}
	}
}

// A whole prompt that is another's beginning stays so, tail and all.
func TestEqualBlocksEqualTokens(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	p := newTestPrompter(t, "cl100k_base", 16, WithTemplate(9, 0))
	for range 300 {
		r := rowOf(rng, 1+rng.IntN(200), 16)
		twin := &trace.Request{InputTokens: r.InputTokens, Blocks: slices.Clone(r.Blocks), ArrivalNS: 99, OutputTokens: trace.Ptr[int32](7)}
		if !slices.Equal(tokensOf(t, p, r), tokensOf(t, p, twin)) {
			t.Fatal("rows with equal blocks and lengths have different prompts")
		}
	}
}

// tiny is a vocabulary of n words whose ids are their numbers, and 1000 more
// without the space.
func tiny(n int) *token.Words {
	w := new(token.Words)
	for i := range n {
		w.Spaced, w.Bare = append(w.Spaced, uint32(i)), append(w.Bare, uint32(1000+i))
		w.Text = append(w.Text, strings.Repeat(string(rune('a'+i)), 2))
	}
	return w
}

// With few words every id can be tried: all spell differently, first and later.
func TestHeadsTellAllBlocksApart(t *testing.T) {
	const words = 8
	for seed := range uint64(20) {
		p, err := New(tiny(words), seed, 3)
		if err != nil {
			t.Fatal(err)
		}
		first, later := map[[3]uint32]bool{}, map[[3]uint32]bool{}
		for id := range uint64(words * words * words) {
			ids := tokensOf(t, p, &trace.Request{InputTokens: 6, Blocks: []uint64{id, id}})
			first[[3]uint32(ids[:3])], later[[3]uint32(ids[3:])] = true, true
		}
		if len(first) != 512 || len(later) != 512 {
			t.Errorf("seed %d: 512 blocks have %d beginnings as first and %d as later blocks", seed, len(first), len(later))
		}
	}
}

func TestHeadsTellManyBlocksApart(t *testing.T) {
	longtest.Skip(t)
	for _, name := range token.Names() {
		p := newTestPrompter(t, name, 16)
		rng := rand.New(rand.NewPCG(13, 14))
		seen, blocks := map[[3]uint32]bool{}, map[uint64]bool{}
		for i := range uint64(200_000) {
			id := i
			if i%2 == 0 {
				id = rng.Uint64N(p.heads.Len())
			}
			blocks[id] = true
			seen[[3]uint32(tokensOf(t, p, &trace.Request{InputTokens: 3, Blocks: []uint64{id}}))] = true
		}
		if len(seen) != len(blocks) {
			t.Errorf("%s: %d blocks have %d beginnings", name, len(blocks), len(seen))
		}
	}
}

// The words behind the heads must be even over the vocabulary and differ by
// block and by seed.
func TestWordsAreSpread(t *testing.T) {
	const words, tokens = 20, 200_000
	p, err := New(tiny(words), 3, tokens)
	if err != nil {
		t.Fatal(err)
	}
	a := tokensOf(t, p, &trace.Request{InputTokens: 2 * tokens, Blocks: []uint64{1, 2}})
	var counts [words]float64
	same := 0
	for i := headTokens; i < tokens; i++ {
		counts[a[i]]++
		if a[i] == a[tokens+i] {
			same++
		}
	}
	want := float64(tokens) / words
	for w, c := range append(counts[:], float64(same)) {
		if d := c - want; d*d > 25*want {
			t.Errorf("word %d (%d is agreement of two blocks) occurs %.0f times, want about %.0f", w, words, c, want)
		}
	}
}

func TestOverheadComesOffTheEndOfBlocks(t *testing.T) {
	whole := newTestPrompter(t, "o200k_base", 16)
	for _, c := range []struct {
		tokens, overhead int
		keep             []int // tokens kept of each block
		short            int64
	}{
		{40, 0, []int{16, 16, 8}, 0},
		{40, 13, []int{3, 16, 8}, 0},
		{40, 14, []int{3, 15, 8}, 0},
		{40, 31, []int{3, 3, 3}, 0},
		{40, 32, []int{3, 3, 2}, 1},
		{40, 36, []int{3, 1}, 1},
		{40, 39, []int{1}, 1},
		{40, 40, []int{1}, 1},
		{40, 99, []int{1}, 1},
		{34, 0, []int{16, 16, 2}, 1},
		{34, 20, []int{3, 9, 2}, 1},
		{35, 20, []int{3, 9, 3}, 0},
		{2, 1, []int{1}, 1},
	} {
		r := &trace.Request{InputTokens: int32(c.tokens)}
		for i := range block.Count(int(r.InputTokens), 16) {
			r.Blocks = append(r.Blocks, uint64(i))
		}
		full := tokensOf(t, whole, r)
		var want []uint32
		for i, n := range c.keep {
			want = append(want, full[16*i:16*i+n]...)
		}
		p := newTestPrompter(t, "o200k_base", 16, WithTemplate(c.overhead, 0))
		if got := tokensOf(t, p, r); !slices.Equal(got, want) {
			t.Errorf("%d tokens less %d: got %v, want %v", c.tokens, c.overhead, got, want)
		}
		if p.ShortTails() != c.short {
			t.Errorf("%d tokens less %d: %d short tails, want %d", c.tokens, c.overhead, p.ShortTails(), c.short)
		}
	}
}

func TestRowsWithoutBlocks(t *testing.T) {
	p := newTestPrompter(t, "o200k_base", 512)
	base := trace.Request{ArrivalNS: 5, InputTokens: 50, OutputTokens: trace.Ptr[int32](9), Session: trace.Ptr(int64(1)), Parents: []int64{2}}
	prompt := tokensOf(t, p, &base)
	if len(prompt) != 50 {
		t.Fatalf("%d tokens, want 50", len(prompt))
	}
	if again := base; !slices.Equal(tokensOf(t, p, &again), prompt) {
		t.Error("the same row has two prompts")
	}
	annotated := base
	annotated.Category, annotated.Model = trace.Cold, "m1"
	if !slices.Equal(tokensOf(t, p, &annotated), prompt) {
		t.Error("the category or the model changes the prompt")
	}
	for name, change := range map[string]func(r *trace.Request){
		"arrival":     func(r *trace.Request) { r.ArrivalNS = 6 },
		"output":      func(r *trace.Request) { r.OutputTokens = trace.Ptr[int32](10) },
		"input":       func(r *trace.Request) { r.InputTokens = 51 },
		"session":     func(r *trace.Request) { r.Session = trace.Ptr(int64(2)) },
		"no session":  func(r *trace.Request) { r.Session = nil },
		"turn":        func(r *trace.Request) { r.Turn = trace.Ptr(int32(0)) },
		"user":        func(r *trace.Request) { r.User = trace.Ptr(int64(0)) },
		"session as":  func(r *trace.Request) { r.User, r.Session = r.Session, nil },
		"ttft":        func(r *trace.Request) { r.TTFTNS = trace.Ptr(int64(0)) },
		"e2e":         func(r *trace.Request) { r.E2ENS = trace.Ptr(int64(0)) },
		"parents":     func(r *trace.Request) { r.Parents = []int64{3} },
		"no parents":  func(r *trace.Request) { r.Parents = nil },
		"two parents": func(r *trace.Request) { r.Parents = []int64{2, 2} },
	} {
		other := base
		change(&other)
		if n := sharedPrefix(tokensOf(t, p, &other), prompt); n >= headTokens {
			t.Errorf("%s: another row shares %d tokens", name, n)
		}
	}
	if p.ShortTails() != 0 {
		t.Errorf("%d short tails of rows without blocks", p.ShortTails())
	}
	if empty := tokensOf(t, p, &trace.Request{}); len(empty) != 1 {
		t.Errorf("a row of no tokens has %d; want 1", len(empty))
	}
}

func TestInconsistentRows(t *testing.T) {
	p := newTestPrompter(t, "cl100k_base", 16)
	bare := newTestPrompter(t, "cl100k_base", 0)
	top := p.heads.Len() - 1
	if top+1 != 7294*7294*7294 {
		t.Errorf("blocks below %d can be spelt, want 7294^3", top+1)
	}
	for _, c := range []struct {
		name string
		p    *Prompter
		row  trace.Request
		want string // part of the error; empty is none
	}{
		{"good", p, trace.Request{InputTokens: 32, Blocks: []uint64{0, top}}, ""},
		{"too few", p, trace.Request{InputTokens: 33, Blocks: []uint64{0, 1}}, "do not match its input_tokens"},
		{"too many", p, trace.Request{InputTokens: 32, Blocks: []uint64{0, 1, 2}}, "do not match its input_tokens"},
		{"no tokens", p, trace.Request{Blocks: []uint64{0}}, "do not match its input_tokens"},
		{"negative", p, trace.Request{InputTokens: -1}, "negative"},
		{"too large", p, trace.Request{InputTokens: 32, Blocks: []uint64{0, top + 1}}, "number the blocks densely"},
		{"no block size", bare, trace.Request{InputTokens: 32, Blocks: []uint64{0, 1}}, "has no block size"},
		{"no blocks", bare, trace.Request{InputTokens: 32}, ""},
	} {
		text, err := c.p.Prompt(&c.row, []byte("kept"))
		ids, err2 := c.p.Tokens(&c.row, []uint32{7})
		if c.want == "" {
			if err != nil || err2 != nil || len(ids) != 33 || !strings.HasPrefix(string(text), "kept") {
				t.Errorf("%s: got %d ids, %v, %v", c.name, len(ids), err, err2)
			}
			continue
		}
		for _, err := range []error{err, err2} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
			}
		}
		if string(text) != "kept" || !slices.Equal(ids, []uint32{7}) {
			t.Errorf("%s: an error leaves %q and %v in the buffers", c.name, text, ids)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	uneven := tiny(4)
	uneven.Bare = uneven.Bare[:3]
	for name, f := range map[string]func() (*Prompter, error){
		"no words":     func() (*Prompter, error) { return New(nil, 1, 16) },
		"one word":     func() (*Prompter, error) { return New(tiny(1), 1, 16) },
		"lacking ids":  func() (*Prompter, error) { return New(uneven, 1, 16) },
		"small blocks": func() (*Prompter, error) { return New(tiny(4), 1, 2) },
		"negative":     func() (*Prompter, error) { return New(tiny(4), 1, -1) },
		"overhead":     func() (*Prompter, error) { return New(tiny(4), 1, 16, WithTemplate(-1, 0)) },
	} {
		if p, err := f(); err == nil || p != nil {
			t.Errorf("%s: got %v, %v; want an error", name, p, err)
		}
	}
}

// A burst of equal rows must not be served from each other's cache.
func TestUnsharedTellsEqualRowsApart(t *testing.T) {
	p := newTestPrompter(t, "o200k_base", 16)
	burst := make([]trace.Request, 1000)
	for i := range burst {
		burst[i].InputTokens = 100
	}
	seen := map[[headTokens]uint32]bool{}
	err := trace.Each(&synth.Unshared{Src: cloned(burst), BlockSize: 16}, func(_ int64, r *trace.Request) error {
		ids := tokensOf(t, p, r)
		if len(ids) != 100 {
			t.Fatalf("%d tokens, want 100", len(ids))
		}
		seen[[headTokens]uint32(ids)] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != len(burst) {
		t.Errorf("%d rows have %d different beginnings", len(burst), len(seen))
	}
}

func TestPrompterConcurrently(t *testing.T) {
	p := newTestPrompter(t, "o200k_base", 16)
	rows := conversations(rand.New(rand.NewPCG(3, 4)), 200, 16)
	want := make([][]uint32, len(rows))
	for i := range rows {
		want[i] = tokensOf(t, p, &rows[i])
	}
	shortTails := p.ShortTails()
	if shortTails == 0 {
		t.Fatal("no row has a short tail, so the count is not tried")
	}
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for g := range errs {
		wg.Go(func() {
			var buf []uint32
			var err error
			for i := range rows {
				if buf, err = p.Tokens(&rows[i], buf[:0]); err != nil || !slices.Equal(buf, want[i]) {
					errs[g] = fmt.Errorf("row %d differs, or %w", i, err)
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if got := p.ShortTails(); got != 5*shortTails {
		t.Errorf("%d short tails, want %d", got, 5*shortTails)
	}
}

func TestPrompterAllocatesNothing(t *testing.T) {
	e := mustEncoding(t, "o200k_base")
	rows := conversations(rand.New(rand.NewPCG(1, 1)), 60, 16)
	rows = append(rows, trace.Request{InputTokens: 3000, Session: trace.Ptr(int64(1))})
	text, ids := make([]byte, 0, 1<<16), make([]uint32, 0, 1<<12)
	for _, kind := range kinds {
		p := newTestPrompter(t, "o200k_base", 16, WithText(textOf(t, e, kind)), WithTails(readTails(t, rows, 16)))
		for i := range rows {
			allocs := testing.AllocsPerRun(5, func() {
				var err, err2 error
				text, err = p.Prompt(&rows[i], text[:0])
				ids, err2 = p.Tokens(&rows[i], ids[:0])
				if err != nil || err2 != nil {
					t.Error(err, err2)
				}
			})
			if allocs != 0 {
				t.Fatalf("%s: %v allocations for a prompt, want 0", kind, allocs)
			}
		}
	}
}
