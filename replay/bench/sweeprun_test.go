package bench

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"reprise/replay/contract"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/longtest"
)

// A pretended server answers after 100 ms, or after a second at more than a limit of
// requests per second. The client sends late at more than another limit.
type pretended struct {
	serves, sends float64
	runs          []string
	heals         bool // the client stalls at the first run that is beyond sends, and never again

	reads    float64 // the client stands still while it reads at more than that, 0 at none
	confirms bool    // only the ladder is sent in time
}

func (p *pretended) Run(_ context.Context, t Trial) error {
	p.runs = append(p.runs, t.Name)
	rate, err := strconv.ParseFloat(strings.TrimPrefix(t.Load.Rate, "constant:"), 64)
	if err != nil {
		return err
	}
	ttft, lag := int64(100e6), int64(0)
	if rate > p.serves {
		ttft = 1000e6
	}
	if rate > p.sends || p.confirms && !strings.HasPrefix(t.Name, roleLevel) {
		lag = 300e6
		if p.heals {
			p.sends = math.Inf(1)
		}
	}
	run := result.Run{Schema: result.Schema, Version: "test", Load: result.Load{Timing: result.OpenLoop}, Client: result.Client{Cores: 1}}
	if p.reads > 0 && rate > p.reads {
		run.Stalls = &result.Stalls{Count: 1, LongestNS: 500e6, Intervals: []result.Stall{{FromNS: 1e9, ToNS: 1500e6}}}
	}
	var rows []result.Result
	for due := int64(0); due < int64(t.Duration); due += int64(1e9 / rate) {
		sent := due + lag
		rows = append(rows, result.Result{RowID: int64(len(rows)), DueNS: due, SentNS: &sent, FirstTokenNS: trace.Ptr(sent + ttft),
			LastTokenNS: trace.Ptr(sent + ttft), DoneNS: trace.Ptr(sent + ttft), Output: trace.Ptr(int32(1)), Input: trace.Ptr(int32(8)), Events: 1})
	}
	run.Requests = int64(len(rows))
	return result.Write(t.Results, run, &rowReader{rows})
}

type rowReader struct{ rows []result.Result }

func (r *rowReader) Read(rows []result.Result) (int, error) {
	n := copy(rows, r.rows)
	if r.rows = r.rows[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func pretend(t *testing.T, p *pretended, loads ...float64) SweepResult {
	t.Helper()
	c, err := contract.Parse("c", []byte("clauses: [p99 ttft <= 400ms]"))
	if err != nil {
		t.Fatal(err)
	}
	s := Sweep{Target: p, Process: "constant", Ladder: Ladder{Loads: loads, Resolution: .05}, Duration: 5 * time.Second, Requests: 500, Warmup: "0s",
		Confirm: true, Sustain: 6 * time.Second, StopTTFT: 10 * time.Second, Report: report.Options{Contract: &c}, Dir: dirOf(t)}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.Under(&c)
	return r
}

// The contract breaks between two levels: the estimate is confirmed where it holds,
// and stepped down from where it does not, until it is found within 5 %.
func TestSweepFindsTheHighest(t *testing.T) {
	longtest.Skip(t)
	p := &pretended{serves: 70, sends: 1000}
	r := pretend(t, p, 20, 40, 80, 100)
	// log(400/100) ÷ log(1000/100) is 0.602 of the way from 40 to 80.
	want := []string{"level-rate-20", "level-rate-40", "level-rate-80", "level-rate-100", "confirm-rate-64.08", "sustain-rate-64.08"}
	if strings.Join(p.runs, " ") != strings.Join(want, " ") {
		t.Errorf("runs: %v", p.runs)
	}
	h := r.Highest
	if h.Load == nil || *h.Load != 64.08 || !h.Sustained || h.AtLeast || h.Low == nil || *h.Low != 64.08 || h.High == nil || *h.High != 80 {
		t.Errorf("highest: %+v", h)
	}
	p = &pretended{serves: 45, sends: 1000}
	r = pretend(t, p, 40, 80)
	if got := strings.Join(p.runs[2:], " "); got != "confirm-rate-64.08 confirm-rate-52.04 confirm-rate-40 sustain-rate-40 confirm-rate-46.02 confirm-rate-43.01 sustain-rate-43.01 confirm-rate-44.52 sustain-rate-44.52" ||
		*r.Highest.Load != 44.52 || *r.Highest.High != 46.02 {
		t.Errorf("runs: %s, highest %+v", got, r.Highest)
	}
	if r = pretend(t, &pretended{serves: 1000, sends: 1000}, 20, 40); !r.Highest.AtLeast || *r.Highest.Load != 40 || r.Highest.High != nil {
		t.Errorf("nothing fails: %+v", r.Highest)
	}
	if r = pretend(t, &pretended{serves: 1, sends: 1000}, 20, 40); r.Highest.Load != nil || r.Highest.Low != nil || *r.Highest.High != 20 {
		t.Errorf("nothing holds: %+v", r.Highest)
	}
}

// With a precision the highest load is between two loads that are within the resolution, and
// the longer runs are kept under names of their own; a budget ends a level that stays wide.
func TestSweepSearches(t *testing.T) {
	c, err := contract.Parse("c", []byte("clauses: [p99 ttft <= 400ms]"))
	if err != nil {
		t.Fatal(err)
	}
	p := &pretended{serves: 45, sends: 1000}
	s := Sweep{Target: p, Process: "constant", Ladder: Ladder{Loads: []float64{20, 40, 80}, Resolution: .05}, Duration: 5 * time.Second, Requests: 300, Warmup: "0s",
		Precision: .05, Budget: 700, Confirm: true, StopTTFT: 10 * time.Second, Report: report.Options{Contract: &c}, Dir: dirOf(t)}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := r.Highest
	if h.Low == nil || h.High == nil || *h.Low > 45 || *h.High <= 45 || *h.High / *h.Low > 1.05 || h.Load == nil || *h.Load != *h.Low || h.AtLeast || r.Precision != .05 {
		t.Errorf("highest: %+v, runs %v", h, p.runs)
	}
	// 300 requests bound no p99: a second run makes 600, and a third would pass the budget.
	if got := strings.Join(p.runs[:2], " "); got != "level-rate-20 level-rate-20-run-2" {
		t.Errorf("runs: %v", p.runs)
	}
	l := r.Levels[0]
	if l.Runs != 2 || l.Measured != 600 || !l.Sure || l.Contract.Clauses[0].Samples != 600 || len(l.Intervals) != 4 || !l.Intervals[3].Resolved {
		t.Errorf("%+v", l)
	}
	// Of 100 ms, a quarter of the limit is all that each request needs.
	p.runs = nil
	if again, err := s.Run(t.Context()); err != nil || len(p.runs) != 0 || *again.Highest.Low != *h.Low {
		t.Errorf("the same sweep again makes the runs %v; %v", p.runs, err)
	}
}

// Where the client is late, what is measured is not the server's: the sweep ends
// there, and neither knee nor limit is said to be.
func TestClientIsNotTheKnee(t *testing.T) {
	p := &pretended{serves: 1000, sends: 50}
	r := pretend(t, p, 20, 40, 80, 100)
	if got := strings.Join(p.runs, " "); got != "level-rate-20 level-rate-40 level-rate-80 level-rate-80 confirm-rate-40 sustain-rate-40" {
		t.Errorf("runs: %s", got)
	}
	if l := r.Untrusted(); l == nil || l.Load != 80 || r.Stopped.Code != stoppedUntrusted {
		t.Errorf("untrusted: %+v, stopped: %+v", l, r.Stopped)
	}
	if r.Knee == nil || r.Knee.Found || r.Knee.Load != 40 || r.Highest.High != nil || !r.Highest.AtLeast {
		t.Errorf("knee: %+v, highest: %+v", r.Knee, r.Highest)
	}
}

// The reason of a level that is not trusted names the limit which accepts it, once.
func TestUntrustedNamesItsLimit(t *testing.T) {
	const last = "late; --trust max-stall-ttft=…,max-stall-gap=… accepts it"
	for text, want := range map[string]string{"late": "late; --trust max-stall-ttft=… accepts it", last: last} {
		var l Level
		l.judgeOutcome(&report.Summary{}, &report.Reason{Code: "stalled_ttft", Text: text}, false, 0)
		if l.Outcome != outcomeUntrusted || l.Why != want {
			t.Errorf("%s: %s, %s", text, l.Outcome, l.Why)
		}
	}
}

// A client that reads late makes TTFT too long. A level that holds all the same counts, and says so; one that does
// not hold may be the client's doing.
func TestLateReaderCannotMakeALevelHold(t *testing.T) {
	p := &pretended{serves: 60, sends: 1000, reads: 30}
	r := pretend(t, p, 20, 40, 80, 100)
	if got := strings.Join(p.runs, " "); got != "level-rate-20 level-rate-40 level-rate-80 level-rate-80 confirm-rate-40 sustain-rate-40" {
		t.Errorf("runs: %s", got)
	}
	l := r.Ladder()
	if l[1].Outcome != outcomeHolds || l[1].Trustworthy || !strings.Contains(l[1].Note, "it counts, since this cannot change") ||
		l[2].Outcome != outcomeUntrusted || !strings.Contains(l[2].Why, "--trust max-stall-ttft=… accepts it") {
		t.Errorf("%+v\n%+v", l[1], l[2])
	}
	text := strings.Join(strings.Fields(written(t, 100, r.Page().WriteText)), " ")
	for _, want := range []string{"At least 40 req/s within the contract. ", "at 80 req/s the client was the limit, and no further load was tried: ",
		"The client read late at level-rate-40, confirm-rate-40, sustain-rate-40,"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "is the client's own delay"); n != 1 {
		t.Errorf("the reason stands %d times in\n%s", n, text)
	}
}

// A load that held is said though the run that was to confirm it could not be trusted; a first level that says
// nothing of the server is no load that fails.
func TestUnconfirmedLoadIsSaid(t *testing.T) {
	for want, p := range map[string]*pretended{
		"At least 40 req/s within the contract, not confirmed":                            {serves: 1000, sends: 1000, confirms: true},
		"40 req/s within the contract, not confirmed":                                     {serves: 50, sends: 1000, confirms: true},
		"Not judged: at 20 req/s the client was the limit, and no further load was tried": {serves: 1000, sends: 10},
		"No load is within the contract":                                                  {serves: 10, sends: 1000},
	} {
		loads := []float64{20, 40}
		if p.serves == 50 {
			loads = append(loads, 80)
		}
		if r := pretend(t, p, loads...); r.Headline() != want {
			t.Errorf("%s, want %s\n%+v", r.Headline(), want, r.Highest)
		}
	}
}

// What a reason is about says which contracts it leaves open, and in which loops.
func TestReasonsDecide(t *testing.T) {
	for _, c := range []struct {
		clauses, reason      string
		holds, closed, wants bool
	}{
		{"p99 ttft <= 1s", "stalled_gap", false, false, false},
		{"p99 ttft <= 1s", "stalled_gap", false, true, false},
		{"p99 itl <= 1s", "stalled_gap", true, false, true}, // tokens that are read together have no gap
		{"p99 tpot <= 1s", "late_first_token", true, false, true},
		{"p99 tpot <= 1s", "late_last_token", true, false, true},
		{"p99 ttft <= 1s", "late_first_token", true, false, false},
		{"p99 ttft <= 1s", "late_first_token", false, false, true},
		{"p99 ttft <= 1s", "late_first_token", true, true, true}, // a closed loop sends later
		{"p99 ttft <= 1s", "stalled_ttft", true, false, false},
		{"p99 ttft <= 1s", "late_last_token", false, false, false},
		{"p99 e2e <= 1s", "late_last_token", true, false, false},
		{"p99 e2e <= 1s", "late_last_token", false, false, true},
		{"p99 ttft <= 1s, error_rate <= 1%", "late_first_token", true, false, false},
		{"p99 ttft <= 1s, output_tokens_per_s >= 5", "late_first_token", true, false, true},
		{"{clause: goodput >= 90%, slo: 'ttft:1s'}", "late_first_token", true, false, false},
		{"{clause: goodput >= 90%, slo: 'tpot:1s'}", "late_first_token", true, false, true},
		{"p99 ttft <= 1s", "send_lag_p99", true, false, true},
		{"", "stalled_gap", true, false, true}, // without a contract nothing is known to be left out
	} {
		s := Sweep{Process: "poisson"}
		if c.closed {
			s.Process = ""
		}
		if c.clauses != "" {
			terms, err := contract.Parse("c", []byte("clauses: ["+c.clauses+"]"))
			if err != nil {
				t.Fatal(err)
			}
			s.Report.Contract = &terms
		}
		summary := report.Summary{Contract: &report.ContractResult{Holds: c.holds}, Verdict: report.Verdict{Reasons: []report.Reason{{Code: c.reason}}}}
		if got := s.clientLimit(&summary) != nil; got != c.wants {
			t.Errorf("%+v: %v", c, got)
		}
		s.Precision = .05 // its runs are read together
		if got := s.clientLimit(&summary) != nil; c.wants && !got {
			t.Errorf("%+v with a precision: %v", c, got)
		}
	}
}

// A sweep that is made again measures what the client was too late for, and nothing
// else; what it measured then is kept.
func TestUntrustedLevelsAreMeasuredAgain(t *testing.T) {
	p := &pretended{serves: 1000, sends: 50}
	s := Sweep{Target: p, Process: "constant", Ladder: Ladder{Loads: []float64{20, 80}}, Duration: 5 * time.Second, Warmup: "0s", StopTTFT: 10 * time.Second, Dir: dirOf(t)}
	r, err := s.Run(t.Context())
	if err != nil || r.Untrusted() == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	p.sends, p.runs = 1000, nil
	if r, err = s.Run(t.Context()); err != nil || r.Untrusted() != nil || strings.Join(p.runs, " ") != "level-rate-80" {
		t.Errorf("runs: %v, untrusted: %+v, %v", p.runs, r.Untrusted(), err)
	}
	for _, kept := range []string{"level-rate-80.untrusted-1", "level-rate-80.untrusted-2"} {
		if _, err := result.Open(filepath.Join(s.Dir.dir, kept, "results.parquet")); err != nil {
			t.Error(err)
		}
	}
}

// A level at which the client stalled once is measured a second time, and says so.
func TestPassingStallIsNotTheEnd(t *testing.T) {
	p := &pretended{serves: 1000, sends: 50, heals: true}
	r := pretend(t, p, 40, 80, 100)
	if r.Untrusted() != nil || len(r.Ladder()) != 3 || !strings.Contains(r.Ladder()[1].Note, "measured a second time, since the first was not trusted: ") || r.Ladder()[2].Note != "" {
		t.Errorf("runs: %v, levels: %+v", p.runs, r.Levels)
	}
}

// What a killed run left of a level is set aside, and the level measured again.
func TestStoppedLevelsAreMeasuredAgain(t *testing.T) {
	p := &pretended{serves: 1000, sends: 1000}
	s := Sweep{Target: p, Process: "constant", Ladder: Ladder{Loads: []float64{20}}, Duration: 5 * time.Second, Warmup: "0s", StopTTFT: 10 * time.Second, Dir: dirOf(t)}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	results := filepath.Join(s.Dir.dir, "level-rate-20", "results.parquet")
	journal, err := result.CreateJournal(result.JournalName(results), result.Run{Schema: result.Schema})
	if err == nil {
		err = errors.Join(journal.Close(), os.Remove(results))
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context())
	if err != nil || len(p.runs) != 2 || len(r.Levels) != 1 {
		t.Errorf("runs: %v, %v", p.runs, err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir.dir, "level-rate-20.stopped-1", filepath.Base(result.JournalName(results)))); err != nil {
		t.Error(err)
	}
}

// A level that holds by less than chance is not sure.
func TestSure(t *testing.T) {
	p := &pretended{serves: 1000, sends: 1000}
	r := pretend(t, p, 20) // 500 requests at 100 ms
	if !r.Levels[0].Sure || r.Levels[0].Outcome != outcomeHolds {
		t.Errorf("%+v", r.Levels[0])
	}
	c, err := contract.Parse("c", []byte("clauses: [error_rate <= 1%, p99 ttft <= 400ms]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct {
		every   int64 // one of so many of 1,000 requests fails
		outcome string
		want    bool
	}{{1000, report.Holds, true}, {112, report.Holds, false}, {90, report.Fails, false}, {30, report.Fails, true}} {
		m := newMeasurement(&report.Options{Contract: &c}, false)
		var rows []result.Result
		for i := range int64(1000) {
			at := i * 1e7
			r := result.Result{RowID: i, DueNS: at, SentNS: &at, FirstTokenNS: trace.Ptr(at + 300e6), LastTokenNS: trace.Ptr(at + 300e6), DoneNS: trace.Ptr(at + 300e6), Events: 1}
			if i%v.every == v.every-1 {
				r = result.Result{RowID: i, DueNS: at, SentNS: &at, DoneNS: trace.Ptr(at + 1e6), Error: "timeout"}
			}
			rows = append(rows, r)
		}
		if err := m.add(&result.Run{}, &rowReader{rows}); err != nil {
			t.Fatal(err)
		}
		got := &report.ContractResult{Holds: v.outcome == report.Holds, Judged: true, Clauses: []report.ClauseResult{
			{Clause: c.Clauses[0].String(), Outcome: v.outcome, Samples: 1000}, {Clause: c.Clauses[1].String(), Outcome: report.Holds, Samples: 1000}}}
		sure, err := m.sure(got, confidence, nil)
		if err != nil || sure != v.want {
			t.Errorf("one of %d fails: sure %v, %v; %+v", v.every, sure, err, m.intervals(0))
		}
	}
}

// Where runs of one load differ, the load failed.
func TestInterval(t *testing.T) {
	levels := []Level{{Load: 20, Outcome: outcomeHolds, Sure: true}, {Load: 25, Outcome: outcomeSaturated, Sure: true}, {Load: 22, Outcome: outcomeHolds, Sure: true},
		{Load: 22, Outcome: outcomeFails, Sure: true}, {Load: 21.5, Outcome: outcomeHolds}, {Load: 21, Outcome: outcomeHolds, Sure: true}, {Load: 19, Outcome: outcomeFails}}
	var h Highest
	h.interval(levels)
	if h.Low == nil || *h.Low != 21 || h.High == nil || *h.High != 22 {
		t.Errorf("%+v", h)
	}
}

// Without a contract the time to the first token ends the ladder, and every level has
// a seed of its own, which is the same in every sweep.
func TestStopTTFTAndSeeds(t *testing.T) {
	p := &pretended{serves: 30, sends: 1000}
	s := Sweep{Target: p, Process: "constant", Ladder: Ladder{Loads: []float64{20, 40, 80}}, Duration: 5 * time.Second, Warmup: "0s", Seed: 7, StopTTFT: 500 * time.Millisecond, Dir: dirOf(t)}
	r, err := s.Run(t.Context())
	if err != nil || len(r.Levels) != 2 || r.Levels[1].Outcome != outcomeSaturated || r.Stopped.Code != stoppedSaturated {
		t.Fatalf("%+v, %v", r.Levels, err)
	}
	s.Dir = dirOf(t)
	again, err := s.Run(t.Context())
	if err != nil || again.Levels[0].Seed != r.Levels[0].Seed || r.Levels[0].Seed == r.Levels[1].Seed {
		t.Errorf("seeds %v, %v, then %v; %v", r.Levels[0].Seed, r.Levels[1].Seed, again.Levels[0].Seed, err)
	}
	s.Seed, s.Dir = 8, dirOf(t)
	if again, err = s.Run(t.Context()); err != nil || again.Levels[0].Seed == r.Levels[0].Seed {
		t.Errorf("the seed of another sweep is the same; %v", err)
	}
}

// A queue completes so many requests a second, one after the other, each after a tenth of a second.
type queue struct{ capacity float64 }

func (q queue) Run(_ context.Context, t Trial) error {
	p, err := arrival.ParseProcess(t.Load.Rate)
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(t.Seed, 10, 64)
	if err != nil {
		return err
	}
	run := result.Run{Schema: result.Schema, Version: "test", Load: result.Load{Timing: result.OpenLoop}, Client: result.Client{Cores: 1}}
	warm, err := time.ParseDuration(t.Warmup)
	if err != nil {
		return err
	}
	run.Window = &result.Window{From: &result.Place{DueNS: int64(warm)}}

	gaps, free := p.New(arrival.Stream(seed, "test")), int64(0)
	var rows []result.Result
	for due := int64(0); due < int64(t.Duration); due += int64(gaps.Next()) {
		free = max(free, due) + int64(1e9/q.capacity)
		rows = append(rows, result.Result{RowID: int64(len(rows)), DueNS: due, SentNS: trace.Ptr(due), FirstTokenNS: trace.Ptr(free + 1e8),
			LastTokenNS: trace.Ptr(free + 1e8), DoneNS: trace.Ptr(free + 1e8), Output: trace.Ptr(int32(1)), Input: trace.Ptr(int32(8)), Events: 1})
	}
	run.Requests = int64(len(rows))
	return result.Write(t.Results, run, &rowReader{rows})
}

// The answer is never above what the server completes, whatever its capacity and whatever was
// asked, and a load is sustained where its queue does not grow.
func TestAnswerIsWhatComesOut(t *testing.T) {
	longtest.Skip(t)
	sustained := 0
	for seed, capacity := range []float64{33.1, 20.5, 50.5, 8.3, 29.7, 30.1} {
		for _, clause := range []string{"", "p99 ttft <= 60s", "p95 ttft <= 2s"} {
			s := Sweep{Target: queue{capacity}, Process: "poisson", Ladder: Ladder{Loads: []float64{5, 8, 10, 20, 21, 30, 34.1, 50, 51}, Resolution: .05}, Seed: uint64(seed),
				Duration: 60 * time.Second, Requests: 150, Warmup: "10s", Confirm: true, Sustain: 300 * time.Second, StopTTFT: 100 * time.Second, Dir: dirOf(t)}
			if clause != "" {
				c, err := contract.Parse("c", []byte("clauses: ["+clause+"]"))
				if err != nil {
					t.Fatal(err)
				}
				s.Report.Contract = &c
			}
			r, err := s.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			h, at := r.Highest, r.atHighest()
			if h.Load == nil || *h.Load > *at.Flow.AchievedPerS || *h.Load > capacity*1.001 || *h.Load < capacity/4 {
				t.Errorf("of %v req/s under %q: %s of %s", capacity, clause, asJSON(h), asJSON(at))
				continue
			}
			if !h.Sustained {
				continue
			}
			if sustained++; at.Role != roleSustain || !at.Flow.Steady() || at.Load > capacity*1.01 {
				t.Errorf("of %v req/s under %q %v are sustained: %s", capacity, clause, at.Load, asJSON(at.Flow))
			}
		}
	}
	if sustained < 12 {
		t.Errorf("%d of 18 sweeps have a load that is sustained", sustained)
	}
}

// A level that is too short for the contract says nothing of the loads below, and a load that held
// is the answer whatever could not be judged above it.
func TestUnjudgedIsNoFailure(t *testing.T) {
	for _, c := range []struct {
		outcomes []string
		want     string
	}{
		{[]string{outcomeUnjudged, outcomeUnjudged}, "Not judged: at 1 req/s it is too short"},
		{[]string{outcomeUnjudged, outcomeFails}, "Not judged: at 1 req/s it is too short"},
		{[]string{outcomeHolds, outcomeUnjudged, outcomeFails}, "1 req/s within the contract"},
		{[]string{outcomeHolds, outcomeUnjudged}, "At least 1 req/s within the contract"},
		{[]string{outcomeFails, outcomeFails}, "No load is within the contract"},
	} {
		r := SweepResult{Unit: unitRate, Contract: []string{"p99 ttft <= 1s"}}
		for i, outcome := range c.outcomes {
			r.Levels = append(r.Levels, Level{Name: strconv.Itoa(i), Role: roleLevel, Load: float64(i + 1), Outcome: outcome, Why: "it is too short"})
		}
		s := Sweep{Process: "poisson", Report: report.Options{Contract: new(contract.Contract)}}
		if err := s.highest(t.Context(), &r); err != nil || r.Headline() != c.want {
			t.Errorf("%v: %q, want %q; %v", c.outcomes, r.Headline(), c.want, err)
		}
	}
}

// A folder of an earlier version goes on under the contract that it had, whose clauses had another name.
func TestClausesOfEarlierVersions(t *testing.T) {
	c, err := contract.Parse("c", []byte("clauses: [{clause: attainment >= 90%, slo: 'ttft:1s'}]"))
	if err != nil {
		t.Fatal(err)
	}
	for clause, same := range map[string]bool{"attainment >= 90% (ttft:1s)": true, "goodput >= 90% (ttft:1s)": true, "attainment >= 91% (ttft:1s)": false} {
		r := SweepResult{Contract: []string{clause}}
		if err := r.SameContract(&c); (err == nil) != same {
			t.Errorf("%s: %v", clause, err)
		}
	}
}
