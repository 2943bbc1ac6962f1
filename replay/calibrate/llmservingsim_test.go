package calibrate

import (
	"math"
	"os"
	"testing"

	"reprise/replay/peerfile"
)

// LLMServingSim's requests through real vLLM 0.19: costs are fitted to the first 150 requests
// of each, and TTFT and E2E of the last 150, mean and p99, are predicted within 5 %.
func TestRealVLLM(t *testing.T) {
	if os.Getenv("REPRISE_TEST_STATISTICS") == "" {
		t.Skip("REPRISE_TEST_STATISTICS is not set: two fits take a minute")
	}
	for _, of := range []struct {
		file   string
		stated Stated
	}{
		{"RTXPRO6000_Llama-3.1-8B", Stated{KVTokens: 540_000, MaxSeqs: 128, MaxBatchTokens: 2048}},
		{"RTX4090_Llama-3.1-8B", Stated{KVTokens: 41_408, MaxSeqs: 256, MaxBatchTokens: 2048}},
	} {
		t.Run(of.file, func(t *testing.T) {
			path := "../../../shared/data/llmservingsim/" + of.file + ".requests.jsonl"
			if _, err := os.Stat(path); err != nil {
				t.Skipf("the published requests are not beside the checkout: %v", err)
			}
			f, err := peerfile.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r, err := Read(of.file, f, nil)
			if err != nil {
				t.Fatal(err)
			}
			held, err := heldOut(t.Context(), []*Record{r}, of.stated, func(s string, _ int) { t.Log(s) })
			if err != nil {
				t.Fatal(err)
			}
			for _, figure := range held.Levels[0].Figures {
				t.Logf("%-20s measured %9.2f predicted %9.2f: %+.2f %%", figure.Metric, figure.Measured, figure.Predicted, 100*figure.Error())
			}
			for _, metric := range []string{"mean_ttft", "p99_ttft", "mean_e2e", "p99_e2e"} {
				if figure, ok := held.Levels[0].Figure(metric); !ok || !(math.Abs(figure.Error()) <= 0.05) {
					t.Errorf("%s: measured %.2f, predicted %.2f", metric, figure.Measured, figure.Predicted)
				}
			}
		})
	}
}
