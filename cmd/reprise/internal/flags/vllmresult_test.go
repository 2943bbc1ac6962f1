package flags

import (
	"testing"

	"reprise/replay/peer"
)

// vLLM's names of files, and its rate and burstiness of our processes.
func TestVLLMRates(t *testing.T) {
	type is struct {
		rate, burstiness float64
		process          string
	}
	for process, want := range map[string]is{
		"": {}, "inf": {}, "poisson:2.5": {rate: 2.5}, "gamma:5,2": {5, .25, ""}, "gamma:5,cv=0.5": {5, 4, ""}, "gamma:5,burstiness=3": {5, 3, ""},
		"step:1-2,1m": {process: "step:1-2,1m"}, "ramp:1-5,5m": {process: "ramp:1-5,5m"},
	} {
		var o peer.VLLMOptions
		setRate(&o, process)
		if got := (is{o.RequestRate, o.Burstiness, o.Process}); got != want {
			t.Errorf("%q: %+v, want %+v", process, got, want)
		}
	}
	var o peer.VLLMOptions
	if setRate(&o, "ramp-up:linear,1-5,burstiness=2"); o.RampUp == nil || *o.RampUp != (peer.RampUp{Strategy: "linear", Start: 1, End: 5}) || o.Burstiness != 2 {
		t.Errorf("%+v", o)
	}
}
