package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"reprise/synth/fidelity"
)

// TestWorkloadsOfShapes measures workloads of traffic that a script writes: REPRISE_TEST_SHAPES is
// "SCRIPT SHAPE…", and SCRIPT SHAPE -n ROWS --seed SEED [--sid] writes lines in Mooncake's form. It
// logs a table of how many of the runs are within all limits, and fails where fewer than nine of ten are.
func TestWorkloadsOfShapes(t *testing.T) {
	script := strings.Fields(os.Getenv("REPRISE_TEST_SHAPES"))
	if len(script) < 2 {
		t.Skip("REPRISE_TEST_SHAPES names no script and shapes")
	}
	t.Chdir(t.TempDir())
	const seeds = 3
	runs, held := 0, 0
	for _, shape := range script[1:] {
		for _, n := range []int{100, 289, 500, 1000, 4000} {
			within, off := 0, map[string]int{}
			for i := range 2 * seeds {
				args := []string{script[0], shape, "-n", fmt.Sprint(n), "--seed", fmt.Sprint(1 + i/2), "--sid"}
				log, err := exec.Command("python3", args[:len(args)-i%2]...).Output()
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile("log.jsonl", log, 0o600); err != nil {
					t.Fatal(err)
				}
				must(t, "import", "log.jsonl", "-o", "t.parquet")
				_, said, _ := reprise(t, "synth", "t.parquet", "-o", "w.parquet")
				out, _, _ := reprise(t, "fidelity", "t.parquet", "w.parquet", "--json")
				var found struct{ Checks []fidelity.Check }
				if err := json.Unmarshal([]byte(out), &found); err != nil {
					t.Fatal(err)
				}
				failed := fidelity.Failures(found.Checks)
				if (len(failed) > 0) != strings.Contains(said, "differs from its trace") {
					t.Errorf("%s, %d requests, seed %d: fidelity finds %v, and synth says\n%s", shape, n, 1+i/2, failed, said)
				}
				for _, c := range failed {
					off[c.Name]++
				}
				if runs++; len(failed) == 0 {
					within++
					held++
				}
			}
			var names []string
			for _, name := range slices.Sorted(maps.Keys(off)) {
				names = append(names, fmt.Sprintf("%s %d", name, off[name]))
			}
			t.Logf("| %s | %d | %d of %d | %s |", shape, n, within, 2*seeds, strings.Join(names, ", "))
		}
	}
	if held*10 < runs*9 {
		t.Errorf("%d of %d workloads are within their limits", held, runs)
	}
}
