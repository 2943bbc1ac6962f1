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
// logs a table of how many of the runs are within all limits, with how often a figure is beyond its limit and
// how many times that at worst, and fails where fewer than nine of ten are. A part of the runs is
// -run 'WorkloadsOfShapes/SHAPE/ROWS/SEED'.
func TestWorkloadsOfShapes(t *testing.T) {
	script := strings.Fields(os.Getenv("REPRISE_TEST_SHAPES"))
	if len(script) < 2 {
		t.Skip("REPRISE_TEST_SHAPES names no script and shapes")
	}
	t.Chdir(t.TempDir())
	var all heldRuns
	for _, shape := range script[1:] {
		t.Run(shape, func(t *testing.T) {
			for _, n := range []int{100, 289, 500, 1000, 4000} {
				var of heldRuns
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					for seed := 1; seed <= 3; seed++ {
						t.Run(fmt.Sprint(seed), func(t *testing.T) {
							args := []string{script[0], shape, "-n", fmt.Sprint(n), "--seed", fmt.Sprint(seed), "--sid"}
							of.add(workloadOf(t, args[:len(args)-1]))
							of.add(workloadOf(t, args))
						})
					}
				})
				all.runs, all.held = all.runs+of.runs, all.held+of.held
				if of.runs > 0 {
					t.Logf("| %s | %d | %d of %d | %v |", shape, n, of.held, of.runs, of)
				}
			}
		})
	}
	if all.held*10 < all.runs*9 {
		t.Errorf("%d of %d workloads are within their limits", all.held, all.runs)
	}
}

// heldRuns counts workloads, and for each figure how many were beyond its limit.
type heldRuns struct {
	runs, held int
	off        map[string]int
	worst      map[string]float64
}

func (c *heldRuns) add(failed []fidelity.Check) {
	if c.runs++; len(failed) == 0 {
		c.held++
		return
	}
	if c.off == nil {
		c.off, c.worst = map[string]int{}, map[string]float64{}
	}
	for _, f := range failed {
		c.off[f.Name]++
		if f.Value != nil {
			c.worst[f.Name] = max(c.worst[f.Name], *f.Value/f.Limit)
		}
	}
}

func (c heldRuns) String() string {
	var figures []string
	for _, name := range slices.Sorted(maps.Keys(c.off)) {
		figures = append(figures, fmt.Sprintf("`%s` %d, %.2f", name, c.off[name], c.worst[name]))
	}
	return strings.Join(figures, ", ")
}

// workloadOf gives the figures by which a workload is beyond its limits, of a trace that a command writes.
func workloadOf(t *testing.T, args []string) []fidelity.Check {
	t.Helper()
	log, err := exec.Command("python3", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("log.jsonl", log, 0o600); err != nil {
		t.Fatal(err)
	}
	imported := []string{"import", "log.jsonl", "-o", "t.parquet"}
	if slices.Contains(args, "--sid") {
		imported = append(imported, "--rows", "full") // prompts of a session may get shorter
	}
	must(t, imported...)
	_, said, _ := reprise(t, "synth", "t.parquet", "-o", "w.parquet")
	out, _, _ := reprise(t, "fidelity", "t.parquet", "w.parquet", "--json")
	var found struct{ Checks []fidelity.Check }
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err)
	}
	failed := fidelity.Failures(found.Checks)
	if (len(failed) > len(fidelity.TooAlike(found.Checks))) != strings.Contains(said, "differs from its trace") ||
		(len(fidelity.TooAlike(found.Checks)) > 0) != strings.Contains(said, "than chance does") {
		t.Errorf("%s: fidelity finds %v, and synth says\n%s", strings.Join(args[1:], " "), failed, said)
	}
	for _, c := range failed {
		value := "none"
		if c.Value != nil {
			value = fmt.Sprintf("%.4g", *c.Value)
		}
		t.Logf("%s: %s %s, limit %.4g", strings.Join(args[1:], " "), c.Name, value, c.Limit)
	}
	return failed
}
