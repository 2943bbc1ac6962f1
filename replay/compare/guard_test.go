package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reprise/replay/report"
	"reprise/trace"
)

// latencyRounds are rounds of two servers whose latencies vary by 2 % from run to run, half of it for all
// latencies of a run together. In B the time to the first token and all else are longer by these shares.
func latencyRounds(rng *rand.Rand, n int, ttft, others float64) []Arm {
	arms := []Arm{{Name: "A"}, {Name: "B"}}
	for range n {
		for i := range arms {
			together := 0.014 * rng.NormFloat64()
			stat := func(ms, change float64) report.Stat {
				draw := func(of float64) *float64 {
					v := ms * of * math.Exp(together+0.014*rng.NormFloat64())
					if i == 1 {
						v *= 1 + change
					}
					return &v
				}
				return report.Stat{P50: draw(1), P90: draw(2), P95: draw(3), P99: draw(5), Mean: draw(1.2)}
			}
			var s report.Summary
			s.Verdict.Trustworthy = true
			s.Requests.ErrorShare = trace.Ptr(0.0)
			s.Latency.FromDue.TTFT, s.Latency.FromDue.E2E = stat(80, ttft), stat(900, others)
			s.Latency.TPOT, s.Latency.ITLChunk = stat(11, others), stat(11, others)
			arms[i].Runs = append(arms[i].Runs, s)
		}
	}
	return arms
}

// A server whose prefix cache is lost answers later and generates as fast: whatever metric is
// the primary one, it is worse. In the other direction it is never.
func TestAnySlowdownDecides(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	for _, primary := range []string{"mean_tpot", "p50_itl", "output_tokens_per_s", "p99_ttft"} {
		slower := compared(t, latencyRounds(rng, 10, 0.5, 0), Options{Primary: primary})
		if v := slower.Versus[0]; v.Decision != Worse || !strings.HasPrefix(v.Text, "B is slower: TTFT p") || !strings.Contains(v.Text, "TTFT") {
			t.Errorf("%s: %s: %s", primary, v.Decision, v.Text)
		}
		if p := slower.Document(); !strings.HasPrefix(p.Headline, "B is slower: TTFT p") {
			t.Errorf("%s: %s", primary, p.Headline)
		}
		faster := compared(t, latencyRounds(rng, 10, -0.3, 0), Options{Primary: primary})
		if v := faster.Versus[0]; v.Decision == Worse {
			t.Errorf("%s: %s", primary, v.Text)
		}
		mixed := compared(t, latencyRounds(rng, 10, 0.5, -0.3), Options{Primary: primary})
		if v := mixed.Versus[0]; v.Decision != Worse {
			t.Errorf("%s: faster in most and slower in TTFT: %s", primary, v.Text)
		}
	}
}

// A server that fails more is worse, however fast the answers are that come.
func TestMoreErrorsDecide(t *testing.T) {
	arms := latencyRounds(rand.New(rand.NewPCG(6, 2)), 10, -0.2, -0.2)
	for i := range arms[1].Runs {
		arms[1].Runs[i].Requests.ErrorShare = trace.Ptr(0.4)
	}
	if v := compared(t, arms, Options{}).Versus[0]; v.Decision != Worse || !strings.HasPrefix(v.Text, "B is worse: errors +40.0 pt") {
		t.Errorf("%s: %s", v.Decision, v.Text)
	}
}

// guardedOnly tests the guarded metrics alone, which is sooner than a whole comparison.
func guardedOnly(arms []Arm, o Options) Versus {
	v := contrasts(arms[0], arms[1], o)
	v.guard(o.guardLevel(v.Rounds))
	return v
}

// Where nothing differs, B is slower by chance in half of alpha, also over the looks of a plan; the slowdown that
// the rounds are said to find is found in about four of five comparisons.
func TestGuardKeepsAlphaAndItsPower(t *testing.T) {
	const samples = 300
	rng := rand.New(rand.NewPCG(6, 3))
	once := Options{Primary: "mean_tpot", Alpha: 0.1, FamilyAlpha: 0.05}
	planned := once
	planned.Plan = &Plan{Primary: "mean_tpot", Alpha: 0.1, Looks: []int{6, 9, 12}, Levels: []float64{0.03, 0.05, 0.07}}
	worse, looked, size := 0, 0, 0.0
	for range samples {
		v := guardedOnly(latencyRounds(rng, 10, 0, 0), once)
		if len(v.regressions()) > 0 {
			worse++
		}
		size += *v.Metrics[slices.IndexFunc(v.Metrics, func(m Contrast) bool { return m.Metric == "p50_ttft" })].GuardDetectable / samples
		arms := latencyRounds(rng, 12, 0, 0)
		for _, look := range planned.Plan.Looks {
			part := []Arm{{Name: "A", Runs: arms[0].Runs[:look]}, {Name: "B", Runs: arms[1].Runs[:look]}}
			if v := guardedOnly(part, planned); len(v.regressions()) > 0 {
				looked++
				break
			}
		}
	}
	// Of 300, fewer than 4 or more than 29 have a probability of 0.1 % each at 5 %.
	if min(worse, looked) < 4 || max(worse, looked) > 29 {
		t.Errorf("of %d comparisons in which nothing differs %d were worse, and %d with looks", samples, worse, looked)
	}
	found := 0
	for range samples {
		v := guardedOnly(latencyRounds(rng, 10, size, 0), once)
		if slices.ContainsFunc(v.Metrics, func(m Contrast) bool { return m.Metric == "p50_ttft" && m.Regressed }) {
			found++
		}
	}
	if share := float64(found) / samples; share < 0.7 || share > 0.9 {
		t.Errorf("a slowdown of %.3f was found in %.2f", size, share)
	}
	t.Logf("nothing differs: %d and %d of %d; a slowdown of %.4f found in %d", worse, looked, samples, size, found)
}

// No difference is said with the slowdowns that the rounds would have found, and with what they do not cover.
func TestNoDifferenceSaysWhatItCovers(t *testing.T) {
	arms := latencyRounds(rand.New(rand.NewPCG(6, 4)), 10, 0, 0)
	for i := range arms[0].Runs {
		arms[0].Runs[i].Latency.FromDue.TTFT.P99 = nil
	}
	v := compared(t, arms, Options{Primary: "mean_tpot"}).Versus[0]
	for _, want := range []string{"No difference found in TPOT mean", "; no slowdown found in TTFT, TPOT, ITL or " +
		"E2E. ", " A slowdown of ", " would have been found. Not covered: TTFT p99."} {
		if v.Decision != notFound || !strings.Contains(v.Text, want) {
			t.Errorf("%s: %s\nwant %s", v.Decision, v.Text, want)
		}
	}
}
