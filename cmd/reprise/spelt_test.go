package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/bench"
	"reprise/replay/compare"
)

// What people know of replay and of other tools works in sweep and compare too, or is answered with what to type.
func TestSpeltAsInReplay(t *testing.T) {
	const made = " --preset l4-qwen2.5-0.5b --quiet --json "
	for _, c := range []struct {
		args string
		says string // the error, or a part of the JSON
	}{
		{"sweep --isl 30 --osl 5 --rate 5 --level-duration 1s --no-confirm", `--input-tokens=30 --output-tokens=5 --rates=5"`},
		{"sweep --input-len 30 --output-len 5 --concurrency 1,2 --level-duration 1s --no-confirm", `"requests_in_flight"`},
		{"sweep --isl 30 --osl 5 --rate 5 --rates 6", "give one of --rate and --rates"},
		{"sweep chat --requests 40", "--level-requests 150 is the fewest"},
		{"sweep chat --num-prompts 40", "--level-requests 150 is the fewest"},
		{"sweep chat --max-requests 40", "--level-requests 150 is the fewest"},
		{"sweep chat --duration 9s", "--level-duration, such as 30s"},
		{"sweep chat --request-rate 4", "--rates 1,2,5"},
		{"sweep chat --max-concurrency 4", "--concurrencies 1,2,4"},
		{"sweep chat --rounds 4", "--precision 5%"},
		{"sweep --dataset-name random", "`reprise sweep FILE`"},
		{"compare --isl 30 --osl 5 --requests 40 --rate 20 --rounds 2 -o OUT --costs-b step=9ms", `"requests": 36`},
		{"compare --isl 30 --osl 5 --num-prompts 40 --request-rate 20 --rounds 2 -o OUT --costs-b step=9ms", `"requests": 36`},
		{"compare --isl 30 --osl 5 --requests 1100 --concurrency 40 --rounds 1 -o OUT --costs-b step=9ms", `"requests": 1050`},
		{"compare chat --rates 4,5", "such as --rate 5; reprise sweep"},
		{"compare chat --concurrencies 4,5", "such as --concurrency 8; reprise sweep"},
	} {
		args := strings.Fields(strings.ReplaceAll(c.args+made, "OUT", filepath.Join(t.TempDir(), "rounds")))
		if out, errs, _ := reprise(t, args...); !strings.Contains(out+errs, c.says) {
			t.Errorf("%s: no %q in\n%.2000s%s", c.args, c.says, out, errs)
		}
	}
}

// However many rounds are asked for, no more are made, pilot rounds included; where they leave room for a verdict after
// pilot rounds, there are pilot rounds, and where the pilot rounds have to plan, the refusal says the least number.
func TestMostRoundsAreMostRounds(t *testing.T) {
	long(t)
	for _, c := range []struct {
		more          string
		runs, pilots  int
		primary, says string
	}{
		{"--rounds 2", 4, 0, compare.WholePrimary, "plan: E2E mean decides; --primary names another metric. " +
			"From --rounds 14 on, 6 pilot rounds choose it"},
		{"--rounds 13", 26, 0, compare.WholePrimary, "From --rounds 14 on"},
		{"--rounds 14", 28, 6, "", "round 8 of 8, "},
		{"--rounds 12 --alpha 0.05", 24, 6, "", "round 6 of 6, "},
		{"", 32, 6, "", "round 10 of 10, "},
		{"--rounds 3 --primary p50_ttft", 6, 0, "p50_ttft", "round 3 of 3, "},
		{"--primary p50_ttft", 20, 0, "p50_ttft", "round 10 of 10, "},
		{"--rounds 5 --detect 5%", 0, 0, "", "--rounds 5: 6 are pilot rounds, and a verdict at alpha 0.01 takes 8 " +
			"after them: 14 at least"},
		{"--rounds 10 --set pilot-rounds=4", 0, 0, "", "12 at least"},
		{"--rounds 0", 0, 0, "", "--rounds: from 1 to 200"},
	} {
		dir := filepath.Join(t.TempDir(), "rounds")
		args := strings.Fields("compare --isl 30 --osl 5 --requests 40 --rate 20 --json --preset l4-qwen2.5-0.5b " +
			"--set noise=20% -o " + dir + " " + c.more)
		out, errs, code := reprise(t, args...)
		if !strings.Contains(errs, c.says) || (c.runs == 0) != (code == cli.Usage) {
			t.Errorf("%s: exit code %d, no %q in\n%s", c.more, code, c.says, errs)
		}
		if c.runs == 0 {
			continue
		}
		e, err := bench.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		pilots := 0
		for _, trial := range e.Trials {
			if trial.Role == bench.RolePilot {
				pilots++
			}
		}
		if len(e.Trials) != c.runs || pilots != 2*c.pilots {
			t.Errorf("%s: %d runs, %d of them of pilot rounds", c.more, len(e.Trials), pilots)
		}
		var answer compare.Comparison
		if err := json.Unmarshal([]byte(out), &answer); err != nil || c.primary != "" && answer.Primary != c.primary {
			t.Errorf("%s: %v, %s decides", c.more, err, answer.Primary)
		}
		again, errs, code := reprise(t, args...)
		if code != cli.Good || again != out {
			t.Errorf("%s, again: exit code %d\n%s", c.more, code, errs)
		}
	}
}

// A comparison that pilot rounds decide says so, and the same command finds it again.
func TestPilotRoundsThatDecide(t *testing.T) {
	t.Chdir(t.TempDir())
	args := strings.Fields("compare --isl 30 --osl 5 --requests 40 --rate 20 --preset l4-qwen2.5-0.5b --costs-b " +
		"step=9ms -o rounds")
	for range 2 {
		out, errs, code := reprise(t, args...)
		if code != cli.Good || !strings.Contains(out, "by the t-test of 6 pilot rounds") || strings.Count(errs,
			"pilot round 6 of 6") > 2 {
			t.Errorf("exit code %d\n%s%s", code, out, errs)
		}
	}
}
