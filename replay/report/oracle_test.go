package report

import (
	"math"
	"math/rand/v2"
	"reflect"
	"sort"
	"testing"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// The oracle computes everything a second time, from slices of float64 and
// straight from the definitions, sharing no code with the package.

type truth struct {
	metrics  map[string][]float64 // ms
	good     [2]int
	errors   map[string]int64
	ok, bad  int
	prompt   float64
	output   float64
	open     float64 // ns
	from, to int64
	cache    [4]float64 // rows, prompt, cached, expected
	lost     float64
	groups   map[string][]float64 // TTFT by category
}

func tell(results []result.Result, block int64, slo SLO) *truth {
	o := &truth{metrics: map[string][]float64{}, errors: map[string]int64{}, groups: map[string][]float64{}, from: math.MaxInt64}
	for i := range results {
		r := &results[i]
		o.from = min(o.from, r.DueNS)
		if r.DoneNS != nil {
			o.to = max(o.to, *r.DoneNS)
		}
		if r.SentNS != nil {
			o.put("send_lag", *r.SentNS-r.DueNS)
			if r.DoneNS != nil {
				o.open += float64(*r.DoneNS - *r.SentNS)
			}
		}
		class := r.Error
		if class == "" && r.SentNS != nil && r.DoneNS == nil {
			class = "unfinished"
		}
		switch {
		case class == "cancelled", class == "" && r.SentNS == nil:
		case class != "":
			o.bad++
			o.errors[class]++
		default:
			o.ok++
			o.success(r, block, slo)
		}
	}
	return o
}

func (o *truth) put(name string, ns int64) {
	o.metrics[name] = append(o.metrics[name], float64(ns)/1e6)
}

func (o *truth) success(r *result.Result, block int64, slo SLO) {
	for i, origin := range []int64{*r.SentNS, r.DueNS} {
		name := []string{"from_sent.", "from_due."}[i]
		o.put(name+"headers", *r.HeadersNS-origin)
		ok := r.Events > 0
		if r.Events > 0 {
			o.put(name+"ttft", *r.FirstTokenNS-origin)
			o.put(name+"ttfo", *r.FirstContentNS-origin)
			o.put(name+"e2e", *r.LastTokenNS-origin)
			ok = *r.FirstTokenNS-origin <= int64(*slo.TTFT) && *r.LastTokenNS-origin <= int64(*slo.E2E)
		}
		if r.Output != nil && *r.Output > 1 && r.Events > 0 {
			ok = ok && float64(*r.LastTokenNS-*r.FirstTokenNS)/float64(*r.Output-1) <= float64(*slo.TPOT)
		}
		for _, g := range r.GapsNS {
			ok = ok && g <= int64(*slo.ITL)
		}
		if ok {
			o.good[i]++
		}
	}
	if r.Events > 0 {
		o.groups[r.Category] = append(o.groups[r.Category], float64(*r.FirstTokenNS-*r.SentNS)/1e6)
		if r.Output != nil && *r.Output > 1 && r.Events > 1 { // one event has no times between its tokens
			o.metrics["tpot"] = append(o.metrics["tpot"], float64(*r.LastTokenNS-*r.FirstTokenNS)/float64(*r.Output-1)/1e6)
		}
	}
	for i, g := range r.GapsNS {
		o.put("itl_chunk", g)
		if r.EventTokens != nil {
			o.metrics["itl_token"] = append(o.metrics["itl_token"], float64(g)/1e6/float64(r.EventTokens[i+1]))
		} else if r.Output != nil {
			o.metrics["itl_token"] = append(o.metrics["itl_token"], float64(g)/1e6/(float64(*r.Output)/float64(r.Events)))
		}
	}
	if r.Output != nil {
		o.output += float64(*r.Output)
	}
	if r.Input == nil {
		o.prompt += float64(r.WantInput)
		return
	}
	o.prompt += float64(*r.Input)
	if r.Cached != nil && r.Known != nil {
		reach := min(int64(*r.Known), int64(*r.Input)-1)
		o.cache[0]++
		o.cache[1] += float64(*r.Input)
		o.cache[2] += float64(*r.Cached)
		o.cache[3] += float64(reach - reach%block)
		o.lost += float64(reach % block)
	}
}

// quantile is numpy's linear interpolation, in floating point.
func quantile(values []float64, p float64) float64 {
	if float64(len(values)) < math.Round(1/(1-p)) {
		return math.NaN()
	}
	pos := p * float64(len(values)-1)
	lo, hi := int(math.Floor(pos)), int(math.Ceil(pos))
	return values[lo]*(1-(pos-float64(lo))) + values[hi]*(pos-float64(lo))
}

func (o *truth) holdStat(t *testing.T, name string, st *Stat, relative float64) {
	t.Helper()
	values := o.metrics[name]
	sort.Float64s(values)
	if int(st.Count) != len(values) {
		t.Fatalf("%s: %d values, want %d", name, st.Count, len(values))
	}
	for p, got := range map[float64]*float64{.5: st.P50, .9: st.P90, .95: st.P95, .99: st.P99, .999: st.P999} {
		near(t, name, got, quantile(values, p), relative)
	}
	mean, sq := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sq += (v - mean) * (v - mean) / float64(len(values))
	}
	near(t, name+" mean", st.Mean, mean, 1e-7)
	near(t, name+" sd", st.SD, math.Sqrt(sq), 1e-7)
	near(t, name+" min", st.Min, values[0], 1e-9)
	near(t, name+" max", st.Max, values[len(values)-1], 1e-9)
}

func TestAgainstOracle(t *testing.T) {
	d := func(d time.Duration) *time.Duration { return &d }
	slo := SLO{TTFT: d(60 * time.Millisecond), TPOT: d(15 * time.Millisecond), ITL: d(80 * time.Millisecond), E2E: d(400 * time.Millisecond)}
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 7))
		results := messy(rng, 60+int(seed)*250)
		opts := Options{SLO: slo, ServerBlock: 16, Exact: 1 << 20}
		relative, method := 1e-9, exact
		if seed%2 == 1 {
			opts.Exact, relative, method = 20, 1e-3, hdr
		}
		s := summarise(t, result.Run{}, opts, results...)
		o := tell(results, 16, slo)
		for _, m := range s.Latency.metrics() {
			o.holdStat(t, m.name, m.stat, relative)
			if m.stat.Method != method {
				t.Errorf("%s: method %s, want %s", m.name, m.stat.Method, method)
			}
		}
		o.holdRest(t, &s, relative)
	}
}

func (o *truth) holdRest(t *testing.T, s *Summary, relative float64) {
	t.Helper()
	seconds := float64(o.to-o.from) / 1e9
	is(t, "duration", s.DurationS, seconds)
	near(t, "requests/s", s.Throughput.RequestsPerS, float64(o.ok)/seconds, 1e-6)
	near(t, "prompt/s", s.Throughput.PromptTokensPerS, o.prompt/seconds, 1e-6)
	near(t, "output/s", s.Throughput.OutputTokensPerS, o.output/seconds, 1e-6)
	near(t, "in flight", s.InFlight.Mean, o.open/1e9/seconds, 1e-6)
	for i, g := range []Good{s.Goodput.FromSent, s.Goodput.FromDue} {
		if int(g.Requests) != o.good[i] || o.good[i] == 0 || o.good[i] == o.ok {
			t.Errorf("goodput %d: %d, want %d of %d", i, g.Requests, o.good[i], o.ok)
		}
		is(t, "goodput share", g.Share, float64(o.good[i])/float64(o.ok+o.bad))
		near(t, "goodput", g.PerS, float64(o.good[i])/seconds, 1e-6)
	}
	errors := map[string]int64{}
	for _, e := range s.Errors {
		errors[e.Class] = e.Count
		is(t, e.Class, &e.Share, float64(e.Count)/float64(o.ok+o.bad))
	}
	if !reflect.DeepEqual(errors, o.errors) {
		t.Errorf("errors: %v, want %v", errors, o.errors)
	}
	if float64(s.Cache.Rows) != o.cache[0] {
		t.Errorf("cache rows: %d, want %v", s.Cache.Rows, o.cache[0])
	}
	is(t, "measured", s.Cache.Measured, o.cache[2]/o.cache[1])
	is(t, "expected", s.Cache.Expected, o.cache[3]/o.cache[1])
	is(t, "lost", s.Cache.RoundingLoss, o.lost/o.cache[1])
	is(t, "difference", s.Cache.Difference, (o.cache[2]-o.cache[3])/o.cache[1])
	for _, c := range s.ByCategory {
		values := o.groups[c.Category]
		sort.Float64s(values)
		near(t, c.Category, c.TTFTP50, quantile(values, .5), relative)
		near(t, c.Category, c.TTFTP99, quantile(values, .99), relative)
	}
	var rows, ttfts int64
	for _, b := range s.ByInputLength {
		rows += b.Rows
		ttfts += b.TTFTCount
	}
	if rows != s.Requests.Rows || ttfts != s.Latency.FromSent.TTFT.Count {
		t.Errorf("length buckets hold %d rows and %d TTFTs of %d and %d", rows, ttfts, s.Requests.Rows, s.Latency.FromSent.TTFT.Count)
	}
}

// The order of the results changes nothing, exact or not, plots included.
func TestOrderDoesNotMatter(t *testing.T) {
	for _, exact := range []int{0, 30} {
		rng := rand.New(rand.NewPCG(3, uint64(exact)))
		results := messy(rng, 5000)
		want := summarise(t, result.Run{}, Options{Exact: exact}, results...)
		for range 4 {
			rng.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
			if got := summarise(t, result.Run{}, Options{Exact: exact}, results...); !reflect.DeepEqual(got, want) {
				t.Errorf("exact %d: the summary depends on the order", exact)
			}
		}
	}
}

// failing yields some results, then an error.
type failing struct {
	trace.SliceReader[result.Result]
	err error
}

func (f *failing) Read(rows []result.Result) (int, error) {
	n, _ := f.SliceReader.Read(rows)
	return n, f.err
}
