package profile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/breaker"
	"reprise/trace/profile"
)

// Tables repeat what the summary says.
func TestTables(t *testing.T) {
	s := crowds["everything"]
	rows := generate(162, 600, s)
	annotate(rows, s.block, profile.Options{})
	opts := profile.ProfilerOptions{ReuseOptions: profile.ReuseOptions{KVBytesPerToken: 1 << 20}, Replicas: []int{2}, ReplicaBlocks: 100}
	sum := profileOf(t, rows, trace.Meta{BlockSize: s.block, Sessions: "source"}, opts).Summary()
	sum.Breakers = &breaker.Summary{LostShare: trace.Ptr(0.25),
		Set: breaker.Set{LostTokens: 90, List: []breaker.Breaker{{Message: 1, From: 46, To: 48, Width: 3, Requests: 9, Lost: 80}, {Lost: 10}}}}
	of := map[string]float64{}
	for _, r := range profile.Tables(sum) {
		key := r.Table + " " + r.Key + " " + r.Unit
		if _, twice := of[key]; twice {
			t.Errorf("there are two rows of %s", key)
		}
		of[key] = r.Value
	}
	f, top := sum.Routing.Fleets[0], sum.Prefixes.BySaved[0]
	last := fmt.Sprint(top.LastBlock)
	for key, want := range map[string]float64{
		"lru_curve.hit_by_block inf ratio":                       *sum.Reuse.HitRatios.ByBlock,
		"lru_curve_generated_kv.hit_by_token inf ratio":          *sum.ReuseWithGenerated.HitRatios.ByToken,
		"lru_curve_steady.hit_by_token inf ratio":                *sum.Reuse.Steady.HitRatios.ByToken,
		"lru_curve.hit_ratio mean_over_requests ratio":           *sum.Reuse.HitRatios.MeanOverRequests,
		"lru_curve_steady.hit_ratio full_blocks_only ratio":      *sum.Reuse.Steady.HitRatios.FullBlocksOnly,
		"top_prefix.depth " + last + " tokens":                   float64(top.DepthTokens),
		"top_prefix.own_saved " + last + " tokens":               float64(top.OwnSavedTokens),
		"sessions.share source ratio":                            *sum.SessionShares.SourceShare,
		"prefix_breaker.lost all tokens":                         90,
		"prefix_breaker.lost_share all ratio":                    0.25,
		"prefix_breaker.from 1 tokens":                           46,
		"prefix_breaker.message 1 messages":                      1,
		"prefix_breaker.lost 2 tokens":                           10,
		"lru_curve_dense.capacity 1 GiB":                         *sum.Reuse.LRUCurveDense[0].CapacityGiB,
		"over_time.input 0 tokens":                               float64(sum.OverTime.Bins[0].InputTokens),
		"model.requests large requests":                          float64(sum.ByModel.Groups[0].Whole.Requests),
		"model_steady.hit_by_token (unnamed) ratio":              *sum.ByModel.Unnamed.Steady.HitRatioByToken,
		"client.requests (rest) requests":                        float64(sum.ByClient.Rest.Whole.Requests),
		"category.hit_by_block cold ratio":                       0,
		"working_set.max 60 blocks":                              sum.WorkingSet.Windows[0].Max.Blocks,
		"working_set.total_gib inf GiB":                          *sum.WorkingSet.Total.GiB,
		"routing.hit_by_block 2/prefix-weighted ratio":           *f.Routers[3].HitRatio,
		"routing.prefill_tokens_max_over_mean 2/one-cache ratio": 1,
		"waterfall.cost all/2/capacity points":                   *sum.Waterfalls[0].Steps[2].CostPoints,
		"waterfall.left recorded/2/routing/session ratio":        *sum.Waterfalls[1].Steps[4].HitRatio,
		"waterfall.left recorded/2/recorded ratio":               *sum.Waterfalls[1].Steps[7].HitRatio,
	} {
		if got, ok := of[key]; !ok || got != want {
			t.Errorf("%s is %v (%v); want %v", key, got, ok, want)
		}
	}
	names := map[string]bool{}
	for _, r := range profile.Tables(sum) {
		names[r.Table+" "+r.Unit] = true
	}
	if got, want := slices.Sorted(maps.Keys(names)), tableColumns(); !slices.Equal(got, want) {
		t.Errorf("columns of the tables:\n%q\nwant\n%q", got, want)
	}
	if got := profile.Tables(profile.Summary{}); len(got) != 0 {
		t.Errorf("an empty summary has rows: %v", got)
	}
}

// tableColumns are all columns of all tables, each with its unit, sorted.
func tableColumns() []string {
	var all []string
	columns := func(tables, columns string) {
		for _, table := range strings.Fields(tables) {
			for c := range strings.SplitSeq(columns, ", ") {
				all = append(all, table+"."+c)
			}
		}
	}
	curve := "capacity GiB, hit_by_block ratio, hit_by_token ratio"
	columns("lru_curve_dense lru_curve_generated_kv_dense", curve)
	columns("lru_curve lru_curve_steady lru_curve_generated_kv lru_curve_generated_kv_steady", curve+", hit_ratio ratio")
	columns("category category_steady client client_steady model model_steady over_time",
		"requests requests, input tokens, output tokens, hit_by_block ratio, hit_by_token ratio, server_hit_by_token ratio")
	columns("prefix_breaker", "message messages, from tokens, to tokens, width tokens, requests requests, lost tokens, lost_share ratio")
	columns("routing", "hit_by_block ratio, hit_by_token ratio, server_hit_by_token ratio, prefill_tokens_max_over_mean ratio, prompt_tokens_max_over_mean ratio")
	columns("sessions", "share ratio")
	columns("top_prefix", "depth tokens, requests requests, saved tokens, own_saved tokens")
	columns("waterfall", "left ratio, cost points")
	columns("working_set", "mean blocks, max blocks, total blocks, mean_tokens tokens, max_tokens tokens, total_tokens tokens, mean_gib GiB, max_gib GiB, total_gib GiB")
	slices.Sort(all)
	return all
}
