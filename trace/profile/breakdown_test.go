package profile_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/profile"
)

// crowds are traces with users, models, parents, cached tokens, rows without
// blocks, and all that shapes have.
var crowds = map[string]shape{
	"prompts":    {block: 4, system: true, people: true},
	"everything": {block: 3, system: true, output: true, statuses: true, sessions: true, people: true},
}

// A visit is a row that is load, and what a cache without limit knew of it.
type visit struct {
	*trace.Request
	hit, hitTokens, server int64
}

// visits compares every row with all before it.
func visits(rows []trace.Request, size, server int64) (list []visit) {
	rows = load(rows)
	for i, hit := range naiveHits(rows, false) {
		v := visit{Request: &rows[i], hit: int64(hit)}
		if hit > 0 {
			v.hitTokens = min(int64(hit)*size, int64(v.InputTokens))
			v.server = min(v.hitTokens, int64(v.InputTokens)-1) / server * server
		}
		list = append(list, v)
	}
	return list
}

// ratio is a/b, or nil.
func ratio(a, b int64) *float64 {
	if b == 0 {
		return nil
	}
	return trace.Ptr(float64(a) / float64(b))
}

func trafficOf(list []visit) (t profile.TrafficReuse) {
	var server int64
	for _, v := range list {
		t.Requests++
		t.InputTokens += int64(v.InputTokens)
		t.OutputTokens += int64(*v.OutputTokens)
		if len(v.Blocks) > 0 {
			t.ReferencesBlocks += int64(len(v.Blocks))
			t.HitBlocks += v.hit
			t.PromptTokens += int64(v.InputTokens)
			t.HitTokens += v.hitTokens
			server += v.server
		}
	}
	t.HitRatio, t.HitRatioByToken = ratio(t.HitBlocks, t.ReferencesBlocks), ratio(t.HitTokens, t.PromptTokens)
	t.ServerHitRatio = ratio(server, t.PromptTokens)
	return t
}

func sameTraffic(t *testing.T, name string, got, want profile.TrafficReuse) {
	t.Helper()
	if a, b := fmt.Sprint(asJSON(t, got)), fmt.Sprint(asJSON(t, want)); a != b {
		t.Errorf("%s is\n%s; want\n%s", name, a, b)
	}
}

func where(list []visit, keep func(visit) bool) (kept []visit) {
	for _, v := range list {
		if keep(v) {
			kept = append(kept, v)
		}
	}
	return kept
}

// checkGroups holds a breakdown against all rows sorted by the name of their
// group; the ones in apart are told apart.
func checkGroups(t *testing.T, kind string, got *profile.GroupedReuse, list []visit, warmUp float64, name func(visit) string, apart int) {
	t.Helper()
	steady := func(v visit) bool { return v.ArrivalNS-list[0].ArrivalNS >= int64(math.Round(warmUp*1e9)) }
	var names []string
	requests := map[string]int{}
	for _, v := range list {
		n := name(v)
		if n != "" && requests[n] == 0 {
			names = append(names, n)
		}
		requests[n]++
	}
	distinct := len(names)
	late := map[string]bool{}
	for _, n := range names[min(apart, distinct):] {
		late[n] = true
	}
	names = names[:min(apart, distinct)]
	slices.SortStableFunc(names, func(a, b string) int { return requests[b] - requests[a] })
	top := names[:min(20, len(names))]
	if got == nil || got.Distinct != int64(distinct) || len(got.Groups) != len(top) {
		t.Fatalf("by %s: %+v; want %d of %d groups", kind, got, len(top), distinct)
	}
	check := func(what string, g *profile.GroupReuse, keep func(visit) bool) {
		of := where(list, keep)
		if (g == nil) != (len(of) == 0) {
			t.Errorf("%s of %s: there is one: %v", what, kind, g != nil)
		} else if g != nil {
			sameTraffic(t, kind+" "+what, g.Whole, trafficOf(of))
			sameTraffic(t, kind+" "+what+" steady", g.Steady, trafficOf(where(of, steady)))
		}
	}
	for i, n := range top {
		if got.Groups[i].Name != n {
			t.Errorf("group %d by %s is %q; want %q", i, kind, got.Groups[i].Name, n)
		}
		check(n, &got.Groups[i], func(v visit) bool { return name(v) == n })
	}
	check("rest", got.Rest, func(v visit) bool { return name(v) != "" && !slices.Contains(top, name(v)) })
	check("unnamed", got.Unnamed, func(v visit) bool { return name(v) == "" })
	if n := int64(len(where(list, func(v visit) bool { return late[name(v)] }))); got.NotToldApart != n {
		t.Errorf("%d requests by %s are not told apart; want %d", got.NotToldApart, kind, n)
	}
}

func clientOf(v visit) string {
	if v.User == nil {
		return ""
	}
	return strconv.FormatInt(*v.User, 10)
}

func TestBreakdownsAgainstNaive(t *testing.T) {
	for name, s := range crowds {
		for _, warmUp := range []*time.Duration{nil, trace.Ptr(20 * time.Second), trace.Ptr(time.Duration(0)), trace.Ptr(time.Hour)} {
			t.Run(fmt.Sprint(name, warmUp), func(t *testing.T) {
				rows := generate(131, 900, s)
				annotate(rows, s.block, profile.Options{})
				opts := profile.ProfilerOptions{ReuseOptions: profile.ReuseOptions{WarmUp: warmUp}, ServerBlock: 5}
				sum := profileOf(t, rows, trace.Meta{BlockSize: s.block}, opts).Summary()
				list, from := visits(rows, int64(s.block), 5), sum.Reuse.Steady.WarmUpS
				checkGroups(t, "category", sum.ByCategory, list, from, func(v visit) string { return v.Category }, 1024)
				checkGroups(t, "model", sum.ByModel, list, from, func(v visit) string { return v.Model }, 1024)
				checkGroups(t, "client", sum.ByClient, list, from, clientOf, 1024)
				checkOverTime(t, sum, list)
			})
		}
	}
}

// checkOverTime counts every bin by looking at all rows.
func checkOverTime(t *testing.T, sum profile.Summary, list []visit) {
	t.Helper()
	o := sum.OverTime
	if o == nil || len(o.Bins) < 55 || len(o.Bins) > 60 {
		t.Fatalf("over time: %+v", o)
	}
	width := int64(math.Round(o.BinS * 1e9))
	for i, bin := range o.Bins {
		end := bin.EndS == float64(int64(i+1)*width)/1e9
		if i == len(o.Bins)-1 {
			end = bin.EndS == sum.DurationS && bin.EndS > bin.StartS
		}
		if math.Abs(bin.StartS*1e9-float64(int64(i)*width)) > 1 || !end {
			t.Errorf("bin %d is from %v to %v s", i, bin.StartS, bin.EndS)
		}
		sameTraffic(t, fmt.Sprint("bin ", i), bin.TrafficReuse, trafficOf(where(list, func(v visit) bool {
			return (v.ArrivalNS-list[0].ArrivalNS)/width == int64(i)
		})))
	}
}

// Of more clients than are told apart, those that appear first are; of more
// models, too. The trace is long enough for spans to be folded many times.
func TestManyClients(t *testing.T) {
	rows := generate(132, 4000, shape{block: 4, reach: 400})
	for i := range rows {
		rows[i].User = trace.Ptr(int64(i*i%2999) % 1500 * 7)
		rows[i].Model = "m" + strconv.Itoa(i%7*(i%311))
		rows[i].ArrivalNS = int64(i) * int64(i) * 1000
	}
	sum := profileOf(t, rows, trace.Meta{BlockSize: 4}, profile.ProfilerOptions{ServerBlock: 5}).Summary()
	list, from := visits(rows, 4, 5), sum.Reuse.Steady.WarmUpS
	checkGroups(t, "client", sum.ByClient, list, from, clientOf, 1024)
	checkGroups(t, "model", sum.ByModel, list, from, func(v visit) string { return v.Model }, 1024)
	if sum.ByClient.NotToldApart == 0 || sum.ByClient.Rest == nil {
		t.Error("there were not enough clients to test this")
	}
	if !slices.ContainsFunc(sum.Warnings, func(w profile.Warning) bool { return w.Code == "clients_pooled" }) {
		t.Error("nothing says that clients were pooled")
	}
}

// Without blocks there still are groups and a series, with ratios of null.
func TestBreakdownsWithoutBlocks(t *testing.T) {
	rows := generate(133, 300, shape{block: 4, people: true})
	for i := range rows {
		rows[i].Blocks = nil
	}
	sum := profileOf(t, rows, trace.Meta{}, profile.ProfilerOptions{Replicas: []int{2}}).Summary()
	list := visits(rows, 4, 5)
	checkGroups(t, "client", sum.ByClient, list, sum.DurationS/2, clientOf, 1024)
	if g := sum.ByModel.Groups[0]; g.Whole.HitRatio != nil || g.Whole.ServerHitRatio != nil || g.Whole.InputTokens == 0 {
		t.Errorf("a model of a trace without blocks: %+v", g)
	}
	if sum.ByCategory != nil || sum.Prefixes != nil || sum.WorkingSet != nil || sum.Routing != nil || sum.Waterfalls != nil {
		t.Error("there is reuse without blocks")
	}
	empty := profileOf(t, nil, trace.Meta{BlockSize: 4}, profile.ProfilerOptions{}).Summary()
	if empty.OverTime != nil || empty.ByClient != nil || empty.ByModel != nil || empty.SessionShares.SourceShare != nil {
		t.Errorf("an empty trace has traffic: %+v", empty)
	}
}

func TestSessionShares(t *testing.T) {
	rows := generate(134, 400, shape{block: 4, sessions: true, statuses: true})
	var with, all int64
	for _, r := range load(rows) {
		all++
		if r.Session != nil {
			with++
		}
	}
	for origin, want := range map[string]profile.SessionShares{
		"source":   {Source: with, Without: all - with, SourceShare: ratio(with, all), InferredShare: ratio(0, all)},
		"inferred": {Inferred: with, Without: all - with, SourceShare: ratio(0, all), InferredShare: ratio(with, all)},
		"":         {Unknown: with, Without: all - with},
	} {
		got := profileOf(t, rows, trace.Meta{BlockSize: 4, Sessions: origin}, profile.ProfilerOptions{}).Summary().SessionShares
		if asJSON(t, got) != asJSON(t, want) {
			t.Errorf("sessions of %q: %+v; want %+v", origin, got, want)
		}
	}
}

// The gain by generated KV is the difference of two direct counts, in points.
func TestGeneratedGain(t *testing.T) {
	s := shapes["everything"]
	rows := generate(135, 500, s)
	sum := profileOf(t, rows, trace.Meta{BlockSize: s.block}, profile.ProfilerOptions{}).Summary()
	from := int64(math.Round(sum.Reuse.Steady.WarmUpS * 1e9))
	whole, steady := cacheOf(rows, int64(s.block), unlimited, false, from)
	wholeToo, steadyToo := cacheOf(rows, int64(s.block), unlimited, true, from)
	near(t, "gain by block", sum.GeneratedGain.Whole.ByBlock, 100*(wholeToo.hits-whole.hits)/whole.blocks)
	near(t, "gain by token", sum.GeneratedGain.Whole.ByToken, 100*(wholeToo.hitTokens-whole.hitTokens)/whole.tokens)
	near(t, "steady gain by token", sum.GeneratedGain.Steady.ByToken, 100*(steadyToo.hitTokens-steady.hitTokens)/steady.tokens)
	near(t, "steady gain, mean", sum.GeneratedGain.Steady.MeanOverRequests, 100*(steadyToo.shares-steady.shares)/steady.requests)
	without := profileOf(t, generate(135, 50, shape{block: 4}), trace.Meta{BlockSize: 4}, profile.ProfilerOptions{}).Summary()
	if without.GeneratedGain != nil || *sum.GeneratedGain.Whole.ByBlock <= 0 {
		t.Error("the gain is not that of a trace with outputs")
	}
}

// asJSON is v as a reader of the summary sees it, which is easier to compare
// than pointers.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
