package export

import (
	"slices"
	"strings"
	"testing"

	"reprise/trace"
)

// Nothing is said to be lost of a trace that a format can hold.
func TestNothingIsLost(t *testing.T) {
	plain := func(blocks bool) trace.Request {
		r := trace.Request{ArrivalNS: 1_500_000_000, InputTokens: 40, OutputTokens: trace.Ptr[int32](21), Status: trace.StatusOK}
		if blocks {
			r.Blocks = []uint64{0, 1, 2}
		}
		return r
	}
	turn := plain(true)
	turn.Session, turn.Turn = trace.Ptr[int64](0), trace.Ptr[int32](0)
	next := turn
	next.Turn, next.Parents = trace.Ptr[int32](1), []int64{0}
	request := plain(true)
	request.ArrivalNS, request.Model, request.MaxTokens, request.Kind, request.Temperature = 0, "m", trace.Ptr[int32](21), "chat", trace.Ptr[float32](1)
	silent := plain(true)
	silent.ArrivalNS = 0
	known := plain(false)
	known.Session, known.Turn, known.Class, known.ReasoningTokens, known.E2ENS = trace.Ptr[int64](0), trace.Ptr[int32](0), trace.Ptr("batch"), trace.Ptr[int32](7), trace.Ptr[int64](5000)

	for name, c := range map[string]struct {
		size int
		rows []trace.Request
	}{
		"bailian":          {16, []trace.Request{turn, next, plain(true)}},
		"aiperf":           {0, []trace.Request{turn, plain(false)}}, // a later turn has its own note
		"vllm-custom":      {16, []trace.Request{silent}},
		"vllm-timed-trace": {16, []trace.Request{plain(true)}},
		"guidellm":         {16, []trace.Request{plain(true)}},
		"inference-perf":   {0, []trace.Request{plain(false)}},
		"openai-batch":     {16, []trace.Request{request}},
		"blis":             {0, []trace.Request{known}},
	} {
		if _, _, loss := write(t, name, Options{BlockSize: c.size}, c.rows); loss != nil {
			t.Errorf("%s: %q", name, loss)
		}
	}
	for _, out := range Formats() {
		if _, _, loss := write(t, out.Name, Options{BlockSize: 512}, nil); loss != nil && out.Name != "mooncake" {
			t.Errorf("%s: an empty trace lost %q", out.Name, loss)
		}
	}
}

// What is lost is named and counted.
func TestLossIsCounted(t *testing.T) {
	many := sampleRows()
	many[0].Category, many[0].OutputBlocks, many[0].Turn = trace.Cold, []uint64{3}, trace.Ptr[int32](1)
	many[1].Kind, many[1].ToolNS, many[1].Class = "responses", trace.Ptr[int64](5), trace.Ptr("class-0")
	many[2].Parents, many[2].Turn, many[2].E2ENS = []int64{0, 1}, trace.Ptr[int32](0), trace.Ptr[int64](1_000_001)
	for name, want := range map[string]string{
		"mooncake": `1 of 3 arrivals were rounded to the millisecond|2 of 3 rows failed or were cancelled; in the file they are requests like any other|` +
			`columns left out, with the rows that had a value: session (2), turn (2), parents (1), think_ns (1), tool_ns (2), user (1), model (3), kind (1), class (1), category (1), ` +
			`reasoning_tokens (1), image_tokens (1), images (1), max_tokens (1), temperature (1), stream (1), output_blocks (1), status (2), finish_reason (1), ttft_ns (1), e2e_ns (2)`,
		"sglang": `1 of 3 arrivals were rounded to the millisecond|SGLang ignores input_length: it will make about 650 prompt tokens, some 130 for each block id, in place of 2236|columns left out`,
		"bailian": `1 of 3 rows have several parents: only the latest is kept|` +
			`columns left out, with the rows that had a value: think_ns (1), tool_ns (2), user (1), model (3),`,
		"aiperf": `2 of 3 rows have a number of their turn that is not their place in the session|1 of 3 arrivals were rounded to the millisecond|` +
			`1 of 3 rows have a think or tool time but no turn before them in the file|` +
			`1 of 3 rows are later turns, with a delay in place of their arrival|1 of 3 rows are later turns, to which AIPerf 0.13 adds the turns before them once more: --to mooncake has no sessions, and keeps lengths|1 of 3 delays were rounded to the millisecond|1 of 3 delays do not tell tool time from think time|` +
			`1 of 3 rows: parent links become "wait for the previous turn", or are lost|columns left out, with the rows that had a value: user (1), model (3),`,
		"vllm-custom":      `1 of 3 rows had no output and ask for one token|the arrivals of 3 rows: the file keeps their order alone|columns left out, with the rows that had a value: session (2), turn (2)`,
		"vllm-timed-trace": `2 of 3 rows failed or were cancelled|columns left out, with the rows that had a value: session (2),`,
		"guidellm":         `2 of 3 rows failed or were cancelled|columns left out, with the rows that had a value: session (2),`,
		"inference-perf": `1 of 3 arrivals were rounded to 100 ns|1 of 3 arrivals are finer than the microsecond that inference-perf reads|` +
			`1 of 3 arrivals are finer than 10 ms, to which inference-perf before September 2026 cuts them|blocks (3), output_blocks (1)`,
		"openai-batch": `1 of 3 rows are of a kind that has no place in a batch, and are written as chats|1 of 3 rows had no output and ask for one token|` +
			`1 of 3 rows asked for another max_tokens than the length of their output, which stands there|the arrivals of 3 rows: the file keeps their order alone|` +
			`columns left out, with the rows that had a value: session (2), turn (2), parents (1)`,
		"blis": `1 of 3 rows are of a class that BLIS does not know|1 of 3 arrivals were rounded to the microsecond|1 recorded latencies in 3 rows were rounded to the microsecond|` +
			`1 of 3 rows were cancelled, which BLIS has no word for: they are written as incomplete|` +
			`columns left out, with the rows that had a value: parents (1), think_ns (1), tool_ns (2), kind (1), category (1), images (1), max_tokens (1), temperature (1), blocks (3), output_blocks (1)`,
	} {
		_, _, loss := write(t, name, Options{BlockSize: 512}, many)
		for _, w := range strings.Split(want, "|") {
			if !slices.ContainsFunc(loss, func(l string) bool { return strings.Contains(l, w) }) {
				t.Errorf("%s: %q is not in\n%s", name, w, strings.Join(loss, "\n"))
			}
		}
	}
}

func TestLossOfTheWholeTrace(t *testing.T) {
	late := []trace.Request{{ArrivalNS: 3_536_999_000_000, InputTokens: 1, Blocks: []uint64{0}, OutputTokens: trace.Ptr[int32](1), Model: "a"}}
	mixed := []trace.Request{{Model: "a", OutputTokens: trace.Ptr[int32](1), InputTokens: 1}, {Model: "a", Kind: "embedding", InputTokens: 1}, {Model: "b", Kind: "completion", OutputTokens: trace.Ptr[int32](1)}}
	crowd := make([]trace.Request, batchRequests+1)
	for i := range crowd {
		crowd[i] = mixed[0]
	}
	split := []trace.Request{{Session: trace.Ptr[int64](1)}, {Session: trace.Ptr[int64](1), Turn: trace.Ptr[int32](0)}}
	for _, c := range []struct {
		name, want string
		o          Options
		rows       []trace.Request
	}{
		{"guidellm", "GuideLLM holds times as 32-bit floats: in this trace they are off by up to 23µs", Options{BlockSize: 64}, late},
		{"bailian", "blocks of 24 tokens became blocks of 16: shared prefixes are rounded down to both", Options{BlockSize: 24}, late},
		{"vllm-timed-trace", "blocks of 8 tokens became blocks of 16: shared prefixes", Options{BlockSize: 8}, late},
		{"bailian", "1 of 2 rows are a first turn of a session that had begun before", Options{BlockSize: 16}, split},
		{"aiperf", "readers of the format take a block to be 512 tokens; here it is 64: say --isl-block-size 64", Options{BlockSize: 64}, late},
		{"openai-batch", "OpenAI takes one endpoint in a file; this one has 1 chats, 1 completions and 1 embeddings", Options{}, mixed},
		{"openai-batch", "1 of 3 rows are of another model than the one named", Options{Model: "a"}, mixed},
		{"openai-batch", "1 of 3 rows have no input; their prompts have a token", Options{}, mixed},
		{"openai-batch", "OpenAI takes 50000 requests and 200 MB in a file; this one has 50001 and 8 MB", Options{}, crowd},
		{"blis", "1 of 3 rows are of another model than the one named", Options{Model: "a"}, mixed},
	} {
		_, _, loss := write(t, c.name, c.o, c.rows)
		if !slices.ContainsFunc(loss, func(l string) bool { return strings.HasPrefix(l, c.want) }) {
			t.Errorf("%s: want %s in\n%s", c.name, c.want, strings.Join(loss, "\n"))
		}
	}
}
