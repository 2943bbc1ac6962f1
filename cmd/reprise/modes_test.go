package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/replay/bench"
)

// What shows figures of a trace can be read by those who can read the trace: its owner alone, unless
// the trace is public or of a specification. This holds for every command that writes files, in
// every format; what a run makes beside its results is looked at too.
func TestModesOfFigures(t *testing.T) {
	long(t)
	if os.PathSeparator != '/' {
		t.Skip("modes are those of Unix")
	}
	t.Chdir(t.TempDir())
	url := simulate(t)
	writeFiles(t, map[string]string{"log.jsonl": sharingLog(60), "c.yaml": "clauses: [mean ttft <= 1h]\n",
		"internal.yaml": "rows: [{name: one, workload: internal.parquet, load: burst, primary: p90_ttft}]", "public.yaml": "rows: [{name: one, workload: public.parquet, load: burst, primary: p90_ttft}]"})
	must(t, "import", "log.jsonl", "-o", "internal.parquet")
	must(t, "synth", "chat", "-n", "60", "-o", "public.parquet")
	for name, want := range map[string]os.FileMode{"internal": 0o600, "public": 0o644} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{
			"profile T -o D/profile.txt --html D/profile.html",
			"profile T --json -o D/profile.json",
			"fidelity T T --html D/fidelity.html -o D/fidelity.txt",
			"simulate T --preset l4-qwen2.5-0.5b -o D/r.parquet",
			"replay T --url URL --speed 50 --max-lag 1h --scrape auto --set scrape-interval=50ms -o D/live.parquet --html D/live.html --save-result --save-detailed --result-dir D/saved",
			"report D/r.parquet -o D/r.txt --html D/r.html",
			"report D/r.parquet D/live.parquet -o D/both.txt --html D/both.html",
			"report D/r.parquet --format csv -o D/r.csv", "report D/r.parquet --format markdown -o D/r.md", "report D/r.parquet --format json -o D/r.json",
			"report D/r.parquet --format junit -o D/r.xml", "report D/r.parquet --format prometheus -o D/r.prom", "report D/r.parquet --format vllm -o D/v.json",
			"report D/r.parquet D/live.parquet --format decision --contract c.yaml --html D/decision.html -o D/decision.md",
			"export D/r.parquet --to table -o D/table.csv",
			"compare D/r.parquet D/live.parquet --html D/compare.html",
			"compare T --url-a URL --url-b URL --rounds 2 --rest 0s --speed 50 --max-lag 1h --html D/rounds.html -o D/rounds",
			"sweep T --preset l4-qwen2.5-0.5b --rates 5,10 --level-duration 2s --no-confirm --contract c.yaml --html D/sweep.html -o D/levels",
			"capacity D/levels/sweep.json --target-rate 20 --html D/capacity.html",
			"bench S --preset l4-qwen2.5-0.5b -o D/bench",
		} {
			line = strings.NewReplacer("T ", name+".parquet ", "D/", name+"/", "URL", url, "S ", name+".yaml ").Replace(line)
			if _, errs, code := reprise(t, strings.Fields(line)...); code == 1 || code == 2 {
				t.Errorf("%s: exit code %d\n%s", line, code, errs)
			}
		}
		files := 0
		err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			switch base := filepath.Base(path); {
			case err != nil:
				return err
			case saysNoFigure[base] || strings.HasPrefix(base, "engine"):
			case info.Mode().Perm() != want:
				t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
			}
			files++
			return nil
		})
		if err != nil || files < 30 {
			t.Errorf("%s: %d files, %v", name, files, err)
		}
	}
}

// saysNoFigure are files that say what is to be done, and nothing that was measured.
var saysNoFigure = map[string]bool{"suite.yaml": true, "state.json": true, bench.StateName: true}
