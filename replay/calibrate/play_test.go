package calibrate

import (
	"math"
	"testing"

	"reprise/replay/engine"
	"reprise/replay/result"
	"reprise/trace"
)

// Requests of an engine, played to the same engine, come out as they were: in an open loop,
// and in a closed one past saturation, where each is sent when another is over. To an engine
// that takes twice as long, the closed loop sends later, and the open one does not.
func TestPlayedRequestsAreTheRecordedOnes(t *testing.T) {
	c := engine.DefaultConfig()
	c.Costs, c.MaxSeqs, c.KVTokens = knownCosts, 12, 8000
	slow := c
	slow.Costs.Step, slow.Costs.KVToken, slow.Costs.PrefillToken, slow.Costs.DecodeSeq, slow.Costs.Request = 2*c.Costs.Step, 2*c.Costs.KVToken, 2*c.Costs.PrefillToken, 2*c.Costs.DecodeSeq, 2*c.Costs.Request
	for _, closed := range []int{0, 16} {
		r := level(t, c, "r", 60, 6*float64(min(closed, 1)^1), closed, 3)
		p, err := r.play(c, true)
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.requests {
			q := &r.requests[i]
			if math.Abs(p.ttft[i]-q.ttft) > 2e-9 || math.Abs(p.e2e[i]-q.e2e) > 2e-9 || math.Abs(p.gap[i]-q.gap) > 2e-9 || len(p.gaps[i]) != len(q.gaps) {
				t.Fatalf("closed %d, request %d: TTFT %v, E2E %v, gap %v; recorded %v, %v, %v", closed, i, p.ttft[i], p.e2e[i], p.gap[i], q.ttft, q.e2e, q.gap)
			}
		}
		p, err = r.play(slow, true)
		if err != nil {
			t.Fatal(err)
		}
		last := len(r.requests) - 1
		if later := p.sent[last] > r.requests[last].sent*3/2; later != (closed > 0) {
			t.Errorf("closed %d: the last request is sent at %v, recorded %v", closed, p.sent[last], r.requests[last].sent)
		}
		for _, f := range r.figures(&p, whole) {
			if f.Metric == "p50_itl" && f.Error() < 0.9 {
				t.Errorf("closed %d: an engine that takes twice as long has an error of %v", closed, f.Error())
			}
		}
	}
}

// A turn is sent as long after its parents as it was recorded, cached tokens are not
// computed, a request that was cut is load until then, and one that was refused is none.
func TestTurnsCutsAndHits(t *testing.T) {
	ns := func(v int64) *int64 { return &v }
	tok := func(v int32) *int32 { return &v }
	ms := int64(1e6)
	row := func(id, sent, first, last int64, in, out, cached int32) result.Result {
		return result.Result{RowID: id, SentNS: ns(sent * ms), FirstTokenNS: ns(first * ms), LastTokenNS: ns(last * ms), DoneNS: ns(last * ms), Input: tok(in), Output: tok(out), Cached: tok(cached), Events: out}
	}
	turn := row(1, 150, 160, 170, 100, 2, 96)
	turn.Parents = []int64{0}
	cut := row(2, 150, 160, 165, 10, 100, 0)
	cut.Error, cut.WantOutput = result.KindCancelled, trace.Ptr[int32](100)
	refused := result.Result{RowID: 3, SentNS: ns(1), Error: "rate_limited", WantInput: 5, WantOutput: trace.Ptr[int32](5)}
	rows := []result.Result{row(0, 0, 50, 100, 100, 6, 0), turn, cut, refused}
	r := &Record{Name: "r", About: result.Run{Load: result.Load{Timing: result.Causal}}}
	keys := map[result.RequestKey]int{}
	var parents [][]result.RequestKey
	for i := range rows {
		if q, ok := r.requestOf(&rows[i]); ok {
			keys[rows[i].Key()] = len(r.requests)
			of := []result.RequestKey{}
			for _, p := range rows[i].Parents {
				of = append(of, result.RequestKey{Row: p})
			}
			r.requests, parents = append(r.requests, q), append(parents, of)
		}
	}
	if len(r.requests) != 3 || r.requests[2].measured || !r.requests[1].measured || r.requests[2].cut != 15e9 {
		t.Fatalf("%+v", r.requests)
	}
	r.link(keys, parents)
	r.sort()
	c := engine.DefaultConfig()
	// A prompt token takes 1 ms, a token of an answer 40 ms.
	c.Costs = engine.Costs{PrefillToken: 1e9, DecodeSeq: 40e9}
	p, err := r.play(c, false)
	if err != nil {
		t.Fatal(err)
	}
	// The first: 100 ms of prefill, five tokens of 40 ms: over at 300 ms. Its turn, 50 ms
	// later, computes 4 of its 100 tokens beside the rest of the step in which it came.
	if p.ttft[0] != 0.1 && p.e2e[0] <= 0.3 {
		t.Errorf("the first: TTFT %v, E2E %v", p.ttft[0], p.e2e[0])
	}
	over := p.sent[0] + engine.Picos(p.e2e[0]*1e12)
	if p.sent[1] != over+50e9 || !(p.ttft[1] < 0.05) {
		t.Errorf("the turn is sent at %v and the first is over at %v; TTFT %v", p.sent[1], over, p.ttft[1])
	}
	if !math.IsNaN(p.e2e[2]) {
		t.Errorf("the one that was cut is answered after %v", p.e2e[2])
	}
	if _, err := Read("few", result.Held("few", r.About, rows), nil); err == nil {
		t.Error("four requests are enough")
	}
}
