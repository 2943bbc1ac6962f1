package synth

import (
	"math"
	"slices"
	"testing"

	"reprise/trace"
	"reprise/trace/longtest"
)

// seeds is how many models and workloads each of the checks below makes.
const seeds = 5

// What a workload keeps of the published conversation trace, with the tuples
// swapped and the arrivals drawn: the mean over the seeds must pass. One seed may
// miss by its arrivals, of which there are 11 windows at 300 s.
func TestKeepsMooncake(t *testing.T) {
	longtest.Skip(t)
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

// A model of the first half of the trace continues at what that half hit. It does not
// know that the second hits more, since sessions go on into it: the mean over the seeds
// says by how much the curve is off.
func TestHoldsOutMooncake(t *testing.T) {
	longtest.Skip(t)
	rows := annotated(mooncake(t), 512)
	half := len(rows) / 2
	want, fit := curveOf(rows, 512).minus(curveOf(rows[:half], 512)), curveOf(rows[:half], 512)
	meanError, meanOff := 0.0, 0.0
	for seed := range uint64(seeds) {
		m := fitted(t, rows[:half], trace.Meta{BlockSize: 512}, 10, seed)
		got := generated(t, m, Options{Seed: seed, Requests: int64(len(rows))})
		have := curveOf(got, 512).minus(curveOf(got[:half], 512))
		e, d := have.error(want), math.Abs(have.infinite()-want.infinite())
		t.Logf("seed %d: error %.4f, without limit %.4f off; %.4f off what it was fitted to", seed, e, d, have.infinite()-fit.infinite())
		meanError, meanOff = meanError+e/seeds, meanOff+d/seeds
		if math.Abs(have.infinite()-fit.infinite()) > 0.03 {
			t.Errorf("seed %d: it goes on with hits of %.4f, and was fitted to %.4f", seed, have.infinite(), fit.infinite())
		}
	}
	t.Logf("mean: error %.4f, without limit %.4f off", meanError, meanOff)
	if meanError > 0.014 || meanOff > 0.045 {
		t.Errorf("the curve of the second half is off by %.4f, and by %.4f without limit", meanError, meanOff)
	}
}

// Ten times as many requests are as the trace, in every pass: lengths, hits and sessions
// do not drift.
func TestLongWorkloadDoesNotDrift(t *testing.T) {
	longtest.Skip(t)
	rows := annotated(mooncake(t), 512)
	n := len(rows)
	want, wantIn, wantOut, wantTurns := describe(rows)
	for seed := range uint64(2) {
		got := generated(t, fitted(t, rows, trace.Meta{BlockSize: 512}, 10, seed), Options{Seed: seed, Requests: int64(10 * n)})
		for _, part := range [][2]int{{n, 4 * n}, {4 * n, 7 * n}, {7 * n, 10 * n}, {n, 10 * n}} {
			hits := curveOf(got[:part[1]], 512).minus(curveOf(got[:part[0]], 512)).infinite()
			_, in, out, turns := describe(got[part[0]:part[1]])
			t.Logf("seed %d, requests %v: hits %.4f of %.4f, input %+.1f %%, output %+.1f %%, turns %.3f of %.3f", seed, part, hits, want, 100*(in/wantIn-1), 100*(out/wantOut-1), turns, wantTurns)
			if math.Abs(hits-want) > 0.015 || math.Abs(in/wantIn-1) > 0.05 || math.Abs(out/wantOut-1) > 0.03 || math.Abs(turns/wantTurns-1) > 0.05 {
				t.Errorf("seed %d, requests %v are not as the trace", seed, part)
			}
		}
		if span := got[len(got)-1].ArrivalNS; math.Abs(float64(span)/float64(10*rows[n-1].ArrivalNS)-1) > 0.01 {
			t.Errorf("seed %d: it takes %d ns, want ten times the trace", seed, span)
		}
	}
}

// describe returns the hit ratio without limit of rows, their mean lengths, and how many
// requests of sessions there are for each session that begins in them.
func describe(rows []trace.Request) (hits, input, output, turns float64) {
	sessions, inSessions := 0.0, 0.0
	for i := range rows {
		input += float64(rows[i].InputTokens) / float64(len(rows))
		output += float64(*rows[i].OutputTokens) / float64(len(rows))
		if turn := rows[i].Turn; turn != nil {
			inSessions++
			if *turn == 0 {
				sessions++
			}
		}
	}
	return curveOf(rows, 512).infinite(), input, output, inSessions / sessions
}

func generated(t testing.TB, m *Model, o Options) []trace.Request {
	t.Helper()
	w, err := m.Generate(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return readAll(t, w.Reader())
}
