package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"reprise/replay/contract"
	"reprise/replay/internal/resulttest"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// atMost is the chance of at most so many over the limit of n requests, each over with a chance
// of 1−share, added up term by term.
func atMost(over, n int64, share float64) float64 {
	sum := 0.0
	for k := range over + 1 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		sum += math.Exp(a - b - c + float64(k)*math.Log(1-share) + float64(n-k)*math.Log(share))
	}
	return sum
}

// Early stopping is the least number that a sum over the binomial distribution gives, and has
// the values that LoadGen is tested with.
func TestEarlyStopping(t *testing.T) {
	for _, share := range []float64{0.5, 0.9, 0.97, 0.99, 0.999} {
		for _, over := range []int64{0, 1, 2, 7, 40} {
			n := earlyStopping(over, share)
			if atMost(over, n, share) > 0.01 || atMost(over, n-1, share) <= 0.01 {
				t.Errorf("p%v, %d over: %d requests have a chance of %v, one less of %v", share*100, over, n, atMost(over, n, share), atMost(over, n-1, share))
			}
		}
	}
	for _, c := range []struct {
		over  int64
		share float64
		want  int64
	}{{0, 0.99, 459}, {1, 0.99, 662}, {1, 0.9, 64}} {
		if got := earlyStopping(c.over, c.share); got != c.want {
			t.Errorf("p%v, %d over: %d, want %d", c.share*100, c.over, got, c.want)
		}
	}
	for _, c := range []struct {
		over, n int64
		want    bool
	}{{0, 10, false}, {10, 1000, false}, {18, 1000, false}, {19, 1000, true}, {1000, 1000, true}} {
		if got := surelyOver(c.over, c.n, 0.99); got != c.want || got != (c.over > 0 && 1-atMost(c.over-1, c.n, 0.99) <= 0.01) {
			t.Errorf("%d of %d: %v", c.over, c.n, got)
		}
	}
}

// A server at the limit passes in about one of a hundred runs, whatever their length.
func TestEarlyStoppingPassesOneInAHundred(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 99))
	passed := 0
	const runs = 4000
	for range runs {
		over := int64(0)
		for range 2000 {
			if rng.Float64() < 0.01 {
				over++
			}
		}
		if earlyStopping(over, 0.99) <= 2000 {
			passed++
		}
	}
	if share := float64(passed) / runs; share > 0.015 || share < 0.003 {
		t.Errorf("%v of the runs of a server that just misses its percentile pass", share)
	}
}

// serverRow is a row of MLPerf's server scenario.
func serverRow(t *testing.T) *Row {
	t.Helper()
	c, err := contract.Parse("c.yaml", []byte("clauses: [p99 ttft <= 50ms, p99 tpot <= 20ms, error_rate <= 1%, {clause: p99 ttft <= 1ms, where: class = gold}]"))
	if err != nil {
		t.Fatal(err)
	}
	return &Row{Name: "server", Rules: rulesServer, Load: Load{Rate: "poisson:2"}, Contract: &c, Workload: WorkloadRef{Name: "chat"}}
}

// regular makes a result each everyMS; those that bad names are late.
func regular(n, everyMS int64, bad map[int64]bool) (out []result.Result) {
	for i := range n {
		first := int64(10)
		if bad[i] {
			first = 90
		}
		out = append(out, resulttest.Answer(i, i*everyMS, 0, first, first+10, first+20))
	}
	return out
}

func some(n int64) map[int64]bool {
	out := map[int64]bool{}
	for i := range n {
		out[i*3] = true
	}
	return out
}

func TestRulesOfRuns(t *testing.T) {
	offline := &Row{Name: "offline", Rules: rulesOffline, Load: Load{Rate: allAtOnce}}
	burst := func(n int64, seconds int64) (out []result.Result) {
		for i := range n {
			out = append(out, resulttest.Answer(i, 0, 0, 10, 1000*seconds*(i+1)/n))
		}
		return out
	}
	for _, c := range []struct {
		name    string
		row     *Row
		results []result.Result
		valid   bool
		fails   bool
		lacks   string
	}{
		{"long enough, none over", serverRow(t), regular(1301, 500, nil), true, false, ""},
		{"too short", serverRow(t), regular(1100, 500, nil), false, false, "it takes 600 s, and 1,100 requests took 550 s: send about 1,322"},
		{"five over, of which 1,301 are enough", serverRow(t), regular(1311, 500, some(5)), true, false, ""},
		{"six over take more", serverRow(t), regular(1311, 500, some(6)), false, false, "p99 ttft <= 50ms is not settled at 99 % confidence: 6 of 1,311 requests were over, which takes 1,453, 142 more"},
		{"far too many", serverRow(t), regular(1301, 500, some(200)), false, true, "p99 ttft <= 50ms is not met, at 99 % confidence: 200 of 1,301 requests were over"},
		{"failures are over", serverRow(t), append(regular(1300, 500, nil), failures(1300, 40)...), false, true, "p99 tpot <= 20ms is not met"},
		{"offline", offline, burst(24_576, 600), true, false, ""},
		{"offline, of 1,024", offline, burst(1024, 71), false, false, "it takes 24,576 samples, and there were 1,024; it takes 600 s, and 1,024 requests took 71 s: send about 9,519"},
		{"offline, with a failure", offline, append(burst(24_576, 600), failures(24_576, 1)...), false, false, "1 sample failed"},
		{"nothing", offline, nil, false, false, "and there were 0"},
	} {
		s, err := report.Summarise(result.Run{}, &trace.SliceReader[result.Result]{Rows: c.results}, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.row.judgeRules(&s, &trace.SliceReader[result.Result]{Rows: c.results})
		if err != nil || got.Valid != c.valid || got.Fails != c.fails || !strings.Contains(strings.Join(got.Lacks, "; "), c.lacks) || got.Valid != (len(got.Lacks) == 0) {
			t.Errorf("%s: %+v, %v; want %q", c.name, got, err, c.lacks)
		}
		if n := map[string]int{rulesServer: 2}[c.row.Rules]; len(got.EarlyStopping) != n {
			t.Errorf("%s: %d criteria of early stopping", c.name, len(got.EarlyStopping))
		}
	}
}

func failures(from, n int64) (out []result.Result) {
	for i := range n {
		out = append(out, resulttest.Failure(from+i, 0, "reset"))
	}
	return out
}

// What cannot be valid is refused before anything is sent.
func TestRulesAreCheckedFirst(t *testing.T) {
	for want, change := range map[string]func(r *Row){
		"":                                       func(*Row) {},
		"has Poisson arrivals":                   func(r *Row) { r.Load = Load{Rate: "constant:2"} },
		"such as load: poisson:4":                func(r *Row) { r.Load = Load{Concurrency: 3} },
		"needs a contract":                       func(r *Row) { r.Contract = nil },
		"lasts 600 s at least, and duration is ": func(r *Row) { r.Duration = 10 * time.Minute },
		"all samples at once":                    func(r *Row) { r.Rules = rulesOffline },
		"24,576 samples at least, and requests is 1,024": func(r *Row) {
			r.Rules, r.Load, r.Requests = rulesOffline, Load{Rate: allAtOnce}, 1024
		},
	} {
		row := serverRow(t)
		change(row)
		run := SuiteRun{Suite: Suite{Rows: []Row{*row}}, Columns: []Column{{Name: "a"}}}
		if err := run.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// A row says how many requests its rules take, unless it has a number of its own.
	for rate, least := range map[string]float64{"poisson:2": 1200, "poisson:50": 30_000, "poisson:0.5": 300} {
		row := serverRow(t)
		row.Load = Load{Rate: rate}
		row.SettleRules()
		if n := float64(row.Requests); n < least*1.05 || n > least*1.4 {
			t.Errorf("%s: %v requests", rate, n)
		}
	}
	row := serverRow(t)
	row.Requests = 7
	if row.SettleRules(); row.Requests != 7 {
		t.Error(row.Requests)
	}
	for _, name := range []string{"offline", "server"} {
		text, _ := SuiteText(name)
		s, err := ParseSuite(name+".yaml", text)
		if err != nil || s.Rows[0].Rules != "mlperf-"+name {
			t.Fatalf("%s: %+v, %v", name, s, err)
		}
		if s.Rows[0].SettleRules(); s.Rows[0].Requests < 600 || s.Rows[0].checkRules() != nil {
			t.Errorf("%s: %d requests, %v", name, s.Rows[0].Requests, s.Rows[0].checkRules())
		}
	}
}

// Several runs are valid where each is.
func TestRulesOfRepeats(t *testing.T) {
	good, short := &RulesOutcome{Valid: true}, &RulesOutcome{Lacks: []string{"a"}}
	over := &RulesOutcome{Fails: true, Lacks: []string{"a", "b"}}
	if got := (*RulesOutcome)(nil).merge(good).merge(short).merge(over); got.Valid || !got.Fails || fmt.Sprint(got.Lacks) != "[a b]" {
		t.Errorf("%+v", got)
	}
	if got := good.merge(good); !got.Valid || got.Fails {
		t.Errorf("%+v", got)
	}
}

// The estimate of single-stream is an order statistic of which a sum over the binomial
// distribution says that the percentile is not above it, but for a chance of 1 %, and the least
// such; LoadGen takes 64 requests for one.
func TestEarlyEstimate(t *testing.T) {
	if _, ok := estimateEarly(make([]int64, 63), 0.9); ok {
		t.Error("63 requests give an estimate")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int64{64, 100, 1024, 5000} {
		latencies := make([]int64, n)
		for i := range latencies {
			latencies[i] = int64(i+1) * 1e6 // the rank in ms
		}
		rng.Shuffle(len(latencies), func(i, j int) { latencies[i], latencies[j] = latencies[j], latencies[i] })
		over := int64(0) // the most, of which a server that just misses the percentile has a chance of 1 %
		for atMost(over+1, n, 0.9) <= 0.01 {
			over++
		}
		e, ok := estimateEarly(latencies, 0.9)
		if !ok || e.Over != over-1 || e.E2EMS != float64(n-over+1) || e.Requests != n || math.Abs(e.Measured-(1+0.9*float64(n-1))) > 1e-3 {
			t.Errorf("%d requests: %+v, %v; want %d over", n, e, ok, over)
		}
	}
	// It is below the truth in one of a hundred runs.
	below := 0
	const runs = 3000
	for range runs {
		latencies := make([]int64, 500)
		for i := range latencies {
			latencies[i] = int64(rng.Float64() * 1e9)
		}
		if e, ok := estimateEarly(latencies, 0.9); !ok || e.E2EMS < 900 {
			below++
		}
	}
	if share := float64(below) / runs; share > 0.015 || share < 0.002 {
		t.Errorf("%v of the runs have an estimate below the truth", share)
	}
}

// A run under the rules of single-stream is held to its length and its requests.
func TestRulesOfSingleStream(t *testing.T) {
	row := &Row{Name: "one", Rules: rulesSingle, Load: Load{Concurrency: 1}, Workload: WorkloadRef{Name: "chat"}}
	if row.SettleRules(); row.Requests != singleRequests || row.Duration != mlperfDuration || row.checkRules() != nil {
		t.Errorf("%+v, %v", row, row.checkRules())
	}
	for want, change := range map[string]func(*Row){
		"load: sequential":           func(r *Row) { r.Load.Concurrency = 2 },
		"takes 64 requests at least": func(r *Row) { r.Requests = 63 },
		"lasts 600 s at least, and":  func(r *Row) { r.Duration = time.Minute },
	} {
		bad := *row
		if change(&bad); bad.checkRules() == nil || !strings.Contains(bad.checkRules().Error(), want) {
			t.Errorf("%v, want %s", bad.checkRules(), want)
		}
	}
	judge := func(n, everyMS int64) *RulesOutcome {
		results := regular(n, everyMS, some(n/20))
		s := report.Summary{DurationS: trace.Ptr(float64(n*everyMS) / 1e3)}
		out, err := row.judgeRules(&s, &rowReader{results})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := judge(700, 1000); !got.Valid || len(got.Estimates) != 1 || !strings.Contains(got.String(), "p90 E2E by early stopping 30 ms") {
		t.Errorf("%+v: %s", got, got)
	}
	if got := judge(50, 20_000); got.Valid || !strings.Contains(got.String(), "an estimate of the p90 takes 64 requests, and there were 50") {
		t.Errorf("%s", got)
	}
	if got := judge(100, 1000); got.Valid || len(got.Estimates) != 1 || !strings.Contains(got.String(), "it takes 600 s") {
		t.Errorf("%s", got)
	}
}
