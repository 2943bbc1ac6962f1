package report

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/textpage"
)

// stalledRun is a run with stalls at pairs of milliseconds.
func stalledRun(pairs ...int64) result.Run {
	s := &result.Stalls{}
	for i := 0; i < len(pairs); i += 2 {
		x := result.Stall{FromNS: pairs[i] * msNS, ToNS: pairs[i+1] * msNS}
		s.Intervals = append(s.Intervals, x)
		s.Count++
		s.TotalNS += x.ToNS - x.FromNS
		s.LongestNS = max(s.LongestNS, x.ToNS-x.FromNS)
	}
	return result.Run{Clock: result.Clock{Stalls: s}}
}

// The covered part of any time is what counting its nanoseconds gives.
func TestStallCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	const end = 400
	for range 200 {
		var stalls result.Stalls
		var stood [end]bool
		for at := rng.Int64N(50); at < end-60; {
			x := result.Stall{FromNS: at, ToNS: at + 1 + rng.Int64N(40)}
			stalls.Intervals = append(stalls.Intervals, x)
			for i := x.FromNS; i < x.ToNS; i++ {
				stood[i] = true
			}
			at = x.ToNS + 1 + rng.Int64N(50)
		}
		m := newStallMeter(&stalls, &Options{})
		for range 200 {
			from := rng.Int64N(end)
			to := from + rng.Int64N(end-from)
			want := int64(0)
			for _, is := range stood[from:to] {
				if is {
					want++
				}
			}
			if got := m.within(from, to); got != want {
				t.Fatalf("%v: %d of %d to %d, want %d", stalls.Intervals, got, from, to, want)
			}
		}
	}
}

// The shares of a run are those that brute force gives.
func TestStalledShares(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 2))
	for range 50 {
		run := stalledRun()
		for at := int64(0); at < 20_000; {
			x := result.Stall{FromNS: at * msNS, ToNS: (at + 6 + rng.Int64N(200)) * msNS}
			run.Stalls.Intervals = append(run.Stalls.Intervals, x)
			at = x.ToNS/msNS + 1 + rng.Int64N(2000)
		}
		overlap := func(from, to int64) (sum int64) {
			for _, x := range run.Stalls.Intervals {
				sum += max(min(to, x.ToNS)-max(from, x.FromNS), 0)
			}
			return sum
		}
		var results []result.Result
		var ttft, covered, touched int64
		var shares []float64
		for i := range int64(30) {
			events, at := []int64(nil), int64(0)
			for range 1 + rng.IntN(12) {
				at += rng.Int64N(300) // two at once as well
				events = append(events, at)
			}
			r := answer(i, i*500, 3, events...)
			if i%7 == 6 {
				r.Error = "timeout" // no latency of it counts
			} else {
				n := overlap(*r.SentNS, *r.FirstTokenNS)
				ttft, covered = ttft+*r.FirstTokenNS-*r.SentNS, covered+n
				if n > 0 {
					touched++
				}
				from := *r.FirstTokenNS
				for _, gap := range r.GapsNS {
					share := 0.0
					if gap > 0 {
						share = float64(overlap(from, from+gap)) / float64(gap)
					}
					shares = append(shares, share)
					from += gap
				}
			}
			results = append(results, r)
		}
		s := summarise(t, run, Options{}, results...)
		if got, want := *s.Stalled.TTFTShare, float64(covered)/float64(ttft); got-want > 1e-9 || want-got > 1e-9 {
			t.Fatalf("TTFT: %v, want %v", got, want)
		}
		if s.Stalled.StalledRequests != touched {
			t.Errorf("%d requests, want %d", s.Stalled.StalledRequests, touched)
		}
		slices.Sort(shares)
		p99 := shares[len(shares)-1-len(shares)/100]
		if got := *s.Stalled.GapP99Share; got < p99-1e-9 || got > p99+0.001+1e-9 {
			t.Fatalf("gaps: %v, want %v rounded up to a tenth of a percent", got, p99)
		}
	}
}

// Just at a limit of the stalls a run is trusted, and just above it not.
func TestStallVerdict(t *testing.T) {
	// A hundred requests with a TTFT of 100 ms, a second apart, and two gaps of 100 ms.
	var steady []result.Result
	for i := range int64(100) {
		steady = append(steady, answer(i, i*1000, 0, 100, 200, 300))
	}
	ttft := func(ms int64) result.Run { return stalledRun(1010, 1010+ms/2, 2010, 2010+ms-ms/2) }
	gaps := func(n, ms int64) result.Run {
		var pairs []int64
		for i := range n {
			pairs = append(pairs, i*1000+120, i*1000+120+ms)
		}
		return stalledRun(pairs...)
	}
	one := func(change func(*Limits)) Options {
		l := DefaultLimits()
		change(&l)
		return Options{Limits: l}
	}
	embedding := answer(0, 0, 0)
	embedding.API, embedding.DoneNS = result.APIEmbeddings, trace.Ptr(100*msNS)
	for _, c := range []struct {
		name    string
		run     result.Run
		options Options
		results []result.Result
		codes   string
		says    string // of both checks
	}{
		{"no stall", stalledRun(), Options{}, steady, "", ""},
		{"between requests", stalledRun(400, 990), Options{}, steady, "", ""},
		{"1 % of TTFT", ttft(100), Options{}, steady, "", ""},
		{"more of TTFT", ttft(102), Options{}, steady, codeStalledTTFT, ""},
		{"more of TTFT, allowed", ttft(102), one(func(l *Limits) { l.StallTTFT = 0.02 }), steady, "", ""},
		{"more of TTFT, unlimited", ttft(102), one(func(l *Limits) { l.StallTTFT = -1 }), steady, "", ""},
		{"1 % of gaps", gaps(2, 80), Options{}, steady, "", ""},
		{"5 % of more gaps", gaps(3, 5), Options{}, steady, "", ""},
		{"6 % of more gaps", gaps(3, 6), Options{}, steady, codeStalledGap, ""},
		{"6 % of more gaps, allowed", gaps(3, 6), one(func(l *Limits) { l.StallGap = 0.06 }), steady, "", ""},
		{"6 % of more gaps, unlimited", gaps(3, 6), one(func(l *Limits) { l.StallGap = -1 }), steady, "", ""},
		{"both", stalledRun(10, 300, 1010, 1300, 2010, 2300), Options{}, steady, codeStalledTTFT + " " + codeStalledGap, ""},
		{"an embedding", stalledRun(50, 60), Options{}, []result.Result{embedding}, codeStalledTTFT, ""},
		{"an old file", result.Run{}, Options{}, steady, "", "not recorded"},
		{"a simulation", result.Run{Simulation: result.Simulation{Simulated: "1 × engine"}}, Options{}, steady, "", "not applicable"},
	} {
		s := summarise(t, c.run, c.options, c.results...)
		var codes []string
		for _, r := range s.Verdict.Reasons {
			codes = append(codes, r.Code)
		}
		if got := strings.Join(codes, " "); got != c.codes || s.Verdict.Trustworthy != (c.codes == "") {
			t.Errorf("%s: %q, want %q; %+v", c.name, got, c.codes, s.Stalled)
		}
		found := 0
		for _, k := range s.Verdict.Checks {
			if k.Code == codeStalledTTFT || k.Code == codeStalledGap {
				found++
				if k.Says != c.says || (k.Measured == nil) != (c.says != "" || k.Code == codeStalledGap && c.name == "an embedding") {
					t.Errorf("%s: %+v", c.name, k)
				}
			}
		}
		if found != 2 {
			t.Errorf("%s: %d checks", c.name, found)
		}
	}
}

// A report from the file says what the run's own report said, in words and in tables.
func TestStallsAreReportedFromTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.parquet")
	run := stalledRun(10, 110, 5000, 5600)
	if err := result.Write(path, run, &trace.SliceReader[result.Result]{Rows: []result.Result{answer(0, 0, 0, 200), answer(1, 4900, 0, 700)}}); err != nil {
		t.Fatal(err)
	}
	f, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := Summarise(f.Run, f.Reader(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "up to 77.8 % of TTFT is the client's own delay, since it stood still in 2 of 2 requests (2 stalls, " +
		"the longest 600 ms); the limit is 1 %. Give the client cores " +
		"that nothing else uses, or lower the load; --trust max-stall-ttft=… accepts it"
	if r := s.Verdict.Reasons; len(r) != 1 || r[0].Text != want || r[0].Code != codeStalledTTFT {
		t.Fatalf("%+v", r)
	}
	var text, page strings.Builder
	if err := Page(s).WriteText(&text, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	if err := Page(s).Write(&page); err != nil {
		t.Fatal(err)
	}
	plain := strings.NewReplacer("\u00a0", " ", "&#39;", "'").Replace(page.String())
	for name, out := range map[string]string{"text": text.String(), "page": plain} {
		if !strings.Contains(out, "client stalls in TTFT (!)") ||
			!strings.Contains(out, "up to 77.8 % of TTFT is the client's own delay") {
			t.Errorf("the %s does not say it", name)
		}
	}
	if !strings.Contains(page.String(), "2, 700 ms in all, the longest 600 ms") {
		t.Error("the page does not count the stalls")
	}
}

// The kernel's instants are those of the reads less their delays. What came with others in
// one read after a stall, or in a late read, has none, and what needs it is left out.
func TestKernelInstants(t *testing.T) {
	run := stalledRun(500, 700, 2000, 5000) // nobody waited in the second
	run.StalledNS = 3000 * msNS
	certain := answer(0, 0, 0, 100, 110, 120)
	certain.ReadDelaysUS = []int32{50, 3000, 20} // one read 1 ms later than is let pass
	stalled := answer(1, 400, 0, 300, 300, 320)  // read at the end of the stall
	stalled.ReadDelaysUS = []int32{-2000, 2000, 10}
	together := answer(2, 1000, 0, 100, 100, 110) // sent together
	together.ReadDelaysUS = []int32{-40, 40, 10}
	results := []result.Result{certain, stalled, together}
	s := summarise(t, run, Options{Instants: InstantsKernel}, results...)
	ttft, itl := &s.Latency.FromSent.TTFT, &s.Latency.ITLChunk
	if ttft.Count != 2 || *ttft.Min != 99.95 || *ttft.Max != 99.96 {
		t.Errorf("TTFT %d values from %v to %v", ttft.Count, *ttft.Min, *ttft.Max)
	}
	// 10 − 3 + 0.05, 10 + 3 − 0.02, left out, 20 + 2 − 0.01, 0, 10 + 0.04 − 0.01
	if itl.Count != 5 || *itl.Min != 0 || *itl.Max != 21.99 {
		t.Errorf("ITL %d values from %v to %v", itl.Count, *itl.Min, *itl.Max)
	}
	if got := s.Latency.TPOT.Count; got != 2 {
		t.Errorf("TPOT of %d requests", got)
	}
	if e2e := &s.Latency.FromSent.E2E; e2e.Count != 3 || *e2e.Max != 319.99 {
		t.Errorf("E2E %d values to %v", e2e.Count, *e2e.Max)
	}
	r := s.Receipt
	if r.Instants != InstantsKernel || *r.Stamped != 1 || r.Uncertain != 1 || r.UncertainFirst != 1 || *r.Widest != 298 || r.Delay.Count != 9 || *r.Delay.Max != 3 {
		t.Errorf("%+v", r)
	}
	var says []string
	for _, reason := range s.Verdict.Reasons {
		says = append(says, reason.Text)
	}
	if want := []string{
		"requests whose first token has no certain instant are left out: they are 60 % of the times to first token, in 1 of 3 requests (2 stalls, the longest 3,000 ms); the limit is 1 %",
		"gaps between tokens whose ends have no certain instant are left out: at p99 they are 100 % of a gap; the " +
			"limit is 5 %. Give the client cores that nothing else uses, or lower the load; --trust max-stall-ttft=…," +
			"max-stall-gap=… accepts it",
	}; !slices.Equal(says, want) {
		t.Errorf("%q", says)
	}
	if *results[0].FirstTokenNS != 100*msNS || results[1].Uncertain != nil {
		t.Error("the results were changed")
	}

	// Of the reads, the same results say how late they were.
	s = summarise(t, run, Options{}, results...)
	if r := s.Receipt; r.Instants != InstantsRead || r.Uncertain != 1 || s.Latency.FromSent.TTFT.Count != 3 {
		t.Errorf("%+v", r)
	}
	if got := *s.Stalled.TTFTShare; got != 0.4 { // 200 of 500 ms; delays to 1 ms are nothing
		t.Errorf("share of TTFT %v", got)
	}
	if got := *s.Stalled.InFlightMax; got != 200 || *s.Stalled.Max != 3000 || *s.Stalled.EventShare != 0.333333333 { // 3 of 9: one was read 3 ms late
		t.Errorf("%+v", s.Stalled)
	}

	// A stall as the request was sent: it may have left later.
	sending := answer(3, 499, 0, 300, 310, 320)
	sending.ReadDelaysUS = []int32{10, 10, 10}
	s = summarise(t, run, Options{Instants: InstantsKernel}, sending, certain)
	if s.Latency.FromSent.TTFT.Count != 1 || s.Latency.FromSent.E2E.Count != 1 || s.Latency.ITLChunk.Count != 2 || s.Receipt.UncertainFirst != 1 {
		t.Errorf("%+v", s.Latency.FromSent.TTFT)
	}

	for i := range results {
		results[i].ReadDelaysUS = nil
	}
	if _, err := Summarise(run, rereadOf(results)(), Options{Instants: InstantsKernel}); err != errNoStamps {
		t.Errorf("without stamps: %v", err)
	}
}

// A stall that no request waited in is no reason to distrust a run.
func TestStallWhileNothingWasInFlight(t *testing.T) {
	run := stalledRun(1000, 6000)
	run.StalledNS = 5000 * msNS
	for due, want := range map[int64]bool{200: true, 900: true, 950: false, 4000: false, 7000: true} {
		s := summarise(t, run, Options{Limits: Limits{Stall: time.Second, StallTTFT: -1, StallGap: -1, LagP50: -1, LagP99: -1, LagP999: -1, LagDrift: -1, Errors: 1}}, answer(0, due, 0, 30, 100))
		for _, c := range s.Verdict.Checks {
			if c.Code == codeStalled && c.Holds != want {
				t.Errorf("due at %d ms: %+v", due, c)
			}
		}
	}
}

// At p99, first and last tokens may be read as late as 2 ms or a hundredth of the latency,
// whatever part of all waiting that is.
func TestLateReads(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, last int32 // µs, of two of two hundred requests
		of          int   // requests that are that late
		codes       []string
		e2e         int64 // ms
	}{
		{"in time", 300, -300, 3, nil, 300},
		{"just in time", 2000, 2000, 3, nil, 120},
		{"first tokens late", 2100, 300, 3, []string{codeLateFirst}, 120},
		{"last tokens late, with the end behind them", 300, -2100, 3, []string{codeLateLast}, 120},
		{"as late, of a longer time", 300, -2100, 3, nil, 300},
		{"not at p99", 9000, 9000, 1, nil, 300},
	} {
		var results []result.Result
		for i := range int64(200) {
			r := answer(i, i*1000, 0, 100, c.e2e)
			if r.ReadDelaysUS = []int32{60, -60}; i < int64(c.of) {
				r.ReadDelaysUS = []int32{c.first, c.last}
			}
			results = append(results, r)
		}
		s := summarise(t, stalledRun(), Options{}, results...)
		var codes []string
		for _, r := range s.Verdict.Reasons {
			codes = append(codes, r.Code)
		}
		if !slices.Equal(codes, c.codes) {
			t.Errorf("%s: %v, want %v; %+v", c.name, codes, c.codes, s.Stalled)
		}
		s = summarise(t, stalledRun(), Options{Instants: InstantsKernel}, results...)
		if s.Stalled.TTFTLateP99 != nil || s.Stalled.E2ELateP99 != nil {
			t.Errorf("%s: of the kernel's instants nothing is late: %+v", c.name, s.Stalled)
		}
	}
}
