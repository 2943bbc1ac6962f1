package twin

import (
	"math"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"reprise/replay/peerfile"
	"reprise/replay/result"
	"reprise/trace"
)

// The twin of a real server: LLMServingSim's 300 requests through vLLM 0.19, of two setups. What
// makes a control is how TTFT goes with that of the twin, here over the last third, of a twin
// that was fitted to the first two.
func TestFitOfRealVLLM(t *testing.T) {
	for _, of := range []string{"RTXPRO6000_Llama-3.1-8B", "RTX4090_Llama-3.1-8B"} {
		path := "../../../shared/data/llmservingsim/" + of + ".requests.jsonl"
		if _, err := os.Stat(path); err != nil {
			t.Skipf("the published requests are not beside the checkout: %v", err)
		}
		f, err := peerfile.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var all []Request
		err = trace.Each(f.Reader(), func(_ int64, r *result.Result) error {
			all = append(all, Request{DueNS: r.DueNS, Prompt: r.WantInput, Output: r.WantOutput, TTFTNS: *r.FirstTokenNS - r.DueNS, E2ENS: *r.LastTokenNS - r.DueNS})
			return nil
		})
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		slices.SortStableFunc(all, func(a, b Request) int { return int(min(max(a.DueNS-b.DueNS, -1), 1)) })
		e, _, err := Fit([][]Request{all[:len(all)*2/3]})
		if err != nil {
			t.Fatal(err)
		}
		var x, y []float64
		for i, r := range play(&e, all) {
			if i >= len(all)*2/3 {
				x, y = append(x, math.Log(float64(r.TTFTNS))), append(y, math.Log(float64(all[i].TTFTNS)))
			}
		}
		c := stat.Correlation(x, y, nil)
		t.Logf("%s: %v: correlation of the logarithms %.3f, mean miss %+.3f over %d requests", of, e, c, stat.Mean(x, nil)-stat.Mean(y, nil), len(x))
		if c < 0.8 {
			t.Errorf("%s: TTFT and that of the twin go together by %.3f alone", of, c)
		}
	}
}
