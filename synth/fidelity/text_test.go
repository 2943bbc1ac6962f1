package fidelity

import (
	"strings"
	"testing"

	"reprise/trace"
)

// A verdict names the one check that does not apply, and says of a few that failed what they measure.
func TestVerdictNamesChecks(t *testing.T) {
	check := func(name string, ok *bool) Check { return Check{Name: name, OK: ok} }
	good, bad := trace.Ptr(true), trace.Ptr(false)
	if says, _ := verdict([]Check{check("ticks", good), check("turns_ks", nil)}); says !=
		"All 1 checks hold; turns_ks does not apply" {
		t.Error(says)
	}

	few := []Check{check("fanout", bad), check("ticks", good)}
	const means = "fanout: difference of the share of requests"
	if said := reasons(few); len(said) != 1 || !strings.HasPrefix(said[0], means) {
		t.Errorf("%q", said)
	}
	many := []Check{check("fanout", bad), check("ticks", bad), check("turns_ks", bad), check("mrc_mae", bad)}
	if said := reasons(many); len(said) != 0 {
		t.Errorf("%q", said)
	}
}
