package synth

import (
	"math"
	"os"
	"slices"
	"testing"

	"reprise/trace"
)

// seeds is how many models and workloads each of the checks below makes.
const seeds = 5

// What a workload keeps of the published conversation trace, with the tuples
// swapped and the arrivals drawn: the mean over the seeds must pass. One seed may
// miss by its arrivals, of which there are 11 windows at 300 s.
func TestKeepsMooncake(t *testing.T) {
	rows := annotated(mooncake(t), 512)
	meta := trace.Meta{BlockSize: 512, Sessions: sessionsInferred}
	limits := map[string]float64{"mrc_mae": 0.004, "hit_by_block": 0.005, "input_ks": 0.025, "output_ks": 0.01,
		"rho_input_output": 0.02, "rho_hit_new": 0.02, "rho_new_output": 0.02, "categories": 0.01,
		"turns_ks": 0.05, "turn_gap_ks": 0.05, "reuse_time_ks": 0.05, "pair_match": 0.005, "idc_log2": 0.2}
	all := map[string][]float64{}
	for seed := range uint64(seeds) {
		got := generated(t, fitted(t, rows, meta, 10, seed), Options{Seed: seed})
		if len(got) != len(rows) {
			t.Fatalf("%d rows, want %d", len(got), len(rows))
		}
		c := Compared(t, meta, rows, meta, got)
		for name := range limits {
			if c.Distance[name] == nil {
				t.Fatalf("seed %d: no %s", seed, name)
			}
			all[name] = append(all[name], *c.Distance[name])
		}
	}
	for name, d := range all {
		mean := 0.0
		for _, x := range d {
			mean += x / float64(len(d))
		}
		t.Logf("%-18s mean %.4f, worst %.4f of at most %g", name, mean, slices.Max(d), limits[name])
		if !(mean <= limits[name]) {
			t.Errorf("%s: the mean of the seeds is %.4f, above %g", name, mean, limits[name])
		}
	}
}

// A model of the first half of the trace continues into the second.
func TestHoldsOutMooncake(t *testing.T) {
	rows := annotated(mooncake(t), 512)
	half := len(rows) / 2
	want := curveOf(rows, 512).minus(curveOf(rows[:half], 512))
	for seed := range uint64(seeds) {
		m := fitted(t, rows[:half], trace.Meta{BlockSize: 512}, 10, seed)
		got := generated(t, m, Options{Seed: seed, Requests: int64(len(rows))})
		have := curveOf(got, 512).minus(curveOf(got[:half], 512))
		e, d := have.error(want), math.Abs(have.infinite()-want.infinite())
		t.Logf("seed %d: error %.4f, without limit %.4f off", seed, e, d)
		if e > 0.012 || d > 0.03 {
			t.Errorf("seed %d: the curve of the second half is off by %.4f, and by %.4f without limit", seed, e, d)
		}
	}
}

// Ten times as many requests hit as the second half of the trace did: the
// process goes on, where walks over a finite tree would hit ever more.
func TestLongWorkloadKeepsItsHitRatio(t *testing.T) {
	if os.Getenv("REPRISE_TEST_LONG") == "" {
		t.Skip("long: set REPRISE_TEST_LONG=1")
	}
	rows := annotated(mooncake(t), 512)
	n := len(rows)
	want := curveOf(rows, 512).minus(curveOf(rows[:n/2], 512)).infinite()
	for seed := range uint64(2) {
		got := generated(t, fitted(t, rows, trace.Meta{BlockSize: 512}, 10, seed), Options{Seed: seed, Requests: int64(10 * n)})
		have := curveOf(got, 512).minus(curveOf(got[:9*n], 512)).infinite()
		t.Logf("seed %d: the last tenth hits %.4f, the second half of the trace %.4f", seed, have, want)
		if math.Abs(have-want) > 0.03 {
			t.Errorf("seed %d: the last tenth hits %.4f, the second half of the trace %.4f", seed, have, want)
		}
		if span := got[len(got)-1].ArrivalNS; math.Abs(float64(span)/float64(10*rows[n-1].ArrivalNS)-1) > 0.01 {
			t.Errorf("seed %d: it takes %d ns, want ten times the trace", seed, span)
		}
	}
}

func generated(t testing.TB, m *Model, o Options) []trace.Request {
	t.Helper()
	w, err := m.Generate(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return readAll(t, w.Reader())
}
