package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/replay/history"
	"reprise/replay/result"
	"reprise/trace"
)

// recordRun writes a run of 100 requests with one time to first token, for history.
func recordRun(t *testing.T, dir string, i int, ttftMS int64, note string, stalled time.Duration) {
	t.Helper()
	var rows []result.Result
	for row := range int64(100) {
		due := 10_000_000 * row
		first, last := due+ttftMS*1e6, due+(ttftMS+10)*1e6
		rows = append(rows, result.Result{RowID: row, DueNS: due, SentNS: &due, HeadersNS: &first, FirstEventNS: &first, FirstTokenNS: &first, LastTokenNS: &last, DoneNS: &last,
			Events: 2, GapsNS: []int64{10e6}, WantInput: 100, WantOutput: 2, Output: trace.Ptr(int32(2)), OutputFrom: "usage"})
	}
	run := result.Run{Started: time.Date(2026, 11, 1+i, 0, 0, 0, 0, time.UTC).Format(time.RFC3339), Note: note, Source: result.Source{Workload: "sha256:00"},
		Sending: result.Sending{Requests: 100}, Client: result.Client{ClientCPU: 0.1, Cores: 2}, Clock: result.Clock{Stalls: &result.Stalls{}, StalledNS: int64(stalled)}}
	if err := result.Write(filepath.Join(dir, fmt.Sprintf("%02d.parquet", i)), run, &trace.SliceReader[result.Result]{Rows: rows}); err != nil {
		t.Fatal(err)
	}
}

// The exit codes of history: 0 whatever was found, 3 and 4 with --gate.
func TestHistoryGate(t *testing.T) {
	long(t)
	dir := t.TempDir()
	check := func(want int, says string, args ...string) string {
		t.Helper()
		stdout, stderr, code := reprise(t, append([]string{"history", dir}, args...)...)
		if code != want || says != "" && !strings.Contains(stdout+stderr, says) {
			t.Errorf("%v: exit code %d, want %d\n%s%s\nwithout %q", args, code, want, stdout, stderr, says)
		}
		return stdout
	}
	check(1, "no results of a replay or simulation in it")
	for i := range 10 {
		recordRun(t, dir, i, 100+int64(i%3), "", 0)
	}
	check(0, "No change of 2 % or more found in p99 TTFT.", "--metric", "p99 ttft", "--gate")
	check(4, "too few trusted runs to judge: --details says how many each metric needs", "--gate")
	for i := range 6 {
		recordRun(t, dir, 10+i, 130+int64(i%3), "", 0)
	}
	check(3, "gate failed: p99 TTFT rose by 29.7 %, from 101 ms to 131 ms at 10", "--metric", "p99_ttft", "--gate")
	check(0, "(worse), between 09 (2026-11-10 00:00) and 10", "--metric", "p99_ttft")
	var h history.History
	if err := json.Unmarshal([]byte(check(0, "", "--json", "--metric", "p99_ttft", "--html", filepath.Join(dir, "h.html"))), &h); err != nil ||
		len(h.Runs) != 16 || len(h.Series[0].Judged[0].Changes) != 1 {
		t.Errorf("%v, %+v", err, h)
	}
	recordRun(t, dir, 20, 100, "", 5*time.Second)
	check(4, "the newest run is not trustworthy: client stall of 5,000 ms", "--metric", "p99_ttft", "--gate")
	check(2, "--metric p97_ttft: no such metric", "--metric", "p97_ttft")
	check(2, "--metric max_running: it has no better direction, so a change cannot be judged", "--metric", "max_running")
}

// With --bisect the codes are those that git bisect run asks for, also of what could not
// be run at all.
func TestHistoryBisect(t *testing.T) {
	dir := t.TempDir()
	for i, ttft := range []int64{100, 101, 99, 130, 131, 129} {
		recordRun(t, dir, i, ttft, []string{"commit=aaaaaaaaaa", "commit=bbbbbbbbbb"}[i/3], 0)
	}
	bisect := func(want int, says string, args ...string) {
		t.Helper()
		stdout, stderr, code := reprise(t, append([]string{"history", "--metric", "p99_ttft"}, args...)...)
		if code != want || !strings.Contains(stdout+stderr, says) {
			t.Errorf("%v: exit code %d, want %d\n%s%s\nwithout %q", args, code, want, stdout, stderr, says)
		}
	}
	ends := "--bisect=aaaaaaa..bbbbbbbbbb"
	for i, c := range []struct {
		ttft int64
		want int
		says string
	}{
		{102, 0, "c0 is good: p99 ttft 102 in 1 run, against 100 of the good commit and 130 of the bad one"},
		{128, 3, "c1 is bad: p99 ttft 128 in 1 run, against 100 of the good commit and 130 of the bad one"},
		{114, 125, "c2 cannot be judged by p99 ttft: it is too near to the middle of good and bad after 1 run: measure it again"},
	} {
		recordRun(t, dir, 10+i, c.ttft, fmt.Sprintf("commit=c%d", i), 0)
		bisect(c.want, c.says, dir, ends)
	}
	bisect(125, "cccccccc has 0 trusted runs", dir, "--bisect", "cccccccc..bbbbbbbbbb")
	bisect(128, "--bisect: want GOOD..BAD", dir, "--bisect", "aaaaaaaaaa")
	bisect(128, "unknown flag", dir, ends, "--mertic", "x")
	bisect(128, "no results of a replay or simulation in it", t.TempDir(), ends)
	bisect(128, "--gate and --bisect cannot be used together", dir, ends, "--gate")
}
