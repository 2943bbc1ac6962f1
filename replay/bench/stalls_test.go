package bench

import (
	"path/filepath"
	"testing"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// What judges the runs of suites, sweeps and capacities sees the stalls of a file.
func TestStalledRunIsNotTrusted(t *testing.T) {
	row := result.Result{RowID: 0, SentNS: trace.Ptr(int64(0)), FirstTokenNS: trace.Ptr(int64(7e8)), LastTokenNS: trace.Ptr(int64(7e8)), DoneNS: trace.Ptr(int64(7e8)), Events: 1}
	for _, stalls := range []*result.Stalls{
		nil, {}, {Count: 1, TotalNS: 6e8, LongestNS: 6e8, Intervals: []result.Stall{{FromNS: 1e8, ToNS: 7e8}}},
	} {
		path := filepath.Join(t.TempDir(), "r.parquet")
		if err := result.Write(path, result.Run{Clock: result.Clock{Stalls: stalls}}, &trace.SliceReader[result.Result]{Rows: []result.Result{row}}); err != nil {
			t.Fatal(err)
		}
		s, err := Summarise(path, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if quiet := stalls == nil || stalls.Count == 0; s.Verdict.Trustworthy != quiet {
			t.Errorf("%+v: %+v", stalls, s.Verdict.Reasons)
		}
	}
}
