package report

import (
	"math"
	"testing"

	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
)

// What the tests share with those of the packages that read results too.
const msNS = resulttest.MS

var answer, failure, messy = resulttest.Answer, resulttest.Failure, resulttest.Messy

func summarise(t *testing.T, run result.Run, opts Options, results ...result.Result) Summary {
	t.Helper()
	s, err := Summarise(run, &trace.SliceReader[result.Result]{Rows: results}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
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
