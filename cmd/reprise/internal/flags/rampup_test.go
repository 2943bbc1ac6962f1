package flags

import (
	"testing"
	"time"

	"reprise/trace/arrival"
)

// The rate of request i is vLLM's: by its share of the requests.
func TestRampUp(t *testing.T) {
	const n = 101
	for typed, want := range map[string][3]float64{"linear,2-10": {2, 6, 10}, "exponential,2-32": {2, 8, 32}} {
		p, err := arrivals("ramp-up:"+typed, arrival.Stream(1, "x"), n)
		if err != nil {
			t.Fatal(err)
		}
		unit, err := arrivals("gamma:1,burstiness=1", arrival.Stream(1, "x"), n)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n + 5 {
			gap, one := p.Next(), unit.Next()
			for k, at := range []int{0, 50, 100} {
				if want := time.Duration(float64(one) / want[k]).Round(time.Microsecond); i == at && gap != want {
					t.Errorf("%s: gap %d is %v, want %v", typed, i, gap, want)
				}
			}
			if i > 100 && gap != time.Duration(float64(one)/want[2]).Round(time.Microsecond) {
				t.Errorf("%s: the rate changes behind the end", typed)
			}
		}
	}
	all, err := arrivals(allAtOnce, arrival.Stream(1, "x"), n)
	if err != nil || all.Next() != 0 {
		t.Errorf("all at once waits: %v", err)
	}
}

func TestRampUpForms(t *testing.T) {
	for _, bad := range []string{"", "linear", "linear,1", "linear,2-1", "linear,0-1", "linear,1-x", "cubic,1-2", "linear,1-2,cv=1", "linear,1-2,burstiness=0", "linear,1-2,burstiness=1,x"} {
		if _, err := arrivals("ramp-up:"+bad, arrival.Stream(1, "x"), 10); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if r, err := parseRampUp("ramp-up:linear,1-2.5,burstiness=0.5"); err != nil || r.String() != "ramp-up:linear,1-2.5,burstiness=0.5" {
		t.Errorf("%v: %v", r, err)
	}
}
