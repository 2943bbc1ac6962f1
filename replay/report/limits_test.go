package report

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/longtest"
	"reprise/trace/textpage"
)

// limitsWith are the defaults with one limit set: off, higher by a lot, or as low as can be.
func limitsWith(l Limit, to string) Limits {
	limits := DefaultLimits()
	share, duration := map[string]float64{"off": -1, "looser": 0.97, "tighter": 0}[to], map[string]time.Duration{"off": -1, "looser": 36 * time.Hour, "tighter": 0}[to]
	if l.Duration != nil {
		*l.Duration(&limits) = duration
	} else {
		*l.Share(&limits) = share
	}
	return limits
}

// Every limit has a key and a name of its own, and each stands for a field of its own.
func TestLimitList(t *testing.T) {
	fields := reflect.TypeFor[Limits]().NumField()
	seen, set := map[string]bool{}, Limits{}
	for _, l := range LimitList() {
		if seen[l.Key] || seen["name "+l.Name] || l.What == "" || (l.Share == nil) == (l.Duration == nil) {
			t.Errorf("%+v", l)
		}
		seen[l.Key], seen["name "+l.Name] = true, true
		before := set
		if l.Duration != nil {
			*l.Duration(&set) = 1
		} else {
			*l.Share(&set) = 1
		}
		if set == before {
			t.Errorf("%s sets a field that another limit sets", l.Key)
		}
	}
	if len(LimitList()) != fields {
		t.Errorf("%d limits for %d fields", len(LimitList()), fields)
	}
}

// Limits that are kept are read back, and only those that are not their defaults are kept.
func TestChangedLimits(t *testing.T) {
	for _, l := range LimitList() {
		for _, to := range []string{"off", "looser", "tighter"} {
			limits := limitsWith(l, to)
			kept, err := json.Marshal(limits.Changed())
			var back map[string]*float64
			if err == nil {
				err = json.Unmarshal(kept, &back)
			}
			if err != nil || LimitsOf(back) != limits || len(back) > 1 || (len(back) == 0) != (limits == DefaultLimits()) {
				t.Errorf("%s %s: %s, %+v, %v", l.Key, to, kept, LimitsOf(back), err)
			}
		}
	}
	if len(Limits{}.Changed()) > 0 || LimitsOf(nil) != DefaultLimits() {
		t.Error(Limits{}.Changed(), LimitsOf(nil))
	}
}

// A limit that allows more than its default is loosened, and no other is.
func TestLoosened(t *testing.T) {
	usual := DefaultLimits()
	for _, none := range []Limits{{}, usual} {
		if l := none.Loosened(); len(l) != 0 || l.String() != "" || l.Beside("Trustworthy.") != "Trustworthy." {
			t.Errorf("%+v: %v", none, l)
		}
	}
	for _, l := range LimitList() {
		was, unit := l.value(&usual)
		for _, to := range []string{"off", "looser", "tighter"} {
			limits := limitsWith(l, to)
			got := limits.Loosened()
			is, _ := l.value(&limits)
			if was < 0 || to == "tighter" {
				if len(got) != 0 {
					t.Errorf("%s %s: %v", l.Key, to, got)
				}
				continue
			}
			if len(got) != 1 || got[0].Key != l.Key || got[0].Default != was || got[0].Unit != unit || (got[0].Set == nil) != (to == "off") || got[0].Set != nil && *got[0].Set != is {
				t.Errorf("%s %s: %+v", l.Key, to, got)
			}
		}
	}
	limits := usual
	limits.LagP99, limits.Output, limits.HeldBack, limits.LagP50, limits.Stall = time.Hour, -1, 0.5, 1500*time.Millisecond, 90*time.Second
	const want = "5 limits were loosened: send lag p99 1 h (default 100 ms), send lag p50 1.5 s (default 10 ms), " +
		"requests held back 50 % (default 0 %), client stall 1.5 min (default 1 s), output tokens off (default 2 %)."
	if got := limits.Loosened().String(); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	limits = usual
	limits.CPU = 0.95
	if got := limits.Loosened().Beside("Simulated."); got != "Simulated. 1 limit was loosened: client CPU 95 % (default 90 %)." {
		t.Error(got)
	}
}

// A limit that is loosened is said beside the verdict of each kind of run, in the text and in the JSON, and one that is
// tightened is not. TestLoosenedLimitsAreSaidByEveryCommand of cmd/reprise looks into everything else that is written.
func TestLoosenedLimitsAreSaid(t *testing.T) {
	longtest.Skip(t)
	answer := func(w io.Writer, s Summary) error { return Page(s).WriteText(w, textpage.Options{}) }
	runs := map[string]func() (result.Run, []result.Result, Options){
		"measured": smallRun,
		"broken":   brokenRun,
		"simulated": func() (result.Run, []result.Result, Options) {
			run, results, o := smallRun()
			run.Simulated = "an engine"
			return run, results, o
		},
		"read": func() (result.Run, []result.Result, Options) {
			run, results, o := smallRun()
			run.Read = &result.Reading{Tool: "vLLM"}
			return run, results, o
		},
	}
	for kind, of := range runs {
		run, results, o := of()
		for i, l := range LimitList() {
			for _, to := range []string{[]string{"off", "looser"}[i%2], "tighter"} {
				o.Limits = limitsWith(l, to)
				s, err := Summarise(run, &trace.SliceReader[result.Result]{Rows: results[:min(len(results), 60)]}, o)
				if err != nil {
					t.Fatal(err)
				}
				want := s.Verdict.Loosened.String()
				if (want != "") != (to != "tighter" && l.Key != "max-lag-p999") {
					t.Fatalf("%s %s: %q", l.Key, to, want)
				}
				var doc bytes.Buffer
				var back Summary
				if err := writeJSON(&doc, s); err != nil || json.Unmarshal(doc.Bytes(), &back) != nil || back.Verdict.Loosened.String() != want {
					t.Errorf("%s, %s %s: the JSON has %v", kind, l.Key, to, back.Verdict.Loosened)
				}
				got := oneLine(written(t, answer, s))
				if want != "" && !strings.Contains(got, oneLine(want)) || want == "" && strings.Contains(got, " loosened: ") {
					t.Errorf("of a run that was %s, %s %s: want %q in: %s", kind, l.Key, to, want, got)
				}
			}
		}
	}
}

// oneLine takes out what a terminal, HTML or Markdown puts between words.
func oneLine(s string) string {
	s = strings.NewReplacer("\u00a0", " ", "&#43;", "+", `\_`, "_").Replace(s)
	return strings.Join(strings.Fields(s), " ")
}
