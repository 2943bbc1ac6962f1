package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
	"reprise/trace"
)

// rowsByID reads results by their row.
func rowsByID(t *testing.T, path string) (map[int64]result.Result, result.Run) {
	t.Helper()
	f, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[int64]result.Result{}
	if err := trace.Each(f.Reader(), func(_ int64, r *result.Result) error { all[r.RowID] = *r; return nil }); err != nil {
		t.Fatal(err)
	}
	return all, f.Run
}

// Three shards together send what one run sends, row by row at the same times, and expect the
// same prefixes to be known. Without one of them there is no result; sent again, it completes
// the set, and the report says that it was alone.
func TestShards(t *testing.T) {
	w, server, dir := modesWorkload(t, 60), killServer(t), t.TempDir()
	whole := filepath.Join(dir, "whole.parquet")
	load := []string{w, "--url", server.url, "--quiet", "--seed", "5", "--rate", "40"}
	if _, errs, code := reprise(t, append([]string{"replay", "-o", whole}, load...)...); code != cli.Good && code != cli.Untrusted {
		t.Fatal(errs)
	}
	shards := filepath.Join(dir, "shards")
	if err := os.Mkdir(shards, 0o700); err != nil {
		t.Fatal(err)
	}
	path := func(i int) string { return filepath.Join(shards, fmt.Sprintf("s%d.parquet", i)) }
	send := func(i int, start time.Time, more ...string) (string, int) {
		args := append([]string{"replay", "--shard", fmt.Sprintf("%d/3", i), "--start-clock", start.UTC().Format(time.RFC3339Nano), "-o", path(i)}, load...)
		_, errs, code := reprise(t, append(args, more...)...)
		return errs, code
	}
	start := time.Now().Add(5 * time.Second)
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			if errs, code := send(i, start); code != cli.Good {
				t.Errorf("shard %d: exit code %d\n%s", i, code, errs)
			}
		})
	}
	all.Wait()
	merged := filepath.Join(dir, "merged.parquet")
	must(t, "merge", shards, "-o", merged)
	want, one := rowsByID(t, whole)
	got, run := rowsByID(t, merged)
	if len(got) != 60 || len(want) != 60 || run.Requests != 60 || run.Workload != one.Workload || len(run.Shards) != 3 || run.Rate != one.Rate {
		t.Fatalf("%d rows of %d, run %+v", len(got), len(want), run)
	}
	for id, a := range want {
		if b := got[id]; b.DueNS != a.DueNS || *b.Known != *a.Known || b.WantInput != a.WantInput {
			t.Errorf("row %d: due at %d with %d known, and %d with %d in the whole", id, b.DueNS, *b.Known, a.DueNS, *a.Known)
		}
	}

	if err := os.Remove(path(1)); err != nil {
		t.Fatal(err)
	}
	_, errs, code := reprise(t, "merge", shards, "-o", merged)
	if code != cli.Usage || !strings.Contains(errs, "shard 1/3 is missing") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if errs, code := send(1, start); code != cli.Untrusted || !strings.Contains(errs, "the start is over") {
		t.Errorf("a start that is over: exit code %d: %s", code, errs)
	}
	if errs, code := send(1, time.Now().Add(3*time.Second)); code != cli.Good {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	out := must(t, "merge", shards, "-o", merged)
	if !strings.Contains(out, "1 of 3 shards started at another time") {
		t.Errorf("merge does not say that a shard was alone:\n%s", out)
	}
	stdout, _, code := reprise(t, "report", merged)
	if code != cli.Untrusted || !strings.Contains(stdout, "the load was never whole") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}

// What shards cannot do is refused before anything is sent.
func TestShardMistakes(t *testing.T) {
	w := modesWorkload(t, 30)
	soon := []string{"--start-clock", "+30s"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--shard", "1/2"}, "--shard needs --start-clock"},
		{append([]string{"--shard", "2/2"}, soon...), `--shard: "2/2" is no shard: write 0/8 to 7/8`},
		{append([]string{"--shard", "half"}, soon...), `"half" is no shard`},
		{append([]string{"--shard", "/2"}, soon...), "takes its index from JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID, and neither is set"},
		{append([]string{"--shard", "1/2", "--warmup", "50"}, soon...), "give warm-up and cool-down as times"},
		{append([]string{"--shard", "1/8", "--concurrency", "4"}, soon...), "too few for 8 shards"},
		{append([]string{"--shard", "1/2", "--sessions", "4", "--idle-cap", "5s"}, soon...), "cannot know when the others are idle"},
		{append([]string{"--shard", "31/99"}, soon...), "99 shards at most"},
		{[]string{"--start-clock", "noon"}, `--start-clock: "noon" is no instant`},
		{[]string{"--clock-peer", "a:1"}, "--clock-peer and --clock-listen are for the shards of a load"},
		{append([]string{"--shard", "1/2", "--max-clock-offset", "5ms"}, soon...), "--max-clock-offset needs --clock-peer"},
	} {
		_, errs, code := reprise(t, append([]string{"replay", w, "--url", "http://127.0.0.1:9", "-o", filepath.Join(t.TempDir(), "r.parquet")}, c.args...)...)
		if want := c.want; c.want == "99 shards at most" {
			if code != cli.Usage || !strings.Contains(errs, "shards at most") {
				t.Errorf("%v: exit code %d: %s", c.args, code, errs)
			}
		} else if code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d: %s\nwant %s", c.args, code, errs, want)
		}
	}
}

// A shard of a job takes its index from where the job's process finds it.
func TestShardOfAJob(t *testing.T) {
	w := modesWorkload(t, 30)
	for variable, index := range map[string]string{"JOB_COMPLETION_INDEX": "2", "SLURM_ARRAY_TASK_ID": "1"} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, index)
			_, errs, code := reprise(t, "replay", w, "--shard", "/3", "--dry-run")
			if code != cli.Good || !strings.Contains(errs, "shard "+index+"/3: ") {
				t.Errorf("exit code %d: %s", code, errs)
			}
		})
	}
}
