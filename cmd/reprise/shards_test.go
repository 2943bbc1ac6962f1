package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
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
	long(t)
	t.Parallel()
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
	// A busy machine may take longer to get ready than it is given: then all of them are sent again.
	together := func(shards ...int) (start time.Time) {
		for wait := 4 * time.Second; ; wait *= 3 {
			start = time.Now().Add(wait)
			var all sync.WaitGroup
			var late atomic.Bool
			for _, i := range shards {
				all.Go(func() {
					switch errs, code := send(i, start); {
					case code == cli.Untrusted && wait < time.Minute && strings.Contains(errs, "the start is over"):
						late.Store(true)
					case code != cli.Good:
						t.Errorf("shard %d: exit code %d\n%s", i, code, errs)
					}
				})
			}
			if all.Wait(); !late.Load() {
				return start
			}
		}
	}
	start := together(0, 1, 2)
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
	together(1)
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
		{append([]string{"--shard", "1/2", "--sessions", "4", "--set", "idle-cap=5s"}, soon...), "cannot know when the others are idle"},
		{append([]string{"--shard", "31/99"}, soon...), "99 shards at most"},
		{[]string{"--start-clock", "noon"}, `--start-clock: "noon" is no instant`},
		{[]string{"--set", "clock-peer=a:1"}, "--set clock-peer and --set clock-listen are for the shards of a load"},
		{append([]string{"--shard", "1/2", "--set", "max-clock-offset=5ms"}, soon...), "--set max-clock-offset needs --set clock-peer"},
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

// jobArguments are those of the container of a job that job prints.
func jobArguments(t *testing.T, args ...string) []string {
	t.Helper()
	out := must(t, append([]string{"job"}, args...)...)
	docs := bytes.Split([]byte(out), []byte("\n---\n"))
	var job struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct{ Args []string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(docs[len(docs)-1], &job); err != nil {
		t.Fatal(err)
	}
	return job.Spec.Template.Spec.Containers[0].Args
}

// A pod replays with the flags that the job was given, each with the same value.
func TestJobArguments(t *testing.T) {
	own := []string{"--shards", "4", "--image", "a/b", "--results-claim", "r", "--start-clock", "+10min", "--name", "load"}
	given := []string{"--url", "http://a:1", "--url", "http://b:2", "--header", "X-A=b,c", "--header", "X-D=e f", "--duration", "90s", "--rate", "300/min", "--speed", "1x",
		"--extra-body", `{"a":[1,2]}`, "--max-requests", "10k", "--warmup", "30s", "--token-ids", "--force-output=false", "--abort-on", "errors>5%,queue>100", "--timeout", "1h30m"}
	got := jobArguments(t, append(append([]string{"replay", "/data/w.parquet"}, given...), own...)...)
	read := func(args []string) map[string]string {
		cmd, _, err := rootCommand(nil).Find([]string{"replay"})
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		values := map[string]string{}
		if err := flags.Configure(cmd, nil); err != nil {
			t.Fatal(err)
		}
		cmd.Flags().Visit(func(f *pflag.Flag) { values[f.Name] = f.Value.String() })
		delete(values, "set") // which settings stand for
		return values
	}
	want := read(given)
	have := read(got[2:])
	for name, value := range want {
		if have[name] != value {
			t.Errorf("--%s is %q, want %q", name, have[name], value)
		}
		delete(have, name)
	}
	for _, name := range []string{"shard", "start-clock", "quiet", "clock-listen", "clock-peer", "output"} {
		delete(have, name)
	}
	if len(have) > 0 || got[0] != "replay" || got[1] != "/data/w.parquet" {
		t.Errorf("beside what was given: %v, of %q", have, got)
	}
}

// What makes no job is refused, a secret above all.
func TestJobMistakes(t *testing.T) {
	kube := []string{"--shards", "4", "--image", "a/b", "--results-claim", "r", "--start-clock", "+10min"}
	with := func(args ...string) []string { return append(append([]string{"/data/w.parquet"}, kube...), args...) }
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"/data/w.parquet"}, "a job of Kubernetes needs --image, and --results-claim or --results-bucket"},
		{[]string{"/data/w.parquet", "--image", "a/b", "--results-claim", "r", "--start-clock", "+10min"}, "--shards: say how many"},
		{[]string{"/data/w.parquet", "--image", "a/b", "--results-claim", "r", "--shards", "4"}, "give the instant"},
		{append([]string{"w.parquet"}, kube...), "below /data"},
		{with("--header", "Authorization=Bearer sk-1"), "would be readable in the job"},
		{with("--header", "X-Api-Key=sk-1"), "would be readable in the job"},
		{with("--shard", "1/4"), "--shard is not for a job"},
		{with("-o", "r.parquet"), "--output is not for a job"},
		{with("--concurrency", "2"), "too few for 4 shards"},
		{with("--warmup", "50"), "give warm-up and cool-down as times"},
		{with("--deadline", "5min"), "before its start"},
		{with("--start-clock", "2020-01-01T00:00:00Z"), "is over"},
		{with("--slurm"), "are for Kubernetes, not for --slurm"},
		{with("--results-dir", "/x"), "--results-dir is for --slurm"},
		{[]string{"/x/w.parquet", "--slurm", "--shards", "2", "--start-clock", "+10min"}, "--slurm needs --results-dir"},
		{with("--name", "A"), "the name"},
	} {
		_, errs, code := reprise(t, append([]string{"job", "replay"}, c.args...)...)
		if code != cli.Usage || !strings.Contains(errs, c.want) || strings.Contains(errs, "sk-1") {
			t.Errorf("%v: exit code %d: %s\nwant %s", c.args, code, errs, c.want)
		}
	}
	if _, errs, code := reprise(t, "job"); code != cli.Usage || !strings.Contains(errs, "what kind of job?") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
