package tenant

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestJain(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{{[]float64{5}, 1}, {[]float64{2, 2, 2, 2}, 1}, {[]float64{1, 0, 0, 0}, 0.25}, {[]float64{1, 3}, 0.8}} {
		if got, ok := Jain(c.x); !ok || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", c.x, got, c.want)
		}
	}
	if _, ok := Jain([]float64{0, 0}); ok {
		t.Error("an index of nothing")
	}
}

// Counts, tokens and work are those that the test adds up itself.
func TestTenants(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var table Table
	type sums struct {
		rows, ok, failed, input, cached, output, unknown int64
		work, ttft                                       float64
	}
	want := map[int64]*sums{}
	for range 5000 {
		r := Request{User: rng.Int64N(7), DueNS: rng.Int64N(60e9), Input: 10 + rng.Int64N(500), Cached: rng.Int64N(11) - 1, Output: rng.Int64N(90), TTFTNS: rng.Int64N(1e9)}
		switch rng.IntN(8) {
		case 0:
			r.Failed = true
		case 1: // cancelled
		default:
			r.Succeeded = true
		}
		table.Add(r)
		w := want[r.User]
		if w == nil {
			w = &sums{}
			want[r.User] = w
		}
		w.rows++
		if r.Failed {
			w.failed++
		}
		if r.Succeeded {
			w.ok++
			w.input, w.output, w.ttft = w.input+r.Input, w.output+r.Output, w.ttft+float64(r.TTFTNS)
			cached := r.Cached
			if cached < 0 {
				w.unknown++
				cached = 0
			}
			w.cached += cached
			w.work += float64(r.Input - cached + 2*r.Output)
		}
	}
	all := table.Tenants()
	if len(all) != 7 {
		t.Fatalf("%d tenants", len(all))
	}
	for i, g := range all {
		w := want[g.User]
		if g.Rows != w.rows || g.Succeeded != w.ok || g.Failed != w.failed || g.Input != w.input || g.Cached != w.cached || g.Output != w.output || g.CachedUnknown != w.unknown ||
			math.Abs(g.Work/w.work-1) > 1e-12 || math.Abs(g.TTFT.Mean()*float64(g.TTFT.N)/w.ttft-1) > 1e-9 {
			t.Errorf("user %d: %+v, want %+v", g.User, g, w)
		}
		if i > 0 && g.Work > all[i-1].Work {
			t.Error("not in the order of their work")
		}
	}
}

// The others wait 100 ms, and 900 ms while user 1 sends ten times as much, and a second longer.
func TestBursts(t *testing.T) {
	var table Table
	for ms := range int64(60_000) {
		due, burst := ms*1e6, ms >= 20_000 && ms < 23_000
		if ms%500 == 0 || burst && ms%50 == 0 {
			table.Add(Request{User: 1, DueNS: due, Succeeded: true, Input: 100, TTFTNS: 5e9})
		}
		if ms%100 == 50 {
			wait := int64(100e6)
			if burst || ms >= 23_000 && ms < 24_000 {
				wait = 900e6
			}
			table.Add(Request{User: 2, DueNS: due, Succeeded: true, Input: 100, TTFTNS: wait})
		}
	}
	b := table.Bursts(1)
	if b == nil || b.Seconds != 3 || b.During.N != 40 || b.During.Min != 900e6 || b.Outside.N != 560 || b.Outside.Max != 100e6 {
		t.Errorf("%+v", b)
	}
	if b := table.Bursts(2); b != nil {
		t.Errorf("an even tenant bursts for %v s", b.Seconds)
	}
	if new(Table).Bursts(1) != nil {
		t.Error("nobody bursts")
	}
}

// What a table keeps is bounded.
func TestTableIsBounded(t *testing.T) {
	var table Table
	for i := range int64(maxTenants + 10) {
		table.Add(Request{User: i, Succeeded: true})
	}
	if len(table.Tenants()) != maxTenants || table.Left != 10 {
		t.Errorf("%d tenants, %d requests left", len(table.Tenants()), table.Left)
	}
	for range maxRequests {
		table.Add(Request{User: 1, Succeeded: true})
	}
	if len(table.requests) > maxRequests || table.Bursts(1) != nil {
		t.Errorf("%d requests", len(table.requests))
	}
}
