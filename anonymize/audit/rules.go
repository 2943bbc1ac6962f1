package audit

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"sort"
	"strings"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/block"
)

// rules holds every row against what the card of tier partner says about its columns.
func rules(ctx context.Context, c *Case) Finding {
	if c.Output.Tier() != anonymize.Partner {
		return skipped("it is of tier partner: others keep what they have")
	}
	if c.Output.drawn() {
		return skipped("its sessions are drawn from noisy tables, so that no row is one of the source")
	}
	if m := c.Output.Trace.Meta; m.Seed != "" {
		return skipped("the workload was made of a trace, and its lengths and times of a seed")
	}
	p, _, err := policyOf(c.Output)
	if err != nil {
		return broken(err)
	}
	rows, err := c.Output.Trace.Reader()
	if err != nil {
		return broken(err)
	}
	h := &cardChecker{size: c.Output.Trace.Meta.BlockSize, quantum: int64(p.Quantum), middles: middles(p.PerOctave), broken: map[string]int{},
		pairs: map[[2]int32]bool{}}
	n := 0
	if err := eachRequest(ctx, rows, func(r *trace.Request) { n++; h.checkRow(r) }); err != nil {
		return broken(err)
	}
	h.expect("blocks, which are numbered from 0", h.most <= h.refs)
	behind, err := unchained(ctx, c.Output.Trace, min(h.most, h.refs), blockBytes)
	if err != nil {
		return broken(err)
	}
	fig := Figures{"rows": n, "pairs_of_lengths": len(h.pairs)}
	if card, err := anonymize.ParseCard(c.Output.Meta["card"], c.Output.Meta["card_sha256"]); err == nil && len(h.pairs) > card.Partner.Classes {
		h.broken[fmt.Sprintf("%d pairs of lengths, and the card says %d", len(h.pairs), card.Partner.Classes)]++
	}
	if len(h.broken) > 0 {
		fig["not_as_the_card_says"] = slices.Sorted(maps.Keys(h.broken))
		return failed(fig, "rows are not as the card says: %s", strings.Join(slices.Sorted(maps.Keys(h.broken)), ", "))
	}
	switch {
	case behind > 0 && c.Output.Trace.Meta.Tokenizer == "":
		return inconclusive(fig, "some blocks stand behind different ones: either the source's own ids are not chained, or what fills lists up is the same for all")
	case behind > 0:
		return failed(fig, "some blocks stand behind different ones, as filling that is the same for all: their number is the length")
	}
	return passed(fig, "lengths and pauses are of public buckets, what the card says is dropped is not there, and no block follows two others")
}

// A cardChecker compares rows with what the card says about them.
type cardChecker struct {
	size    int
	quantum int64
	middles map[int64]bool
	broken  map[string]int
	pairs   map[[2]int32]bool
	refs    uint64 // to blocks
	most    uint64 // the largest id of one, plus one
}

// middles are the lengths that a release may have: the middles of buckets with the
// edges ⌈2^(i/perOctave)⌉, and 0. They are computed here once more, since a check
// that asks the code that it judges would see nothing.
func middles(perOctave int) map[int64]bool {
	out := map[int64]bool{}
	for m := range bucketsOf(perOctave) {
		out[m] = true
	}
	return out
}

// bucketsOf are the first and the last length of each bucket, by the middle that stands
// for it.
func bucketsOf(perOctave int) map[int64][2]int64 {
	out := map[int64][2]int64{0: {}}
	last := int64(1)
	for i := 1; i <= 31*perOctave; i++ {
		// By whole numbers: the smallest x whose power of perOctave is 2^i or more.
		power, n := new(big.Int).Lsh(big.NewInt(1), uint(i)), big.NewInt(int64(perOctave))
		edge := int64(sort.Search(1<<31, func(x int) bool { return new(big.Int).Exp(big.NewInt(int64(x)), n, nil).Cmp(power) >= 0 }))
		if edge > last {
			out[(last+edge-1)/2] = [2]int64{last, edge - 1}
			last = edge
		}
	}
	return out
}

func (h *cardChecker) checkRow(r *trace.Request) {
	h.expect("input_tokens", h.middles[int64(r.InputTokens)])
	h.expect("output_tokens", h.middles[int64(r.OutputTokens)])
	h.expect("think_ns", h.pause(r.ThinkNS))
	h.expect("tool_ns", h.pause(r.ToolNS))
	h.expect("blocks", len(r.Blocks) == 0 || len(r.Blocks) == block.Count(int(r.InputTokens), h.size))
	h.expect("user, which is dropped", r.User == nil)
	h.expect("replica, which is dropped", r.Replica == nil)
	h.expect("output_blocks, which are dropped", r.OutputBlocks == nil)
	h.expect("finish_reason, which is dropped", r.FinishReason == "")
	h.expect("counts, which are dropped", r.ReasoningTokens == nil && r.CachedTokens == nil && r.ImageTokens == nil && r.Images == nil && r.MaxTokens == nil)
	h.expect("settings, which are dropped", r.Temperature == nil && r.Stream == nil)
	h.expect("sources, which are dropped", r.LengthSource == "" && r.ReuseSource == "")
	h.expect("latencies, which are dropped", r.TTFTNS == nil && r.E2ENS == nil)
	h.pairs[[2]int32{r.InputTokens, r.OutputTokens}] = true
	h.refs += uint64(len(r.Blocks))
	for _, b := range r.Blocks {
		h.most = max(h.most, b, b+1) // the largest number has no next
	}
}

func (h *cardChecker) expect(what string, ok bool) {
	if !ok {
		h.broken[what]++
	}
}

// pause reports whether a pause is half a quantum, or the middle of a bucket of
// whole ones.
func (h *cardChecker) pause(ns *int64) bool {
	return ns == nil || *ns == h.quantum/2 || *ns%h.quantum == 0 && *ns > 0 && h.middles[*ns/h.quantum]
}

// blockBytes is the memory for what is known of blocks. Blocks beyond it are
// looked at in another pass over the rows.
const blockBytes = 256 << 20

// unchained counts how often a block with an id below n stands at another place,
// or after another block, than before. A block's id is of all before it, and what
// fills lists up must not be told by standing after others each time: their number
// is the length. limit is of the memory.
func unchained(ctx context.Context, t *trace.Trace, n uint64, limit uint64) (count int, err error) {
	step := max(limit/8, 1)
	for from := uint64(0); from < n; from += step {
		rows, err := t.Reader()
		if err != nil {
			return 0, err
		}
		rows.Only("blocks")
		at := make([]uint64, min(step, n-from)) // by block: a hash of where it stands
		err = eachRequest(ctx, rows, func(r *trace.Request) {
			past := uint64(0)
			for i, b := range r.Blocks {
				if b >= from && b-from < uint64(len(at)) {
					here := mixKey(mixKey(1, uint64(i)), past) | 1 // never 0, which is nowhere
					if was := at[b-from]; was != 0 && was != here {
						count++
					}
					at[b-from] = here
				}
				past = b + 1
			}
		})
		if err != nil {
			return 0, err
		}
	}
	return count, nil
}
