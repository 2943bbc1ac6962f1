package anonymize_test

import (
	"container/list"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/datasets"
	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/block"
)

// A prefixCache is an LRU cache of blocks.
type prefixCache struct {
	capacity int
	order    list.List
	at       map[uint64]*list.Element
}

type cachedBlock struct {
	id   uint64
	used int64
}

// look returns how many leading blocks are there and used within life, and keeps all.
func (c *prefixCache) look(ids []uint64, now, life int64) (hit int) {
	if c.at == nil {
		c.at = map[uint64]*list.Element{}
	}
	for hit < len(ids) {
		e := c.at[ids[hit]]
		if e == nil || now-e.Value.(*cachedBlock).used > life {
			break
		}
		hit++
	}
	for i := len(ids) - 1; i >= 0; i-- {
		if e := c.at[ids[i]]; e != nil {
			e.Value.(*cachedBlock).used = now
			c.order.MoveToFront(e)
			continue
		}
		c.at[ids[i]] = c.order.PushFront(&cachedBlock{ids[i], now})
	}
	for len(c.at) > c.capacity {
		last := c.order.Back()
		delete(c.at, last.Value.(*cachedBlock).id)
		c.order.Remove(last)
	}
	return hit
}

// Steps and least length of a provider's cache, in tokens, and how long it keeps a prompt.
const (
	providerStep  = 128
	providerLeast = 1024
	providerLife  = int64(5 * time.Minute)
)

// hidden are the rows as a log without text has them: with the tokens that a provider
// found in a cache of a part of all blocks, such as the twentieth.
func hidden(rows []trace.Request, size, part int) (out []trace.Entry, measured float64) {
	steps := func(r *trace.Request) (ids []uint64) {
		for end := providerStep; end <= int(r.InputTokens) && end/size <= len(r.Blocks); end += providerStep {
			ids = append(ids, r.Blocks[end/size-1])
		}
		return ids
	}
	distinct := map[uint64]bool{}
	for i := range rows {
		for _, id := range steps(&rows[i]) {
			distinct[id] = true
		}
	}
	cache := prefixCache{capacity: len(distinct) / part}
	hit, all := 0, 0
	for i := range rows {
		r := &rows[i]
		cached := cache.look(steps(r), r.ArrivalNS, providerLife) * providerStep
		if cached < providerLeast {
			cached = 0
		}
		hit, all = hit+cached, all+int(r.InputTokens)
		e := trace.Entry{Time: at(0).Add(time.Duration(r.ArrivalNS)), InputTokens: trace.Ptr(r.InputTokens), OutputTokens: trace.Ptr(*r.OutputTokens),
			Cached: trace.Ptr(int32(cached)), Reasoning: r.ReasoningTokens, Model: trace.NewText(r.Model), Status: r.Status, Kind: "chat", Parents: r.Parents}
		if r.Session != nil {
			e.Session = trace.NewText(fmt.Sprint(*r.Session))
		}
		out = append(out, e)
	}
	return out, float64(hit) / float64(all)
}

// curve are hit ratios by block of caches of these sizes.
func curve(rows []trace.Request, capacities []int) (ratios []float64) {
	for _, n := range capacities {
		cache := prefixCache{capacity: n}
		hit, all := 0, 0
		for i := range rows {
			hit += cache.look(rows[i].Blocks, 0, math.MaxInt64)
			all += len(rows[i].Blocks)
		}
		ratios = append(ratios, float64(hit)/float64(all))
	}
	return ratios
}

// An inferredError says how far what was inferred is from the truth.
type inferredError struct{ exact, inferred, measured, curve float64 }

// wantFound demands that every row finds as many tokens of earlier rows as the server said
// that it found, to a block, and returns how many tokens the server had from before them.
func wantFound(t *testing.T, rows []trace.Request, size int) (before int) {
	t.Helper()
	known, longest := map[uint64]bool{}, map[string]int{} // prompt and answer of a model
	for i := range rows {
		r := &rows[i]
		if len(r.Blocks) != block.Count(int(r.InputTokens), size) || r.ReuseSource != trace.ReuseInferred {
			t.Fatalf("row %d: %d blocks of %s for %d tokens", i, len(r.Blocks), r.ReuseSource, r.InputTokens)
		}
		n := 0
		for n < len(r.Blocks) && known[r.Blocks[n]] {
			n++
		}
		for _, ids := range [][]uint64{r.Blocks, r.OutputBlocks} {
			for _, id := range ids {
				known[id] = true
			}
		}
		if cached := int(*r.CachedTokens); n < cached/size {
			if longest[r.Model] >= cached {
				t.Errorf("row %d finds %d tokens, and the server found %d", i, n*size, cached)
			}
			before += cached - n*size
		}
		longest[r.Model] = max(longest[r.Model], int(r.InputTokens+*r.OutputTokens))
	}
	return before
}

// compareInferred hides the text of rows and infers it back.
func compareInferred(t *testing.T, rows []trace.Request, size int) (e inferredError) {
	t.Helper()
	src, measured := hidden(rows, size, 20)
	p := anonymize.Policy{Tier: anonymize.Internal, BlockSize: size}
	got, card := run(t, p, src)
	if len(got) != len(rows) {
		t.Fatalf("%d rows, want %d", len(got), len(rows))
	}
	distinct := map[uint64]bool{}
	for i := range rows {
		for _, id := range rows[i].Blocks {
			distinct[id] = true
		}
	}
	wantFound(t, got, size)
	if card.Totals.Sources.Estimated != int64(len(got)) || card.Totals.Blocks == 0 {
		t.Errorf("%+v, %d blocks", card.Totals.Sources, card.Totals.Blocks)
	}
	var capacities []int
	for _, share := range []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1} {
		capacities = append(capacities, int(share*float64(len(distinct))))
	}
	want, have := curve(rows, capacities), curve(got, capacities)
	for i := range want {
		e.curve += math.Abs(want[i]-have[i]) / float64(len(want))
	}
	e.exact, e.inferred, e.measured = hitRatio(rows, size), hitRatio(got, size), measured
	t.Logf("%d requests, blocks of %d: hit ratio %.3f exact, %.3f inferred, %.3f measured by the provider; LRU curve MAE %.3f (exact %.3f, inferred %.3f)",
		len(rows), size, e.exact, e.inferred, e.measured, e.curve, want, have)
	return e
}

// imported reads a file as rows with blocks.
func imported(t *testing.T, pattern string, size int, process string) []trace.Request {
	t.Helper()
	files, err := datasets.Expand(pattern)
	if err != nil {
		t.Fatal(err)
	}
	src, err := datasets.OpenFiles(files, datasets.Options{MaxBad: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	p, err := arrival.ParseProcess(process)
	if err != nil {
		t.Fatal(err)
	}
	dist := func(s string, seed uint64) arrival.Dist {
		d, err := arrival.ParseDist(s)
		if err != nil {
			t.Fatal(err)
		}
		return d.New(rand.New(rand.NewPCG(seed, 1)))
	}
	info := src.Info()
	var entries trace.EntryReader = src
	switch process := p.New(rand.New(rand.NewPCG(1, 1))); {
	case info.SessionTimes:
		entries = datasets.Spread(src, process)
	case !info.HasTimes:
		entries = datasets.Timed(src, process, dist("lognormal:5s,1", 2), dist("lognormal:30s,1.5", 3))
	}
	q := policy(t)
	q.BlockSize, q.SourceBlock, q.Lengths = size, info.BlockSize, anonymize.LengthsUsage
	var rows keep
	if _, err := anonymize.Run(context.Background(), q, entries, &rows); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return rows
}

// Conversations whose text is hidden: docs/evidence/inferred-reuse.md has the figures.
func TestInferredReuseOfShareGPT(t *testing.T) {
	const path = "../../shared/data/sharegpt_sample.json"
	if _, err := os.Stat(path); err != nil {
		t.Skip("there are no published conversations beside the checkout")
	}
	e := compareInferred(t, imported(t, path, 128, "poisson:0.5"), 128)
	if math.Abs(e.exact-e.inferred) > 0.02 || e.curve > 0.03 {
		t.Errorf("%+v", e)
	}
}

// Agent sessions with the block hashes of a server, which are hidden: docs/evidence/inferred-reuse.md has
// the figures.
func TestInferredReuseOfAgents(t *testing.T) {
	root := os.Getenv("REPRISE_TEST_SAMPLES")
	files, _ := filepath.Glob(filepath.Join(root, "weka", "*.json"))
	if root == "" || len(files) == 0 {
		t.Skip("REPRISE_TEST_SAMPLES does not name a folder with agent sessions in weka")
	}
	rows := imported(t, filepath.Join(root, "weka", "*.json"), 64, "poisson:0.005")
	e := compareInferred(t, rows, 64)
	if math.Abs(e.exact-e.inferred) > 0.02 || e.curve > 0.03 {
		t.Errorf("%+v", e)
	}
}

// Sessions of agents whose servers said what they found: each row finds as much, but for
// what was cached before the log began.
func TestInferredReuseOfSamples(t *testing.T) {
	root := os.Getenv("REPRISE_TEST_SAMPLES")
	if root == "" {
		t.Skip("REPRISE_TEST_SAMPLES does not name a folder of real sessions")
	}
	for _, folder := range []string{"claude-code/sniffly/-Users-chip-dev-ai-music", "claude-code/tracelab", "claude-code/viewer", "codex/localpush", "codex/tracelab"} {
		path := filepath.Join(root, folder)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		for _, size := range []int{16, 64, 512} {
			rows := imported(t, path, size, "poisson:1")
			before, cached := wantFound(t, rows, size), 0
			for i := range rows {
				cached += int(*rows[i].CachedTokens)
			}
			if first := int(*rows[0].CachedTokens); before < first-size || before > first {
				t.Errorf("%s: %d tokens from before the log, and the first call found %d", folder, before, first)
			}
			t.Logf("%s, blocks of %d: %d calls found %d tokens, %d of them from before the log; hit ratio %.3f", folder, size, len(rows), cached, before, hitRatio(rows, size))
		}
	}
}

// Conversations that share a system prompt, whose text is hidden.
func TestInferredReuse(t *testing.T) {
	var src []trace.Entry
	head := trace.NewText(text("rule", 300).Reveal())
	for s := range 40 {
		for _, e := range chat(fmt.Sprint("topic ", s), "u", 15_000*s, 6, 0) {
			e.Messages[0].Content, e.Parents, e.Model = head, nil, trace.NewText("m")
			src = append(src, e)
		}
	}
	rows, _ := run(t, policy(t), src)
	e := compareInferred(t, rows, 16)
	if math.Abs(e.exact-e.inferred) > 0.02 || e.curve > 0.03 {
		t.Errorf("%+v", e)
	}
	// Inferred blocks that do not fit in memory spill, beside others or alone, to the same end.
	bare, _ := hidden(rows, 16, 20)
	for i := range bare {
		if i%5 == 0 { // blocks of the source's own
			bare[i].SourceBlocks = make([]uint64, block.Count(int(*bare[i].InputTokens), 16))
			for k := range bare[i].SourceBlocks {
				bare[i].SourceBlocks[k] = uint64(1000*(i/50) + k)
			}
		}
	}
	p := anonymize.Policy{Tier: anonymize.Internal, BlockSize: 16, SourceBlock: 16, SpillDir: t.TempDir()}
	want, whole := run(t, p, bare)
	if n := whole.Totals.Sources.Estimated; n != int64(len(bare)-len(bare)/5) || whole.Totals.SpillBytes != 0 {
		t.Fatalf("%d rows inferred, %d bytes spilled", n, whole.Totals.SpillBytes)
	}
	for _, distinct := range []int{1, 100, whole.Totals.Blocks - 1} {
		got, spilled := run(t, p.WithLimits(distinct, 500), bare)
		if digest(got) != digest(want) || spilled.Totals.Blocks != whole.Totals.Blocks || spilled.Totals.Sources != whole.Totals.Sources || spilled.Totals.SpillBytes == 0 {
			t.Errorf("other rows with %d blocks in memory: %+v, want %+v", distinct, spilled.Totals, whole.Totals)
		}
	}
	// A source that says nothing of its cache is left as it is.
	bare, _ = hidden(rows, 16, 20)
	for i := range bare {
		bare[i].Cached = nil
	}
	got, card := run(t, anonymize.Policy{Tier: anonymize.Internal, BlockSize: 16}, bare)
	for _, r := range got {
		if len(r.Blocks) > 0 || r.ReuseSource != "" {
			t.Fatalf("%+v", r)
		}
	}
	if card.Totals.Blocks != 0 || card.Totals.Sources.Usage != int64(len(got)) {
		t.Errorf("%+v", card.Totals)
	}
}

// A call that waited for another agent goes on from its own conversation, though the other
// ended later; and one after many turns of others finds its own.
func TestInferredReuseAfterAgents(t *testing.T) {
	var src []trace.Entry
	call := func(input, output, cached int32, parents ...int64) {
		src = append(src, trace.Entry{Time: at(1000 * len(src)), Session: trace.NewText("s"), Model: trace.NewText("m"), Kind: "chat",
			InputTokens: &input, OutputTokens: &output, Cached: &cached, Parents: parents})
	}
	call(40_000, 100, 0)      // asks an agent
	call(9_000, 50, 0, 0)     // the agent
	call(41_000, 80, 0, 0, 1) // goes on
	for i := range int64(6) { // another agent, for several turns
		call(int32(5_000+1_000*i), 10, 0, 2+i*min(i, 1))
	}
	call(42_000, 10, 0, 2, 8) // goes on
	rows, _ := run(t, anonymize.Policy{Tier: anonymize.Internal, BlockSize: 16}, append(src, trace.Entry{Time: at(60_000), Model: trace.NewText("m"), Kind: "chat",
		InputTokens: trace.Ptr[int32](32), OutputTokens: trace.Ptr[int32](1), Cached: trace.Ptr[int32](16)}))
	shared := func(a, b int) (n int) {
		for n < min(len(rows[a].Blocks), len(rows[b].Blocks)) && rows[a].Blocks[n] == rows[b].Blocks[n] {
			n++
		}
		return n
	}
	for _, c := range [][3]int{{2, 0, 2500}, {2, 1, 0}, {9, 2, 2562}, {9, 8, 0}} {
		if n := shared(c[0], c[1]); n != c[2] {
			t.Errorf("call %d shares %d blocks with call %d, want %d", c[0], n, c[1], c[2])
		}
	}
}
