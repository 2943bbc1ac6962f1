// Command readtrace prints the load of a trace, hour by hour, as CSV: requests, prompt
// and output tokens, and the share of prompt blocks that an earlier request had
// already brought.
//
//	make demo
//	go run ./examples/readtrace demo/trace.parquet
//
// It needs only package trace, whose exported names are stable.
package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"time"

	"reprise/trace"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: readtrace TRACE.parquet")
	}
	if err := printHours(os.Stdout, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// An hour is what arrived within one hour of the trace.
type hour struct {
	requests, input, output int64
	blocks, seen            int64 // prompt blocks, and those that came before
}

// printHours writes one line for each hour of the trace that has requests.
func printHours(w io.Writer, path string) error {
	t, err := trace.Open(path)
	if err != nil {
		return err
	}
	defer t.Close()
	rows, err := t.Reader()
	if err != nil {
		return err
	}
	// Only these columns are read from the file.
	rows.Only("arrival_ns", "input_tokens", "output_tokens", "blocks")

	out := csv.NewWriter(w)
	if err := out.Write([]string{"hour", "requests", "input_tokens", "output_tokens",
		"blocks_seen_before"}); err != nil {
		return err
	}
	var current int64
	var h hour
	flush := func() error {
		if h.requests == 0 {
			return nil
		}
		share := "" // unknown, not 0, where the trace has no blocks
		if h.blocks > 0 {
			share = strconv.FormatFloat(float64(h.seen)/float64(h.blocks), 'f', 3, 64)
		}
		return out.Write([]string{fmt.Sprint(current), fmt.Sprint(h.requests), fmt.Sprint(h.input),
			fmt.Sprint(h.output), share})
	}
	known := map[uint64]bool{} // all blocks so far
	err = trace.Each(rows, func(_ int64, r *trace.Request) error {
		if at := r.ArrivalNS / int64(time.Hour); at != current {
			if err := flush(); err != nil {
				return err
			}
			current, h = at, hour{}
		}
		h.requests++
		h.input += int64(r.InputTokens)
		h.output += int64(r.OutputOr(0))
		for _, id := range r.Blocks {
			h.blocks++
			if known[id] {
				h.seen++
			}
			known[id] = true
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	out.Flush()
	if err != nil {
		return err
	}
	return out.Error()
}
