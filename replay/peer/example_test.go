package peer_test

import (
	"fmt"

	"reprise/replay/peer"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// A server sends a role after 10 ms and the first token after 80: what is the
// time to the first token depends on who says it.
func ExampleUnder() {
	at := func(ms int) *int64 { return trace.Ptr(int64(ms) * 1e6) }
	results := []result.Result{{SentNS: at(0), FirstEventNS: at(10), FirstTokenNS: at(80), FirstContentNS: at(80), LastTokenNS: at(180), DoneNS: at(181),
		Events: 2, GapsNS: []int64{100e6}, Output: trace.Ptr(int32(2)), OutputFrom: "usage"}}
	reread := func() trace.Reader[result.Result] { return &trace.SliceReader[result.Result]{Rows: results} }
	for _, name := range []string{"vllm", "aiperf", "guidellm"} {
		p, err := peer.Under(name, result.Run{}, reread, report.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, m := range p.Metrics {
			if m.Unit == "ms" && m.Count != nil {
				fmt.Printf("%s: %s %v\n", name, m.Name, *m.Values[0].Value)
			}
		}
	}
	// Output:
	// vllm: TTFT 10
	// vllm: TPOT 170
	// vllm: ITL 85
	// vllm: E2EL 180
	// vllm: Client Queue Time 0
	// vllm: E2EL incl. Client Queue 180
	// aiperf: Time to First Token (TTFT) 80
	// aiperf: Time to Second Token (TTST) 100
	// aiperf: Time to First Output Token (TTFO) 80
	// aiperf: Request Latency 180
	// aiperf: Inter Token Latency (ITL) 100
	// aiperf: Inter Chunk Latency (ICL) 100
	// guidellm: time_to_first_token_ms 80
	// guidellm: time_to_first_output_token_ms 80
	// guidellm: time_per_output_token_ms 90
	// guidellm: inter_token_latency_ms 100
}
