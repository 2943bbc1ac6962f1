package report

import (
	"math"
	"math/rand/v2"
	"testing"

	"reprise/replay/internal/resulttest"
	"reprise/replay/result"
	"reprise/trace"
)

// What the tests share with those of the packages that read results too.
const msNS = resulttest.MS

var answer, failure = resulttest.Answer, resulttest.Failure

func summarise(t *testing.T, run result.Run, opts Options, results ...result.Result) Summary {
	t.Helper()
	s, err := Summarise(run, &trace.SliceReader[result.Result]{Rows: results}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// messy makes n results that have, between them, everything that can happen.
func messy(rng *rand.Rand, n int) []result.Result {
	var out []result.Result
	for row := range int64(n) {
		r := result.Result{
			RowID: row, Category: append(trace.Categories(), "")[rng.IntN(6)],
			DueNS: rng.Int64N(60e9), WantInput: 1 + rng.Int32N(40000), WantOutput: 1 + rng.Int32N(20),
		}
		sent := r.DueNS + rng.Int64N(3e6)*rng.Int64N(3)*rng.Int64N(20)
		switch rng.IntN(30) {
		case 0: // never sent
			if rng.IntN(2) == 0 {
				r.Error = "prepare"
			}
			out = append(out, r)
			continue
		case 1:
			r.Error = []string{"reset", "timeout", "cancelled"}[rng.IntN(3)]
		}
		r.SentNS = &sent
		r.HeadersNS = trace.Ptr(sent + rng.Int64N(5e6))
		stream(rng, &r, *r.HeadersNS)
		if rng.IntN(50) == 0 {
			r.DoneNS = nil
		}
		out = append(out, r)
	}
	return out
}

// stream fills in what came back.
func stream(rng *rand.Rand, r *result.Result, at int64) {
	r.FirstEventNS = trace.Ptr(at)
	r.Events = rng.Int32N(r.WantOutput + 1)
	total := int32(0)
	for i := range r.Events {
		gap := int64(math.Exp(rng.NormFloat64()) * 2e7)
		at += gap
		if i == 0 {
			r.FirstTokenNS = trace.Ptr(at)
		} else {
			r.GapsNS = append(r.GapsNS, gap)
		}
		k := 1 + rng.Int32N(3)
		total += k
		r.EventTokens = append(r.EventTokens, k)
		r.LastTokenNS = trace.Ptr(at)
	}
	if rng.IntN(2) == 0 {
		r.EventTokens = nil
	}
	if rng.IntN(20) > 0 {
		r.Output, r.OutputFrom = &total, []string{"usage", "tokenizer"}[rng.IntN(2)]
	}
	if rng.IntN(10) > 0 {
		r.Input = trace.Ptr(max(r.WantInput+rng.Int32N(3)-1, 1))
	}
	if rng.IntN(5) > 0 {
		r.Known = trace.Ptr(rng.Int32N(r.WantInput + 1))
	}
	if rng.IntN(5) > 0 {
		r.Cached = trace.Ptr(rng.Int32N(2) * rng.Int32N(r.WantInput))
	}
	r.DoneNS = trace.Ptr(at + rng.Int64N(1e6))
}

// near holds two figures equal to within a nanosecond and some relative error.
func near(t *testing.T, what string, got *float64, want, relative float64) {
	t.Helper()
	if math.IsNaN(want) != (got == nil) {
		t.Errorf("%s: got %v, want %v", what, show(got), want)
	}
	if got != nil && math.Abs(*got-want) > 2e-6+relative*math.Abs(want) {
		t.Errorf("%s: got %v, want %v", what, *got, want)
	}
}

func show(v *float64) any {
	if v == nil {
		return "null"
	}
	return *v
}

func is(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	near(t, what, got, want, 1e-9)
}

func null(t *testing.T, what string, got *float64) {
	t.Helper()
	near(t, what, got, math.NaN(), 0)
}
