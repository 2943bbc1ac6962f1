package trace_test

import (
	"testing"

	"reprise/trace"
)

// The stricter of two tiers wins, whichever comes first; what states none counts
// as internal.
func TestStricter(t *testing.T) {
	order := []string{"raw", "internal", "partner", "public"}
	for i, a := range order {
		for j, b := range order {
			if got := trace.Stricter(a, b); got != order[min(i, j)] {
				t.Errorf("of %s and %s: %s", a, b, got)
			}
		}
	}
	for _, c := range [][3]string{{"", "public", ""}, {"public", "", ""}, {"", "internal", "internal"}, {"internal", "", "internal"}, {"", "raw", "raw"}, {"", "", ""}, {"secret", "partner", "secret"}} {
		if got := trace.Stricter(c[0], c[1]); got != c[2] {
			t.Errorf("of %q and %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
	for _, tier := range []string{"raw", "internal", "partner", "", "secret"} {
		if trace.TierNote("page", tier) == "" {
			t.Errorf("tier %q says nothing", tier)
		}
	}
	if note := trace.TierNote("page", "public"); note != "" {
		t.Errorf("public says %q", note)
	}
}
