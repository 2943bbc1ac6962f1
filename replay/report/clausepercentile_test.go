package report

import "testing"

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
