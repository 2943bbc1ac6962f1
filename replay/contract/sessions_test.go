package contract

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// oneSession are the requests of a session that begins at an instant and takes so many
// seconds, in two turns.
func oneSession(number, beginS, seconds int64, class string) []result.Result {
	first := answer(2*number, 1000*beginS, 0, 10, 20)
	second := answer(2*number+1, 1000*(beginS+seconds)-40, 0, 10, 40)
	second.Parents = []int64{first.RowID}
	for _, r := range []*result.Result{&first, &second} {
		r.Session, r.Class = trace.Ptr(number), class
		r.ArrivalNS, r.RecordedE2ENS = trace.Ptr(r.DueNS/2), trace.Ptr(int64(20e6))
	}
	return []result.Result{first, second}
}

// The outcome of a clause about sessions, some of which were cut, is the one that it has
// whatever they had made of it; where that is not one, it cannot be judged.
func TestSessionClausesWhateverWasCut(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 91))
		run := result.Run{Load: result.Load{Speed: 1, Timing: result.Causal}}
		var rows []result.Result
		var finished, cut []float64
		failed := 0
		for k := range int64(5 + rng.IntN(40)) {
			seconds := 1 + rng.Int64N(100)
			one := oneSession(k, rng.Int64N(50), seconds, "")
			switch rng.IntN(8) {
			case 0:
				one[1].Error = "server_error"
				failed++
			case 1:
				if seed%3 == 0 {
					finished = append(finished, float64(seconds))
					break
				}
				run.Beyond++
				if run.Cut == nil {
					run.Cut = &result.CutSessions{}
				}
				run.Cut.Sessions = append(run.Cut.Sessions, result.SessionKey{Session: k})
				cut = append(cut, float64(seconds))
			default:
				finished = append(finished, float64(seconds))
			}
			rows = append(rows, one...)
		}
		p := []string{"p50", "p90", "mean", "max"}[rng.IntN(4)]
		limit := 1 + rng.IntN(110)
		share := 50 + rng.IntN(50)
		c := contractOf(t, fmt.Sprintf("%s session_time <= %ds", p, limit), fmt.Sprintf("session_success >= %d%%", share))
		got := summarise(t, run, report.Options{Contract: c}, rows...).Contract.Clauses

		statisticOf := func(values []float64) float64 {
			slices.Sort(values)
			n := float64(len(values))
			switch p {
			case "mean":
				sum := 0.0
				for _, v := range values {
					sum += v
				}
				return sum / n
			case "max":
				return values[len(values)-1]
			}
			at := map[string]float64{"p50": 0.5, "p90": 0.9}[p] * (n - 1)
			low := int(at)
			high := min(low+1, len(values)-1)
			return values[low] + (at-float64(low))*(values[high]-values[low])
		}
		within, beyond := false, false
		for draw := range 200 {
			values := slices.Clone(finished)
			for _, v := range cut {
				longer := math.Abs(rng.NormFloat64()) * 50
				switch draw { // both ends
				case 0:
					longer = 0
				case 1:
					longer = 1e9
				}
				values = append(values, v+longer)
			}
			if statisticOf(values) <= float64(limit)+1e-9 {
				within = true
			} else {
				beyond = true
			}
		}
		want := map[[2]bool]string{{true, false}: report.Holds, {false, true}: report.Fails, {true, true}: report.Unjudged}[[2]bool{within, beyond}]
		if n := len(finished) + len(cut); p == "p90" && n < 10 {
			want = report.Unjudged
		}
		if got[0].Outcome != want || got[0].Censored != int64(len(cut)) {
			t.Fatalf("seed %d: %s is %+v, want %s of %v and %v that were cut", seed, got[0].Clause, got[0], want, finished, cut)
		}
		all := float64(len(finished) + len(cut) + failed)
		want = report.Unjudged
		if floor := float64(share) / 100; float64(len(finished))/all >= floor {
			want = report.Holds
		} else if float64(len(finished)+len(cut))/all < floor {
			want = report.Fails
		}
		if got[1].Outcome != want {
			t.Fatalf("seed %d: %+v, want %s", seed, got[1], want)
		}
		seen[got[0].Outcome]++
		seen["success "+got[1].Outcome]++
	}
	if len(seen) != 6 {
		t.Errorf("the outcomes are %v", seen)
	}
}

// What a clause about sessions measures, in what unit, and of which sessions.
func TestSessionClauses(t *testing.T) {
	var rows []result.Result
	for k := range int64(20) {
		rows = append(rows, oneSession(k, k, 10+k%2*10, []string{"gold", "batch"}[k%2])...)
	}
	c := contractOf(t, "p90 session_time <= 15s", "p50 session_slowdown <= 1.5", "sessions_per_s >= 0.5", "cost_per_session <= 0.01", "p99 session_time <= 1h",
		"{clause: max session_time <= 10s, where: class = gold}", "{clause: mean session_time <= 19s, where: class = batch}", "{clause: session_success >= 99%, where: class = none}")
	s := summarise(t, result.Run{Load: result.Load{Speed: 1}}, report.Options{Contract: c}, rows...)
	for i, want := range []struct {
		measured float64
		outcome  string
		unit     string
		samples  int64
	}{
		{20, report.Fails, "s", 20}, {1.99, report.Fails, "times", 20}, {20.0 / 39, report.Holds, "1/s", 20}, {2 * 3 * 39.0 / 3600 / 20, report.Holds, "per session", 20},
		{math.NaN(), report.Unjudged, "s", 20}, {10, report.Holds, "s", 10}, {20, report.Fails, "s", 10}, {math.NaN(), report.Unjudged, "share", 0},
	} {
		got := s.Contract.Clauses[i]
		near(t, got.Clause, got.Measured, want.measured, 0.01)
		if got.Outcome != want.outcome || got.Unit != want.unit || got.Samples != want.samples {
			t.Errorf("%s: %+v, want %+v", got.Clause, got, want)
		}
	}
	if got := s.Contract.String(); !strings.Contains(got, "p90 session_time is 20 s, 33.3 % over 15s") || !strings.Contains(got, "it takes 100 sessions, and there were 20") {
		t.Errorf("%s", got)
	}
	// Of a run without what they need.
	s = summarise(t, result.Run{Load: result.Load{Speed: 2}}, report.Options{Contract: contractOf(t, "p50 session_slowdown <= 2", "p50 session_time <= 1s")}, rows...)
	if why := s.Contract.Clauses[0].Why; !strings.Contains(why, "2 times as fast") {
		t.Errorf("%s", why)
	}
	s = summarise(t, result.Run{}, report.Options{Contract: contractOf(t, "p50 session_time <= 1s")}, answer(0, 0, 0, 5))
	if why := s.Contract.Clauses[0].Why; why != "the run has no sessions" {
		t.Errorf("%s", why)
	}
}
