// Command slowest prints the requests of a replay that waited longest for their first
// token, and what each of them asked for: the rows to look at first after a bad p99.
//
//	make demo
//	go run ./examples/slowest demo/results.parquet
//
// TTFT counts from the instant when a request was due, so that a queue in the client
// counts too. The program needs only packages trace and replay/result, whose exported
// names are stable.
package main

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: slowest RESULTS.parquet")
	}
	if err := printSlowest(os.Stdout, os.Args[1], 10); err != nil {
		log.Fatal(err)
	}
}

// printSlowest writes the n requests with the highest TTFT, the slowest first, and
// how many failed.
func printSlowest(w io.Writer, path string, n int) error {
	f, err := result.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()

	// A journal that a killed run left is read like a finished file.
	if f.Unfinished {
		fmt.Fprintln(w, "the run did not finish: this is its journal")
	}
	ttft := func(r result.Result) int64 { return *r.FirstTokenNS - r.DueNS }
	var slowest []result.Result
	var failed int
	err = trace.Each(f.Reader(), func(_ int64, r *result.Result) error {
		if r.Failed() || r.FirstTokenNS == nil {
			failed++
			return nil
		}
		slowest = append(slowest, *r)
		if len(slowest) >= 2*n { // keeps memory at 2n rows
			slices.SortFunc(slowest, func(a, b result.Result) int { return cmp.Compare(ttft(b), ttft(a)) })
			slowest = slowest[:n]
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(slowest, func(a, b result.Result) int { return cmp.Compare(ttft(b), ttft(a)) })
	slowest = slowest[:min(n, len(slowest))]

	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "row\tdue\tTTFT\tinput tokens\tof them cached\t")
	for _, r := range slowest {
		cached := "unknown"
		if r.Cached != nil {
			cached = fmt.Sprint(*r.Cached)
		}
		due, wait := time.Duration(r.DueNS), time.Duration(ttft(r))
		fmt.Fprintf(table, "%d\t%v\t%v\t%d\t%s\t\n", r.RowID, due.Round(time.Millisecond),
			wait.Round(10*time.Microsecond), r.WantInput, cached)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%d of %d requests failed or gave no token\n", failed, f.Rows())
	return err
}
