package profile

import (
	"slices"
	"strconv"

	"reprise/trace"
	"reprise/trace/breaker"
	"reprise/trace/fleet"
)

// TablesSchema names the layout of the rows of [Tables].
const TablesSchema = "tables/1"

// A TableRow is one number of a [Summary] as a row of Parquet. What is not known
// has no row.
type TableRow struct {
	trace.Row `parquet:"-" json:"-"`
	Table     string  `parquet:"table,dict" json:"table"` // which series it belongs to
	Key       string  `parquet:"key" json:"key"`          // where in it: a capacity, a time, a name
	Value     float64 `parquet:"value" json:"value"`
	Unit      string  `parquet:"unit,dict" json:"unit"`
}

// tableRows gathers rows.
type tableRows []TableRow

func (t *tableRows) add(table, key string, value *float64, unit string) {
	if value != nil {
		*t = append(*t, TableRow{Table: table, Key: key, Value: *value, Unit: unit})
	}
}

func (t *tableRows) count(table, key string, value int64, unit string) {
	*t = append(*t, TableRow{Table: table, Key: key, Value: float64(value), Unit: unit})
}

// Tables returns the curves, series and breakdowns of s as rows, for programs
// that would rather read a table than JSON. The keys are capacities in blocks,
// inf for one without limit; seconds from the first arrival; windows in seconds;
// names; replicas/router; for waterfalls rows/replicas/step, with the router
// after it where there is one; for top prefixes their last block; and for prefix
// breakers their rank from 1 by tokens lost, and all.
func Tables(s Summary) []TableRow {
	var t tableRows
	for _, set := range reuseSets(&s) {
		name := "lru_curve"
		if set.ReuseSummary == s.ReuseWithGenerated {
			name = "lru_curve_generated_kv"
		}
		t.ratios(name, &set.HitRatios)
		t.ratios(name+"_steady", &set.Steady.HitRatios)
		t.curve(name, set.LRUCurve)
		t.curve(name+"_dense", set.LRUCurveDense)
		t.curve(name+"_steady", set.Steady.LRUCurve)
	}
	if s.OverTime != nil {
		for _, bin := range s.OverTime.Bins {
			t.traffic("over_time", plain(bin.StartS), &bin.TrafficReuse)
		}
	}
	t.add("sessions.share", "source", s.SessionShares.SourceShare, "ratio")
	t.add("sessions.share", "inferred", s.SessionShares.InferredShare, "ratio")
	t.groups("category", s.ByCategory)
	t.groups("model", s.ByModel)
	t.groups("client", s.ByClient)
	t.prefixes(s.Prefixes)
	t.breakers(s.Breakers)
	t.workingSets(s.WorkingSet)
	t.routing(s.Routing)
	for _, w := range s.Waterfalls {
		for _, step := range w.Steps {
			key := w.Rows + "/" + strconv.Itoa(w.Replicas) + "/" + step.Step
			if step.Router != "" {
				key += "/" + step.Router
			}
			t.add("waterfall.left", key, step.HitRatio, "ratio")
			t.add("waterfall.cost", key, step.CostPoints, "points")
		}
	}
	return t
}

// plain prints v so that it reads back as the same number.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// ratios are the hit ratios of the set of reuse whose curve has that name.
func (t *tableRows) ratios(name string, r *HitRatios) {
	t.add(name+".hit_ratio", "by_block", r.ByBlock, "ratio")
	t.add(name+".hit_ratio", "by_token", r.ByToken, "ratio")
	t.add(name+".hit_ratio", "mean_over_requests", r.MeanOverRequests, "ratio")
	t.add(name+".hit_ratio", "full_blocks_only", r.FullBlocksOnly, "ratio")
}

func (t *tableRows) curve(name string, points []CurvePoint) {
	for _, p := range points {
		key := "inf"
		if p.CapacityBlocks != nil {
			key = strconv.FormatInt(*p.CapacityBlocks, 10)
		}
		t.add(name+".hit_by_block", key, &p.HitRatio, "ratio")
		t.add(name+".hit_by_token", key, p.HitRatioByToken, "ratio")
		t.add(name+".capacity", key, p.CapacityGiB, "GiB")
	}
}

func (t *tableRows) traffic(name, key string, r *TrafficReuse) {
	t.count(name+".requests", key, r.Requests, "requests")
	t.count(name+".input", key, r.InputTokens, "tokens")
	t.count(name+".output", key, r.OutputTokens, "tokens")
	t.add(name+".hit_by_block", key, r.HitRatio, "ratio")
	t.add(name+".hit_by_token", key, r.HitRatioByToken, "ratio")
	t.add(name+".server_hit_by_token", key, r.ServerHitRatio, "ratio")
}

func (t *tableRows) groups(name string, g *GroupedReuse) {
	if g == nil {
		return
	}
	list := g.Groups
	for _, more := range []struct {
		name string
		*GroupReuse
	}{{"(rest)", g.Rest}, {"(unnamed)", g.Unnamed}} {
		if more.GroupReuse != nil {
			list = append(list[:len(list):len(list)], GroupReuse{more.name, more.Whole, more.Steady})
		}
	}
	for _, one := range list {
		t.traffic(name, one.Name, &one.Whole)
		t.traffic(name+"_steady", one.Name, &one.Steady)
	}
}

// prefixes lists a prefix that both measures put on top once.
func (t *tableRows) prefixes(top *TopPrefixes) {
	if top == nil {
		return
	}
	listed := make(map[int64]bool)
	for _, p := range slices.Concat(top.ByRequests, top.BySaved) {
		if listed[p.LastBlock] {
			continue
		}
		listed[p.LastBlock] = true
		key := strconv.FormatInt(p.LastBlock, 10)
		t.count("top_prefix.depth", key, p.DepthTokens, "tokens")
		t.count("top_prefix.requests", key, p.Requests, "requests")
		t.count("top_prefix.saved", key, p.SavedTokens, "tokens")
		t.count("top_prefix.own_saved", key, p.OwnSavedTokens, "tokens")
	}
}

func (t *tableRows) breakers(s *breaker.Summary) {
	if s == nil {
		return
	}
	t.count("prefix_breaker.lost", "all", s.LostTokens, "tokens")
	t.add("prefix_breaker.lost_share", "all", s.LostShare, "ratio")
	for i, b := range s.List {
		key := strconv.Itoa(i + 1)
		t.count("prefix_breaker.message", key, int64(b.Message), "messages")
		t.count("prefix_breaker.from", key, b.From, "tokens")
		t.count("prefix_breaker.to", key, b.To, "tokens")
		t.count("prefix_breaker.width", key, b.Width, "tokens")
		t.count("prefix_breaker.requests", key, b.Requests, "requests")
		t.count("prefix_breaker.lost", key, b.Lost, "tokens")
	}
}

func (t *tableRows) workingSets(w *WorkingSets) {
	if w == nil {
		return
	}
	size := func(key string, s *WorkingSetSize, of string) {
		if s != nil {
			t.add("working_set."+of, key, &s.Blocks, "blocks")
			t.add("working_set."+of+"_tokens", key, &s.Tokens, "tokens")
			t.add("working_set."+of+"_gib", key, s.GiB, "GiB")
		}
	}
	for _, one := range w.Windows {
		size(plain(one.WindowS), one.Mean, "mean")
		size(plain(one.WindowS), one.Max, "max")
	}
	size("inf", &w.Total, "total")
}

func (t *tableRows) routing(s *fleet.Summary) {
	if s == nil {
		return
	}
	for _, f := range s.Fleets {
		for _, r := range append([]fleet.Result{f.OneCache}, f.Routers...) {
			key := strconv.Itoa(f.Replicas) + "/" + r.Router
			t.add("routing.hit_by_block", key, r.HitRatio, "ratio")
			t.add("routing.hit_by_token", key, r.HitRatioByToken, "ratio")
			t.add("routing.server_hit_by_token", key, r.ServerHitRatio, "ratio")
			t.add("routing.prompt_tokens_max_over_mean", key, r.SentImbalance, "ratio")
			t.add("routing.prefill_tokens_max_over_mean", key, r.PrefillImbalance, "ratio")
		}
	}
}
