package figure

import (
	"slices"
	"strings"
	"testing"
)

func everything(Figure) bool { return true }

// Each figure is read by every spelling that a person or a tool has for it, and printed by one.
func TestSpellings(t *testing.T) {
	statistics := map[Statistic][]string{
		P50: {"p50", "median"}, P90: {"p90"}, P95: {"P95"}, P99: {"p99"}, P999: {"p99.9", "p99_9", "p999"}, 975_000: {"p97.5"},
		Mean: {"mean", "avg", "average"}, Max: {"max"}, Min: {"min"},
	}
	read := func(text string, want Figure) {
		t.Helper()
		if got, err := Parse(text, everything); err != nil || got != want || strings.Contains(got.String(), " ") {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, s := range All() {
		for _, name := range s.Spellings() {
			spaced := strings.ReplaceAll(name, "_", " ")
			if !s.Spread {
				for _, text := range []string{name, strings.ToUpper(name), spaced, strings.ReplaceAll(name, "_", "-")} {
					read(text, Figure{s, 0})
				}
				continue
			}
			for statistic, spellings := range statistics {
				for _, of := range spellings {
					for _, text := range []string{of + "_" + name, of + " " + spaced, name + "-" + of, strings.ToUpper(name + "_" + of),
						of + "_" + name + "_ms", name + "_" + of + "_ms"} {
						read(text, Figure{s, statistic})
					}
				}
			}
		}
	}
}

// No two subjects have a spelling in common, and no spelling reads as a statistic of another subject.
func TestSpellingsAreOfOne(t *testing.T) {
	seen := map[string]string{}
	for _, s := range All() {
		for _, name := range s.Spellings() {
			if seen[name] != "" {
				t.Errorf("%s is %s and %s", name, seen[name], s.Name)
			}
			seen[name] = s.Name
			if statistic, rest := Split(name); statistic != 0 || rest != name {
				t.Errorf("%s is taken apart into %s and %s", name, statistic, rest)
			}
		}
	}
}

func TestWhatIsNoFigure(t *testing.T) {
	for text, want := range map[string]string{
		"": "no such metric: want", "p99": "no such metric", "speed": "no such metric", "ttft": "say which ttft", "p99_error_rate": "is one figure",
		"p99_tftt": "nearest is ttft", "eror_rate": "nearest is error_rate", "p100_ttft": "no such metric", "p0_ttft": "no such metric",
		"p99.99999 ttft": "no such metric", "ms": "no such metric", "p99_p95_ttft": "no such metric",
	} {
		if _, err := Parse(text, everything); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	only := func(f Figure) bool { return f.Name == "tpot" && f.Statistic == P99 || f.Name == "hit_ratio" }
	_, err := Parse("p99_ttft", only)
	if err == nil || err.Error() != "p99_ttft cannot be told here: want a percentile, mean or max of tpot, such as p95_tpot; or one of hit_ratio" {
		t.Error(err)
	}
	if _, err := Parse("cache_hit_rate", only); err != nil {
		t.Error(err)
	}
}

// What Parse reads it prints as it reads it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"p99_ttft", "p99.9 itl", "ttft-p95", "median_e2el_ms", "error_share", "p99_9_tpot", "max_running", "s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse(text, everything)
		if err != nil {
			return
		}
		for _, printed := range []string{got.String(), got.Words()} {
			if again, err := Parse(printed, everything); err != nil || again != got {
				t.Fatalf("%q is printed as %q, which reads as %v, %v", text, printed, again, err)
			}
		}
	})
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		figure, text string
		want         float64
		fault        string
	}{
		{"p99_ttft", "200ms", 200, ""}, {"p99_ttft", "1.5s", 1500, ""}, {"p99_ttft", "200", 0, "such as 200ms"}, {"p99_ttft", "-1s", 0, "above zero"},
		{"p50_session_time", "10min", 600_000, ""}, {"p50_session_time", "300", 0, "such as 300s"},
		{"error_rate", "1%", 0.01, ""}, {"error_rate", "0.01", 0, "percentage"}, {"hit_ratio", "0%", 0, "percentage"},
		{"in_flight", "10k", 10_000, ""}, {"in_flight", "1.5", 0, "whole number"}, {"requests_per_s", "2.5", 2.5, ""}, {"requests_per_s", "0", 0, "above zero"},
	} {
		f, err := Parse(c.figure, everything)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.ParseLimit(c.text)
		if c.fault == "" && (err != nil || got != c.want) || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s %s: %v, %v", c.figure, c.text, got, err)
		}
	}
}

func TestStatistics(t *testing.T) {
	for share, want := range map[float64]Statistic{0.5: P50, 0.999: P999, 1: Max, 0: 1} {
		if got := Percentile(share); got != want {
			t.Errorf("%v is %v, want %v", share, got, want)
		}
	}
	for s, want := range map[Statistic][3]int64{P50: {2, 500, 1000}, P99: {100, 990, 1000}, P999: {1000, 999, 1000}, 999_900: {10_000, 9999, 10_000}, Mean: {1, -1, 1_000_000}} {
		num, den := s.Fraction()
		if got := [3]int64{s.Needed(), num, den}; got != want && s > 0 || s.Needed() != want[0] {
			t.Errorf("%s: %v, want %v", s, got, want)
		}
	}
	if labels := []string{Of(P99, TTFT).Title(), Of(0, ErrorRate).Title()}; !slices.Equal(labels, []string{"TTFT p99", "errors"}) {
		t.Error(labels)
	}
}
