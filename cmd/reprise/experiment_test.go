package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
)

// Every command that makes several runs writes a directory that the others read, where its keys
// carry the reading; else they say which key is in the way.
func TestExperimentsAreReadByAll(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	const preset = " --preset l4-qwen2.5-0.5b --quiet"
	writeFiles(t, map[string]string{"s.yaml": "rows:\n" +
		"  - {name: slow, workload: chat, requests: 60, load: \"poisson:4\"}\n  - {name: fast, workload: chat, requests: 60, load: \"poisson:8\"}\n"})
	must(t, "synth", "chat", "-n", "60", "-o", "w.parquet")
	writers := map[string]string{
		"rates":   "sweep w.parquet --rates 4,8 --level-duration 10s --level-requests 0 --no-confirm -o rates" + preset,
		"closed":  "sweep w.parquet --concurrencies 1,4 --level-duration 10s --no-confirm -o closed" + preset,
		"suite":   "bench s.yaml -o suite" + preset,
		"servers": "bench s.yaml --model a=preset:l4-qwen2.5-0.5b --model b=preset:l4-qwen2.5-0.5b,max-num-seqs=2 --quiet -o servers",
		"rounds":  "compare w.parquet --costs-b step=9ms --rate 5 --rounds 3 --primary p50_ttft -o rounds" + preset,
		"flight":  "compare w.parquet --costs-b step=9ms --concurrency 4 --rounds 3 --primary p50_ttft -o flight" + preset,
	}
	for name, line := range writers {
		if _, errs, code := reprise(t, strings.Fields(line)...); code != cli.Good {
			t.Fatalf("%s: exit code %d\n%s", name, code, errs)
		}
	}
	readers := map[string]map[string]string{ // what each says of each directory; after ! that it cannot be read so
		"report DIR": {"rates": "w poisson:8", "closed": "w concurrency:4", "suite": "fast", "servers": "fast, b", "rounds": "w, B", "flight": "w, B"},
		"sweep DIR": {"rates": "8 req/s", "closed": "4 in flight", "suite": "req/s", "servers": "!several servers or settings",
			"rounds": "!several servers or settings", "flight": "!several servers or settings"},
		"capacity DIR --target-rate 40": {"rates": "GPUs for 40 req/s", "closed": "!closed-loop sweep", "suite": "GPUs for 40 req/s",
			"servers": "!several servers or settings", "rounds": "!several servers or settings", "flight": "!several servers or settings"},
		"compare DIR": {"rates": "!name a second directory", "closed": "!name a second directory", "suite": "!name a second directory",
			"servers": "against a ", "rounds": "against A ", "flight": "against A "},
		"compare DIR other": {"rates": "other against rates", "closed": "!no run of one server", "suite": "!no run of one server",
			"servers": "!no run of one server", "rounds": "!no run of one server", "flight": "!no run of one server"},
		"sweep --frontier DIR": {"rates": "!a frontier is of requests in flight", "closed": "of l4-qwen2.5-0.5b", "suite": "!a frontier is of",
			"servers": "!a frontier is of", "rounds": "!a frontier is of", "flight": "A at every interactivity"},
	}
	must(t, strings.Fields("sweep w.parquet --rates 4,8 --level-duration 10s --level-requests 0 --no-confirm --seed 2 -o other"+preset)...)
	for reader, says := range readers {
		for dir := range writers {
			want, refused := strings.CutPrefix(says[dir], "!")
			out, errs, code := reprise(t, append(strings.Fields(strings.ReplaceAll(reader, "DIR", dir)), "--details")...)
			text := oneLine(out + errs)
			if !strings.Contains(text, want) || refused == (code == cli.Good) || strings.Contains(reader, "compare") && code != cli.Good && !refused {
				t.Errorf("%s of %s: exit code %d, not %q\n%s%s", reader, dir, code, want, out, errs)
			}
		}
	}

	// A finished sweep is read as it was answered, and takes no flags of a new one: it would seem to obey them.
	if out := must(t, "sweep", "rates", "--json"); out != contents(t, "rates/sweep.json") {
		t.Errorf("the sweep that is read is another:\n%s", out)
	}
	for _, more := range []string{"--rates=1,2", "--url=http://127.0.0.1:1", "--no-confirm", "--output=again"} {
		if _, errs, code := reprise(t, "sweep", "rates", more); code != cli.Usage || !strings.Contains(errs, "is about making runs, and rates has finished ones") {
			t.Errorf("%s: exit code %d\n%s", more, code, errs)
		}
	}

	// A sweep that was stopped is judged by the terms that it was made under.
	stopped := "sweep w.parquet --rates 4,8 --level-duration 10s --level-requests 0 --no-confirm -o stopped" + preset
	must(t, append(strings.Fields(stopped), "--clause", "p50 ttft <= 1s")...)
	if err := os.Remove(filepath.Join("stopped", sweepFile)); err != nil {
		t.Fatal(err)
	}
	expect(t, must(t, "sweep", "stopped"), "within the contract (asked for 8 req/s")

	// The rest of a level that was stopped is no run of its own.
	one := "sweep w.parquet --rates 4 --level-duration 10s --level-requests 0 --no-confirm -o one" + preset
	must(t, strings.Fields(one)...)
	rest := filepath.Join("one", "level-rate-8.stopped-1")
	if err := os.CopyFS(rest, os.DirFS(filepath.Join("one", "level-rate-4"))); err != nil {
		t.Fatal(err)
	}
	expect(t, must(t, "report", "one"), "Simulated")

	// Where no run ended, the reading says how to go on.
	state := filepath.Join("stopped", "experiment.json")
	var e map[string]any
	if err := json.Unmarshal([]byte(contents(t, state)), &e); err != nil {
		t.Fatal(err)
	}
	e["trials"] = nil
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(state, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"sweep", "compare"} {
		if _, errs, code := reprise(t, command, "stopped"); code != cli.Usage || !strings.Contains(errs,
			"stopped has no run that ended: give the command that began it again") {
			t.Errorf("%s: exit code %d\n%s", command, code, errs)
		}
	}

	// A directory without a state file is not taken for one with.
	if err := os.Remove(filepath.Join("rounds", "experiment.json")); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := reprise(t, "compare", "rounds"); code != cli.Usage || !strings.Contains(errs, "rounds has no experiment.json") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}
