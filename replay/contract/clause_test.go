package contract

import (
	"errors"
	"strings"
	"testing"
)

func TestClauses(t *testing.T) {
	for in, want := range map[string]string{
		"p95 ttft <= 1s":                              "p95 ttft <= 1s",
		"p95 ttft≤1s":                                 "p95 ttft <= 1s",
		"  p99.9   itl<= 200 ms ":                     "p99.9 itl <= 200ms",
		"p99.999 itl_token <= 50.5µs":                 "p99.999 itl_token <= 50.5µs",
		"mean tpot <= 0.04s":                          "mean tpot <= 40ms",
		"max e2e <= 2m":                               "max e2e <= 2m0s",
		"p50 headers <= 5ms":                          "p50 headers <= 5ms",
		"error_rate <= 0%":                            "error_rate <= 0%",
		"error_rate ≤ 0.1 %":                          "error_rate <= 0.1%",
		"goodput ≥ 99.5%":                             "goodput >= 99.5%",
		"attainment >= 99%":                           "goodput >= 99%",
		"median_e2el <= 1s":                           "p50 e2e <= 1s",
		"ttft-p99 <= 1s":                              "p99 ttft <= 1s",
		"error_share <= 1%":                           "error_rate <= 1%",
		"hit_ratio >= 33.3333333%":                    "hit_ratio >= 33.3333333%",
		"requests_per_s >= 20":                        "requests_per_s >= 20",
		"output_tokens_per_s >= 5e2":                  "output_tokens_per_s >= 500",
		"prompt_tokens_per_s >= 0.5":                  "prompt_tokens_per_s >= 0.5",
		"cost_per_million_output_tokens <= 2.5":       "cost_per_million_output_tokens <= 2.5",
		"p95 session_time <= 300s":                    "p95 session_time <= 5m0s",
		"max session_slowdown ≤ 1.5":                  "max session_slowdown <= 1.5",
		"session_success >= 99 %":                     "session_success >= 99%",
		"sessions_per_s >= 0.2":                       "sessions_per_s >= 0.2",
		"cost_per_session <= 0.05":                    "cost_per_session <= 0.05",
		"cost_per_million_output_tokens <= 0.0000001": "cost_per_million_output_tokens <= 0.0000001",
	} {
		c, err := parseClause(in)
		if err != nil || c.String() != want {
			t.Errorf("%q: %q, %v; want %q", in, c.String(), err, want)
		}
	}
}

// Faults of clauses, with the bytes before each.
func TestClauseFaults(t *testing.T) {
	for _, c := range []struct {
		in   string
		at   int
		want string
	}{
		{"", 0, "no such metric: want a percentile, mean or max of ttft"},
		{"p95", 0, "no such metric"},
		{"p95 speed <= 1s", 4, "no such metric"},
		{"p95 running <= 1s", 4, "no such metric"},
		{"max_running <= 4", 0, "cannot be told here"},
		{"ttft <= 1s", 0, "say which ttft"},
		{"p100 ttft <= 1s", 0, "want a percentile"},
		{"p0 ttft <= 1s", 0, "want a percentile"},
		{"p99.99999 ttft <= 1s", 0, "want a percentile"},
		{"p95 error_rate <= 1%", 0, "is one figure"},
		{"p95 ttft", 8, "want <= after p95 ttft"},
		{"p95 ttft >= 1s", 9, "want <= after p95 ttft"},
		{"p95 ttft < 1s", 9, "want <= after p95 ttft"},
		{"p95 ttft = 1s", 9, "want <= after p95 ttft"},
		{"requests_per_s <= 5", 15, "want >= after"},
		{"p95 ttft <=", 11, "want a limit, such as 200ms"},
		{"p95 ttft <= 1", 12, "with its unit"},
		{"p95 ttft <= 0s", 12, "above zero"},
		{"p95 ttft <= -1s", 12, "above zero"},
		{"p95 ttft <= 99999h", 12, "duration"},
		{"p95 ttft <= 1s where class = gold", 15, "is said by where"},
		{"p95 ttft <= 1 1s", 14, "want nothing after"},
		{"p95 ttft <= 1s, p99 ttft <= 2s", 14, "no meaning here"},
		{"p95 ttft <= 1s <= 2s", 15, "want nothing after the limit"},
		{"error_rate <= 0.01", 14, "percentage"},
		{"session_time <= 300s", 0, "say which session_time"},
		{"p95 session_success >= 99%", 0, "is one figure"},
		{"p95 session_time <= 300", 20, "such as 300s"},
		{"p95 session_time >= 300s", 17, "want <= after"},
		{"error_rate <= 101%", 14, "percentage"},
		{"error_rate <= NaN%", 14, "percentage"},
		{"goodput >= 0%", 11, "percentage"},
		{"requests_per_s >= 0", 18, "above zero"},
		{"requests_per_s >= Inf", 18, "above zero"},
		{"p95 ttft <= \"1s\"", 12, "want a limit"},
		{"p95 ttft <= (1s)", 12, "want a limit"},
	} {
		_, err := parseClause(c.in)
		var m *misplaced
		if !errors.As(err, &m) || m.at != c.at || !strings.Contains(m.why, c.want) {
			t.Errorf("%q: %+v; want %q behind %d bytes", c.in, m, c.want, c.at)
		}
	}
}

// What a clause prints is read as that clause.
func FuzzClause(f *testing.F) {
	for _, seed := range []string{"p95 ttft <= 1s", "p99.9 itl ≤ 200 ms", "error_rate <= 1%", "goodput >= 99%", "p95 session_time <= 300s", "p50 session_slowdown <= 2", "cost_per_million_output_tokens <= 2.5", "mean ttft", "p95 <= <="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		c, err := parseClause(in)
		if err != nil {
			if m := new(misplaced); !errors.As(err, &m) || m.at < 0 || m.at > len(in) {
				t.Fatalf("%q: the fault has no place: %v", in, err)
			}
			return
		}
		back, err := parseClause(c.String())
		if err != nil || back.String() != c.String() || back.allowed != c.allowed {
			t.Fatalf("%q is read back as %+v, %v", c.String(), back, err)
		}
	})
}

func TestClauseAtAnotherPercentile(t *testing.T) {
	c, err := parseClause("p99 ttft <= 500ms")
	if err != nil {
		t.Fatal(err)
	}
	for share, want := range map[float64]string{.996997: "p99.6997 ttft <= 500ms", 1: "max ttft <= 500ms", 0: "p0.0001 ttft <= 500ms"} {
		if got := c.At(share); got.String() != want {
			t.Errorf("at %v: %s", share, got.String())
		}
	}
	if p, ok := c.Percentile(); p != .99 || !ok {
		t.Errorf("%v, %v", p, ok)
	}
	for _, s := range []string{"mean ttft <= 1s", "max ttft <= 1s", "error_rate <= 1%"} {
		if c, err = parseClause(s); err != nil {
			t.Fatal(err)
		}
		if _, ok := c.Percentile(); ok {
			t.Errorf("%s has a percentile", s)
		}
	}
}
