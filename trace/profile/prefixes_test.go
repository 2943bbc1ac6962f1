package profile_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"reprise/trace"
	"reprise/trace/profile"
)

// naivePrefixes finds every prefix that two prompts share and that no longer one
// has as many prompts of, by counting all beginnings of all prompts.
func naivePrefixes(rows []trace.Request, size int64) (list []profile.Prefix, hitTokens int64) {
	type beginning struct {
		requests, tokens int64
		blocks           []uint64
	}
	of := map[string]*beginning{}
	var prompts int64
	for _, r := range load(rows) {
		if len(r.Blocks) > 0 {
			prompts++
		}
		for n := range r.Blocks {
			key := fmt.Sprint(r.Blocks[:n+1])
			if of[key] == nil {
				of[key] = &beginning{tokens: min(int64(n+1)*size, int64(r.InputTokens)), blocks: r.Blocks[:n+1]}
			}
			of[key].requests++
		}
	}
	longest := map[string]int64{} // of the beginnings one block longer, the most requests
	for _, b := range of {
		if n := len(b.blocks); n > 1 {
			parent := fmt.Sprint(b.blocks[:n-1])
			longest[parent] = max(longest[parent], b.requests)
		}
	}
	for key, b := range of {
		if b.requests < 2 || longest[key] == b.requests {
			continue
		}
		before := int64(0) // tokens of the longest beginning that more requests have
		for n := range b.blocks {
			if shorter := of[fmt.Sprint(b.blocks[:n+1])]; shorter.requests > b.requests {
				before = shorter.tokens
			}
		}
		list = append(list, profile.Prefix{LastBlock: int64(b.blocks[len(b.blocks)-1]), DepthBlocks: int64(len(b.blocks)),
			DepthTokens: b.tokens, Requests: b.requests, RequestShare: ratio(b.requests, prompts),
			SavedTokens: (b.requests - 1) * b.tokens, OwnSavedTokens: (b.requests - 1) * (b.tokens - before)})
		hitTokens += (b.requests - 1) * (b.tokens - before)
	}
	for i := range list {
		list[i].OwnShare = ratio(list[i].OwnSavedTokens, hitTokens)
	}
	return list, hitTokens
}

func TestTopPrefixesAgainstNaive(t *testing.T) {
	for seed := range uint64(40) {
		s := shape{block: 4, system: seed%2 == 0, output: seed%3 == 0, people: seed%5 == 0}
		rows := generate(200+seed, []int{300, 16}[seed/20], s) // of the shorter all prefixes are listed
		renumber(rows)
		sum := profileOf(t, rows, trace.Meta{BlockSize: s.block}, profile.ProfilerOptions{}).Summary()
		want, hitTokens := naivePrefixes(rows, int64(s.block))
		near(t, "what the prefixes save by themselves", sum.Reuse.HitRatios.ByToken, float64(hitTokens)/float64(promptTokens(rows)))
		top := func(list []profile.Prefix, by func(p *profile.Prefix) (int64, int64)) []profile.Prefix {
			slices.SortFunc(list, func(a, b profile.Prefix) int {
				a1, a2 := by(&a)
				b1, b2 := by(&b)
				return cmp.Or(cmp.Compare(b1, a1), cmp.Compare(b2, a2), cmp.Compare(a.LastBlock, b.LastBlock))
			})
			return list[:min(len(list), 10)]
		}
		saved := top(want, func(p *profile.Prefix) (int64, int64) { return p.OwnSavedTokens, p.Requests })
		if a, b := asJSON(t, sum.Prefixes.BySaved), asJSON(t, saved); a != b {
			t.Errorf("seed %d: by tokens\n%s; want\n%s", seed, a, b)
		}
		own := slices.DeleteFunc(slices.Clone(want), func(p profile.Prefix) bool {
			block := int64(s.block)
			ownTokens := p.OwnSavedTokens / (p.Requests - 1)
			return 2*((ownTokens+block-1)/block) < p.DepthBlocks
		})
		requests := top(own, func(p *profile.Prefix) (int64, int64) { return p.Requests, p.SavedTokens })
		if a, b := asJSON(t, sum.Prefixes.ByRequests), asJSON(t, requests); a != b {
			t.Errorf("seed %d: by requests\n%s; want\n%s", seed, a, b)
		}
	}
}

// renumber gives blocks the numbers that their first appearance gives them.
func renumber(rows []trace.Request) {
	var ids trace.Renumber
	for i := range rows {
		if rows[i].Status == trace.StatusFailed {
			continue
		}
		for _, list := range [][]uint64{rows[i].Blocks, rows[i].OutputBlocks} {
			for j := range list {
				list[j] = ids.ID(list[j])
			}
		}
	}
}

func promptTokens(rows []trace.Request) (n int64) {
	for _, r := range load(rows) {
		if len(r.Blocks) > 0 {
			n += int64(r.InputTokens)
		}
	}
	return n
}

// Prompts that share nothing have no prefixes to list; ids that are no chains
// come to an end all the same.
func TestPrefixesAtTheEdge(t *testing.T) {
	apart := []trace.Request{{InputTokens: 4, Blocks: []uint64{1}}, {InputTokens: 4, Blocks: []uint64{2}}}
	if s := profileOf(t, apart, trace.Meta{BlockSize: 4}, profile.ProfilerOptions{}).Summary(); s.Prefixes != nil {
		t.Errorf("prompts that share nothing have prefixes: %+v", s.Prefixes)
	}
	knots := []trace.Request{{InputTokens: 8, Blocks: []uint64{1, 2}}, {InputTokens: 8, Blocks: []uint64{2, 1}},
		{InputTokens: 12, Blocks: []uint64{3, 3, 1}}, {InputTokens: 4, Blocks: []uint64{3}}}
	if s := profileOf(t, knots, trace.Meta{BlockSize: 4}, profile.ProfilerOptions{}).Summary(); s.Prefixes == nil {
		t.Error("blocks that come again are no prefix")
	}
}

// naiveWorkingSet counts the distinct blocks of each whole window.
func TestWorkingSetAgainstNaive(t *testing.T) {
	for name, s := range crowds {
		t.Run(name, func(t *testing.T) {
			rows := generate(141, 2000, s)
			for i := range rows {
				rows[i].ArrivalNS = rows[i].ArrivalNS*60 + 17e9 // an hour or two, with empty minutes
				if i > 1500 {
					rows[i].ArrivalNS += 3 * 3600e9
				}
				if s.output {
					rows[i].ArrivalNS = rows[i].ArrivalNS / 15e9 * 15e9 // many where a window begins
				}
			}
			opts := profile.ProfilerOptions{ReuseOptions: profile.ReuseOptions{KVBytesPerToken: 1 << 20}}
			sum := profileOf(t, rows, trace.Meta{BlockSize: s.block}, opts).Summary()
			rows = load(rows)
			first, last := rows[0].ArrivalNS, rows[len(rows)-1].ArrivalNS
			all := map[uint64]bool{}
			for _, got := range sum.WorkingSet.Windows {
				width := int64(got.WindowS * 1e9)
				sets := map[int64]map[uint64]bool{}
				for _, r := range rows {
					k := (r.ArrivalNS - first) / width
					if sets[k] == nil {
						sets[k] = map[uint64]bool{}
					}
					for _, b := range r.Blocks {
						sets[k][b], all[b] = true, true
					}
				}
				n := (last - first) / width
				total, most := 0, 0
				for k := range n {
					total += len(sets[k])
					most = max(most, len(sets[k]))
				}
				if got.Windows != n {
					t.Fatalf("%d windows of %v s; want %d", got.Windows, got.WindowS, n)
				}
				size := func(blocks float64) profile.WorkingSetSize {
					tokens := blocks * float64(s.block)
					return profile.WorkingSetSize{Blocks: blocks, Tokens: tokens, GiB: trace.Ptr(tokens / 1024)}
				}
				want := profile.WorkingSet{WindowS: got.WindowS, Windows: n,
					Mean: trace.Ptr(size(float64(total) / float64(n))), Max: trace.Ptr(size(float64(most)))}
				if a, b := asJSON(t, got), asJSON(t, want); a != b {
					t.Errorf("the working set is %s; want %s", a, b)
				}
			}
			if got := sum.WorkingSet.Total; got.Blocks != float64(len(all)) {
				t.Errorf("%v blocks in all; want %d", got.Blocks, len(all))
			}
		})
	}
	short := profileOf(t, generate(1, 3, shape{block: 4}), trace.Meta{BlockSize: 4}, profile.ProfilerOptions{}).Summary().WorkingSet
	if w := short.Windows[0]; w.Windows != 0 || w.Mean != nil || w.Max != nil || short.Total.GiB != nil {
		t.Errorf("a trace without a whole window: %+v", short)
	}
}
