package client

import (
	"os"
	"testing"
	"time"

	"reprise/replay"
	"reprise/replay/result"
	"reprise/trace"
)

// A simulator written by others, when it is there. Real engines are in TestEngines of the
// command.
func TestLiveServers(t *testing.T) {
	for _, env := range []string{"REPRISE_TEST_SIM_URL"} {
		t.Run(env, func(t *testing.T) {
			url := os.Getenv(env)
			if url == "" {
				t.Skip(env + " is not set")
			}
			h, err := New(Options{URL: url, ForceOutput: true, Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			if _, err := h.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			if overhead, err := h.Calibrate(t.Context(), " hello", 0); err != nil || overhead < 0 || overhead > 1000 {
				t.Errorf("overhead %d, %v", overhead, err)
			}
			var rows []trace.Request
			for i := range 40 {
				rows = append(rows, trace.Request{ArrivalNS: int64(i) * 50e6, InputTokens: 20, OutputTokens: trace.Ptr[int32](8)})
			}
			var out trace.SliceWriter[result.Result]
			if _, err := (&replay.Runner{Prompter: words{}, Endpoint: h}).Run(t.Context(), reader(rows), &out); err != nil || len(out.Rows) != 40 {
				t.Fatalf("%d results, %v", len(out.Rows), err)
			}
			for _, r := range out.Rows {
				if r.Error != "" || r.Output == nil || *r.Output != 8 || r.FirstTokenNS == nil {
					t.Errorf("row %d: error %q, output %v", r.RowID, r.Error, r.Output)
				}
				inOrder(t, "live", &r.DueNS, r.ReleasedNS, r.SentNS, r.HeadersNS, r.FirstTokenNS, r.LastTokenNS, r.DoneNS)
			}
		})
	}
}
