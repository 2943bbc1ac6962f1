// Command replayload builds a workload in code, replays it against a server, and says
// what the prefix cache is worth: the TTFT of each user's first question beside the TTFT of
// the questions after it, whose document the server knows.
//
//	go run ./examples/replayload                              # a simulated engine in the same process
//	go run ./examples/replayload -url http://localhost:8000   # yours
//
// The packages below replay and synth may change in any release.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"time"

	"reprise/replay"
	"reprise/replay/client"
	"reprise/replay/engine"
	"reprise/replay/result"
	"reprise/synth/prompt"
	"reprise/trace"
	"reprise/trace/token"
)

func main() {
	url := flag.String("url", "", "base of an OpenAI-compatible server; a simulated engine when empty")
	interval := flag.Duration("interval", 100*time.Millisecond,
		"time between two questions; shorter than the server needs, it measures the queue")
	flag.Parse()
	if *url == "" {
		server, err := engine.NewServer(engine.DefaultServerConfig())
		if err != nil {
			log.Fatal(err)
		}
		listener := httptest.NewServer(server.Handler())
		defer listener.Close()
		*url = listener.URL
	}
	if err := replayQuestions(context.Background(), os.Stdout, *url, questions(10, 5, *interval)); err != nil {
		log.Fatal(err)
	}
}

// blockSize is how many tokens a block of the workload has. Two prompts whose block
// lists begin alike share that many tokens for each block.
const blockSize = 128

// questions returns a workload of users who each ask the same number of questions about
// a document of their own. All share a system prompt of 512 tokens. A question comes
// every interval, from one user after another.
func questions(users, each int, interval time.Duration) []trace.Request {
	var rows []trace.Request
	var next uint64 // block ids count up in the order of their first appearance
	fresh := func(n int) (ids []uint64) {
		for range n {
			ids = append(ids, next)
			next++
		}
		return ids
	}
	system := fresh(4)
	documents := make([][]uint64, users)
	for turn := range each {
		for user := range users {
			if turn == 0 {
				documents[user] = fresh(8) // 1,024 tokens
			}
			blocks := slices.Concat(system, documents[user], fresh(1))
			rows = append(rows, trace.Request{
				ArrivalNS:    int64(len(rows)) * int64(interval),
				User:         trace.Ptr(int64(user)),
				InputTokens:  int32(len(blocks)-1)*blockSize + 60, // the last block, the question, is partial
				OutputTokens: trace.Ptr[int32](20),
				Blocks:       blocks,
			})
		}
	}
	return rows
}

// replayQuestions sends the rows when they are due and prints the outcome.
func replayQuestions(ctx context.Context, w io.Writer, url string, rows []trace.Request) error {
	tokenizer, err := token.Open("o200k_base")
	if err != nil {
		return err
	}
	prompts, err := prompt.New(tokenizer.Words(), 1, blockSize)
	if err != nil {
		return err
	}
	endpoint, err := client.New(client.Options{URL: url, API: result.APICompletions})
	if err != nil {
		return err
	}
	defer endpoint.Close()
	if _, err := endpoint.Probe(ctx); err != nil { // does it answer, and what is its model called?
		return err
	}
	dir, err := os.MkdirTemp("", "replayload")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	runner := replay.Runner{Prompter: prompts, Endpoint: endpoint}
	endpoint.Describe(&runner.About)
	path := filepath.Join(dir, "results.parquet")
	if _, err := runner.Record(ctx, &trace.SliceReader[trace.Request]{Rows: rows}, path); err != nil {
		return err
	}

	results, err := result.Open(path)
	if err != nil {
		return err
	}
	defer results.Close()
	seen := map[int64]bool{} // users whose document the server has read
	var first, later []time.Duration
	var failed int
	err = trace.Each(results.Reader(), func(_ int64, r *result.Result) error {
		user := *rows[r.RowID].User
		switch {
		case r.Failed() || r.FirstTokenNS == nil:
			failed++
		case seen[user]:
			later = append(later, time.Duration(*r.FirstTokenNS-r.DueNS))
		default:
			first = append(first, time.Duration(*r.FirstTokenNS-r.DueNS))
			seen[user] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, g := range []struct {
		name string
		ttft []time.Duration
	}{{"first", first}, {"later", later}} {
		if len(g.ttft) > 0 {
			slices.Sort(g.ttft)
			fmt.Fprintf(w, "%s questions: %d, median TTFT %v\n", g.name, len(g.ttft),
				g.ttft[len(g.ttft)/2].Round(100*time.Microsecond))
		}
	}
	_, err = fmt.Fprintf(w, "failed: %d\n", failed)
	return err
}
