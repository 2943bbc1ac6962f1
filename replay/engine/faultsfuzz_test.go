package engine

import (
	"strings"
	"testing"
)

// Lists of quirks and faults come from headers and from the network: none breaks
// the parser, and what is taken can be followed.
func FuzzFaultLists(f *testing.F) {
	for _, q := range Quirks() {
		f.Add(q.Name)
	}
	f.Add("error=503:5%,error=429+retry-after=2:1%")
	f.Add("stall=5s,choices=3,finish-reason=x")
	f.Fuzz(func(t *testing.T, list string) {
		if chosen, err := parseQuirks(list, ","); err == nil {
			m := defaultBehaviour()
			m.applyQuirks(chosen)
			if m.perEvent < 1 || m.choices < 1 || m.perWrite < 1 || m.doneMarks < 0 || m.stall < 0 || m.drip < 0 {
				t.Errorf("%+v", m)
			}
		} else if strings.Contains(list, "secretsecret") && strings.Contains(err.Error(), "secretsecret") {
			t.Errorf("the error quotes: %v", err)
		}
		faults, err := parseFaults(list)
		for _, x := range faults {
			if err != nil || len(x.quirks) == 0 || x.threshold > 1<<53 {
				t.Errorf("%+v, %v", x, err)
			}
		}
	})
}
