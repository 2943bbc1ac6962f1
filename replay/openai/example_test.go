package openai_test

import (
	"fmt"
	"strings"
	"time"

	"reprise/replay/openai"
)

// A request is encoded, and the stream that answers it becomes instants and counts.
func Example() {
	maxTokens := 2
	body := openai.AppendRequest(nil, &openai.Request{
		Model:        "m",
		Messages:     []openai.Message{{Role: "user", Content: []byte("Say \"hi\".")}},
		Stream:       true,
		IncludeUsage: true,
		MaxTokens:    &maxTokens,
	})
	fmt.Println(string(body))

	answer := strings.NewReader(`data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}

: keep-alive

data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}

data: {"choices":[{"index":0,"delta":{"content":"!"},"finish_reason":"length"}]}

data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2,"total_tokens":6}}

data: [DONE]

`)
	// A replay gives the time since its start; all of this came with one read.
	clock := func() time.Duration { return 120 * time.Millisecond }
	scanner := openai.NewScanner(answer, clock, 0)
	collector := openai.NewCollector(0)
	ev, err := scanner.Scan()
	for ; err == nil; ev, err = scanner.Scan() {
		collector.Add(ev)
	}
	out := collector.Finish(ev.At, err)
	fmt.Println(out.Err == nil, out.FinishReason, out.FirstToken, out.TokenEvents, out.Usage.CompletionTokens)
	// Output:
	// {"model":"m","messages":[{"role":"user","content":"Say \"hi\"."}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":2}
	// true length 120ms 2 2
}
