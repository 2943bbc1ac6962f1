package replay_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"reprise/replay"
	"reprise/replay/client"
	"reprise/replay/result"
	"reprise/trace"
)

// hello makes prompts of the wanted length out of one word.
type hello struct{}

func (hello) Prompt(row *trace.Request, buf []byte) ([]byte, error) {
	return append(buf, strings.Repeat(" hello", int(row.InputTokens))...), nil
}

func (hello) Tokens(row *trace.Request, buf []uint32) ([]uint32, error) {
	for range row.InputTokens {
		buf = append(buf, 24748)
	}
	return buf, nil
}

// A workload of three requests is replayed at ten times its speed, recorded and
// read back.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`+"\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	dir, err := os.MkdirTemp("", "replay")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	endpoint, err := client.New(client.Options{URL: server.URL, Model: "m"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer endpoint.Close()
	runner := replay.Runner{Prompter: hello{}, Endpoint: endpoint, Options: replay.Options{Speed: 10}}
	endpoint.Describe(&runner.About)
	workload := &trace.SliceReader[trace.Request]{Rows: []trace.Request{
		{ArrivalNS: 0, InputTokens: 9, OutputTokens: trace.Ptr[int32](1)},
		{ArrivalNS: 50e6, InputTokens: 9, OutputTokens: trace.Ptr[int32](1)},
		{ArrivalNS: 90e6, InputTokens: 9, OutputTokens: trace.Ptr[int32](1), Status: trace.StatusFailed},
	}}
	path := filepath.Join(dir, "results.parquet")
	run, err := runner.Record(context.Background(), workload, path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d sent to the %s API, %d left out\n", run.Requests, run.API, run.Excluded)

	results, err := result.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer results.Close()
	err = trace.Each(results.Reader(), func(_ int64, r *result.Result) error {
		fmt.Printf("row %d due at %d ms, %d prompt tokens, %d token events, finish %s\n",
			r.RowID, r.DueNS/1e6, *r.Input, r.Events, r.FinishReason)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 2 sent to the chat API, 1 left out
	// row 0 due at 0 ms, 9 prompt tokens, 1 token events, finish stop
	// row 1 due at 5 ms, 9 prompt tokens, 1 token events, finish stop
}
