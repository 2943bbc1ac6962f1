package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
	"reprise/trace"
)

// rowsOf reads a workload or results whole.
func rowsOf[T trace.TextFree](t *testing.T, r trace.Reader[T], err error) []T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var out trace.SliceWriter[T]
	if _, err := trace.Copy(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.Rows
}

// replayed runs a replay and returns what it recorded.
func replayed(t *testing.T, workload string, args ...string) (result.Run, []result.Result, string) {
	t.Helper()
	results := filepath.Join(t.TempDir(), "r.parquet")
	args = append([]string{"replay", workload, "--url", simulate(t), "-o", results, "--max-lag", "1h",
		"--max-stall-ttft", "-1", "--max-stall-gap", "-1"}, args...)
	out, errs, code := reprise(t, args...)
	if code != cli.Good && code != cli.Untrusted { // a busy machine is late, and that is not at stake here
		t.Fatalf("exit code %d: %s", code, errs)
	}
	f, err := result.Open(results)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Run, rowsOf(t, f.Reader(), nil), out + errs
}

// A turn is due to the nanosecond when the turns before it are over and its
// think and tool time has passed, and is not sent sooner: over HTTP, from a log
// of chats and one of an agent.
func TestPublishedSessionsAreCausal(t *testing.T) {
	long(t)
	t.Parallel()
	for _, c := range []struct {
		log   []string
		speed float64
		flag  string
	}{
		{[]string{"sharegpt_sample.json", "--arrivals", "poisson:20"}, 1000, "1000"},
		{[]string{"tracelab_example.jsonl", "--allow-long-span"}, 1e7, "1e7"},
	} {
		dir := t.TempDir()
		source, workload := filepath.Join(dir, "t.parquet"), filepath.Join(dir, "w.parquet")
		must(t, append([]string{"import", shared(t, c.log[0]), "-o", source, "--quiet"}, c.log[1:]...)...)
		must(t, "synth", "--mirror", source, "-o", workload)
		run, results, said := replayed(t, workload, "--speed", c.flag, "--details")
		w, err := trace.Open(workload)
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.Reader()
		rows := rowsOf(t, r, err)
		w.Close()
		if len(results) != len(rows) || run.Timing != result.Causal || run.Skipped+run.NotSent != 0 {
			t.Fatalf("%s: %d results of %d rows, run %+v", c.log[0], len(results), len(rows), run)
		}
		turns := checkCausal(t, c.log[0], rows, results, c.speed)
		if turns == 0 || run.Drift == nil || run.Drift.Turns != turns || !strings.Contains(said, "Drift of turns") {
			t.Errorf("%s: %d turns, drift %+v\n%s", c.log[0], turns, run.Drift, said)
		}
	}
}

// checkCausal holds that every turn was due when those before it were over and
// its pause had passed, and was not sent sooner. It returns how many there are.
func checkCausal(t *testing.T, name string, rows []trace.Request, results []result.Result, speed float64) (turns int64) {
	t.Helper()
	for i, r := range results {
		row := &rows[i]
		if len(row.Parents) == 0 {
			continue
		}
		turns++
		over := int64(0)
		for _, p := range row.Parents {
			over = max(over, *results[p].DoneNS)
		}
		pause := time.Duration(0)
		for _, part := range []*int64{row.ThinkNS, row.ToolNS} {
			if part != nil {
				pause += time.Duration(*part)
			}
		}
		if want := over + int64(float64(pause)/speed); r.DueNS != want || *r.SentNS < want {
			t.Errorf("%s: row %d: due %d, sent %d, want %d", name, i, r.DueNS, *r.SentNS, want)
		}
	}
	return turns
}

// Recorded times are kept on request, and where nothing tells of think times.
func TestOpenLoop(t *testing.T) {
	long(t)
	dir := t.TempDir()
	workload := filepath.Join(dir, "w.parquet")
	must(t, "synth", "baseline", "-n", "5", "-o", workload)
	for _, args := range [][]string{{"--open-loop"}, nil} {
		run, _, said := replayed(t, workload, append(args, "--speed", "100", "--details")...)
		if open := run.Timing == result.OpenLoop; open != (args != nil) || open == strings.Contains(said, "Drift of turns") {
			t.Errorf("%v: %s\n%s", args, run.Timing, said)
		}
	}
	if _, errs, code := reprise(t, "replay", workload, "-o", filepath.Join(dir, "r.parquet"), "--open-loop", "--set", "keep-think"); code != cli.Usage {
		t.Errorf("contradicting flags: exit code %d, %s", code, errs)
	}
}

// A rate replaces the recorded times, a closed loop the schedule, and what warms
// the server up is not measured.
func TestSchedules(t *testing.T) {
	long(t)
	workload := filepath.Join(t.TempDir(), "w.parquet")
	must(t, "synth", "baseline", "-n", "40", "-o", workload)
	run, results, said := replayed(t, workload, "--rate", "constant:100", "--open-loop", "--warmup", "10", "--set", "cooldown=50ms", "--details")
	for i, r := range results {
		if want := int64(i) * 10e6; r.DueNS != want {
			t.Errorf("row %d: due %d, want %d", i, r.DueNS, want)
		}
	}
	if run.Rate != "constant:100" || !strings.Contains(said, "open-loop, constant:100") || !strings.Contains(said, "10 to warm up and 6 to cool down") {
		t.Errorf("run %+v\n%s", run, said)
	}
	run, results, said = replayed(t, workload, "--concurrency", "4")
	if run.Timing != result.ClosedLoop || run.MaxInFlight != 4 || len(results) != 40 || !strings.Contains(said, "closed loop of 4 requests") {
		t.Errorf("run %+v\n%s", run, said)
	}
	run, results, _ = replayed(t, workload, "--rate", "constant:100", "--duration", "200ms", "--open-loop")
	if len(results) != 20 || run.Beyond != 20 || run.EndedEarly != "" {
		t.Errorf("%d results, run %+v", len(results), run)
	}
	for _, args := range [][]string{
		{"--concurrency", "2", "--rate", "poisson:2"}, {"--concurrency", "2", "--speed", "2"}, {"--concurrency", "2", "--open-loop"},
		{"--concurrency", "2", "--max-in-flight", "4"}, {"--rate", "fast"}, {"--warmup", "-1"}, {"--set", "cooldown=soon"}, {"--duration", "-1s"},
		{"--rate", "poisson:2", "--speed", "2", "--open-loop"}, {"--concurrency", "-1"},
	} {
		if _, errs, code := reprise(t, append([]string{"replay", workload, "-o", "r.parquet"}, args...)...); code != cli.Usage {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
}

// Ctrl-C ends a replay in good order: what was sent is finished and saved, the
// report is printed, and no journal is left.
func TestInterruptedReplayIsSaved(t *testing.T) {
	long(t)
	dir := t.TempDir()
	workload, results := filepath.Join(dir, "w.parquet"), filepath.Join(dir, "r.parquet")
	must(t, "synth", "baseline", "-n", "3000", "-o", workload)
	cmd := child(t, "replay", workload, "--url", simulate(t), "--rate", "constant:30", "--open-loop", "-o", results, "--max-lag", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C { // until something was measured
		if j, err := result.Open(result.JournalName(results)); err == nil {
			rows := j.Rows()
			j.Close()
			if rows > 0 {
				break
			}
		}
	}
	cmd.Process.Signal(os.Interrupt)
	if cmd.Wait(); cmd.ProcessState.ExitCode() != cli.Untrusted {
		t.Fatalf("exit code %d\n%s", cmd.ProcessState.ExitCode(), &errs)
	}
	if !strings.Contains(errs.String(), "requests in flight have") || !strings.Contains(out.String(), "the run ended early: interrupted") {
		t.Errorf("%s%s", &errs, &out)
	}
	f, err := result.Open(results)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if run := f.Run; f.Unfinished || run.Requests != f.Rows() || run.Requests == 0 || run.Requests+run.NotSent != 3000 || run.EndedEarly != "interrupted" {
		t.Errorf("%d results, run %+v", f.Rows(), run)
	}
	if _, err := os.Stat(result.JournalName(results)); err == nil {
		t.Error("the journal is left behind")
	}
}
