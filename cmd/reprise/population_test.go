package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
)

// dayTrace imports the log of one day of so many users, each with one request.
func dayTrace(t *testing.T, day, users int) (path string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, uint64(day)))
	var log strings.Builder
	for u := range users {
		second := u*86_000/users + rng.IntN(9)
		fmt.Fprintf(&log, "{\"ts\":\"2026-05-%02dT%02d:%02d:%02dZ\",\"user\":\"u%d\",\"in\":%d,\"out\":%d}\n", day, second/3600, second/60%60, second%60,
			u, min(500, int(math.Exp(5+.5*rng.NormFloat64()))), 1+rng.IntN(100))
	}
	path = fmt.Sprintf("day%d.parquet", day)
	if err := os.WriteFile("day.jsonl", []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", "day.jsonl", "--map", "time=ts,user=user,input_tokens=in,output_tokens=out", "--capture-begin", fmt.Sprintf("2026-05-%02dT00:00:00Z", day),
		"--capture-end", fmt.Sprintf("2026-05-%02dT23:59:59Z", day), "-o", path, "--quiet")
	return path
}

// Twelve daily logs of the same users, each a capture of its own, cost these users what all
// releases together do: the eleventh is refused at ε = 1, also where only some name the
// population, and wherever the traces are. What is of other people is not.
func TestTwelveDays(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	const users = 9000
	var days []string
	for day := 1; day <= 12; day++ {
		days = append(days, dayTrace(t, day, users))
	}
	some := func(day int) []string {
		if day%2 == 0 {
			return []string{"--population", "customers", "--ledger", "ledger"}
		}
		return []string{"--ledger", "ledger"}
	}
	for name, c := range map[string]struct {
		flags   func(day int) []string
		refused int // the first day that is, or 0
	}{
		"one ledger":                {func(int) []string { return []string{"--ledger", "ledger"} }, 11},
		"one population, no ledger": {func(int) []string { return []string{"--population", "customers"} }, 11},
		"the ledger of the user":    {func(int) []string { return nil }, 11},
		"some name the population":  {some, 11},
		"each day has people of its own": {func(day int) []string {
			return []string{"--population", fmt.Sprint("visitors of day ", day), "--ledger", "ledger"}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			for _, path := range append([]string{"ledger"}, days...) {
				os.Remove(strings.TrimSuffix(path, ".parquet") + ".ledger.jsonl")
			}
			os.Remove("ledger")
			for i, trace := range days {
				said, code := ofUser(t, state, append([]string{"synth", "fit", trace, "--tier", "public", "--max-input", "512", "--max-output", "128", "-o", "m.parquet"}, c.flags(i+1)...)...)
				switch refused := c.refused > 0 && i+1 >= c.refused; {
				case refused && (code != cli.Usage || !strings.Contains(said, "ε would be 11 in all: earlier "+
					"releases or attempts (10) spent 10 of it, by ")):
					t.Fatalf("day %d: exit code %d\n%s", i+1, code, said)
				case !refused && code != cli.Good:
					t.Fatalf("day %d: exit code %d\n%s", i+1, code, said)
				}
			}
		})
	}
}
