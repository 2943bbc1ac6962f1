package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
)

// A plantedBug is a fault in the program: other text in one of its files.
type plantedBug struct {
	name, file, from, to string
	tests                string // package that has a test which is to fail
	check                string // of audit, that is to fail; empty where only a test can tell
	of                   plantedOutput
}

// A plantedOutput is what a program with a bug makes, and audit judges.
type plantedOutput int

const (
	ofImport  plantedOutput = iota // an internal trace
	ofRelease                      // rows for a partner, beside the internal trace
)

// plantedBugs are what the tests of the code are to notice, and audit where it has a check for it.
var plantedBugs = []plantedBug{
	{"the window is not time zero", "anonymize/run.go", "	if p.Capture.Declared() {\n		f.declared",
		"	if p.Capture.Declared() && false {\n		f.declared", "./anonymize", "", 0},
	{"models keep their names", "anonymize/finish.go", `		r.Model = f.models.name("model", r.Model)`, "		_ = f.models", "./anonymize", "", 0},
	{"labels tell how long a name is", "anonymize/finish.go", `fmt.Sprintf("%s-%d", kind, len(l.seen))`, `fmt.Sprintf("%s-%d", kind, len(s))`, "./anonymize", "", 0},
	{"fingerprints tell tokens apart by their names", "trace/breaker/numbers.go", "	if int(t) < len(n.low) && n.low[t] > 0 {", "	if t > 0 {\n		return t\n	}\n	if int(t) < len(n.low) && n.low[t] > 0 {", "./anonymize", "", 0},
	{"pages have statistics", "trace/columnwriter.go", "IsCompressed: thrift.New(true)})}", "IsCompressed: thrift.New(true), Statistics: format.Statistics{MaxValue: c.plain}})}", "./trace", "container", ofImport},
	{"columns have bounds", "trace/columnwriter.go", "m.Statistics.NullCount = c.allNulls", "m.Statistics = format.Statistics{NullCount: c.allNulls, MaxValue: c.plain[:min(8, len(c.plain))]}", "./trace", "container", ofImport},
	{"the file names its creator", "trace/parquet.go", `parquet.CreatedBy("reprise", "1", "trace")`, `parquet.CreatedBy("reprise of acme", "1", "trace")`, "./trace", "container", ofImport},
	{"noise from a seed", "anonymize/dp/noise.go", "func NewNoise() *Noise { return NewNoiseFrom(rand.Reader) }",
		seededNoise, "./anonymize/dp", "", 0},
	{"Gaussian noise of half the deviation", "anonymize/dp/tables.go", "n.Gaussian(s.Variance)",
		"n.Gaussian(s.Variance / 4)", "./anonymize/dp", "", 0},
	{"Laplace noise of half the scale", "anonymize/dp/selection.go", "n.Laplace(s.Scale)", "n.Laplace(s.Scale / " +
		"2)", "./anonymize/dp", "", 0},
	{"prefixes are selected without noise", "anonymize/dp/selection.go", "n.Laplace(s.Scale)", "n.Laplace(1)",
		"./anonymize/dp", "", 0},
	{"empty cells have no noise", "anonymize/dp/tables.go", "		cells[i] += x\n", "		if cells[i] != 0 " +
		"{\n			cells[i] += x\n		}\n", "./anonymize/dp", "", 0},
	{"σ is half of what ρ needs", "anonymize/dp/tables.go", "v := float64(m.L2Squared) / (2 * rho)", "v := float64(m.L2Squared) / (8 * rho)", "./anonymize/dp", "card", ofRelease},
	{"each table spends the whole ρ", "synth/release/fit.go", "rows*columns, f.share(t))", "rows*columns, f.rho)", "./synth/release", "card", ofRelease},
	{"a user weighs as much as all sessions", "synth/release/fit.go", "if w := part(unit, len(sessions), i); w > " +
		"0 {", "if w := unit + 0*part(unit, len(sessions), i); w > 0 {", "./synth/release", "", 0},
	{"each later turn has the whole weight", "synth/release/contribution.go", "turnRow(turns)-1, part(weight, n, " +
		"i), add)", "turnRow(turns)-1, weight, add)", "./synth/release", "", 0},
	{"each arrival has the whole weight", "synth/release/contribution.go", "cell(s.turns[i].at, l.rate), " +
		"part(weight, n, i))", "cell(s.turns[i].at, l.rate), weight)", "./synth/release", "", 0},
	{"sums have no limit", "synth/release/calibrate.go", "	limit = max(limit, s.there+s.fresh)\n", "",
		"./synth/release", "", 0},
	{"the card counts the requests", "synth/release/model.go", `"that the source names " +`, `fmt.Sprintf("%d requests", f.source.rows) + " of a source that names " +`, "./synth/release", "", 0},
	{"a release keeps the dates of its capture", "synth/release/model.go", "Capture: meta.Capture.Undated()}", "Capture: meta.Capture}", "./synth/release", "card", ofRelease},
	{"a statement of twice the budget", "synth/release/model.go", "Mechanism: dp.Gaussian, Rho: f.rho,", "Mechanism: dp.Gaussian, Rho: 4 * f.rho,", "./synth/release", "card", ofRelease},
}

const seededNoise = "func NewNoise() *Noise { return NewNoiseFrom(one{}) }\n\ntype one struct{}\n\nfunc (one) Read(p []byte) (int, error) { x := uint64(1); for i := range p { x = x*6364136223846793005 + 1442695040888963407; p[i] = byte(x >> 56) }; return len(p), nil }\n\nvar _ = rand.Reader"

// userTraffic is a log of users with sessions, one of them heavy.
func userTraffic(n int) string {
	r := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	at := time.Date(2026, 5, 1, 0, 10, 0, 0, time.UTC)
	talks := map[string]string{}
	for range n {
		at = at.Add(time.Duration(r.IntN(2e9) + 1e6))
		user := r.IntN(n / 4)
		if r.IntN(50) == 0 {
			user = 0
		}
		session := fmt.Sprintf("s-%d-%d", user, r.IntN(2))
		talk := talks[session]
		if talk == "" || len(talk) > 3000 {
			talk = `{"role":"system","content":"` + strings.Repeat("be brief ", 20) + `"}`
		}
		talk += `,{"role":"user","content":"` + strings.Repeat([]string{"red ", "blue ", "tree "}[r.IntN(3)], 1+r.IntN(60)) + `"}`
		reply := strings.Repeat("seven ", 1+r.IntN(40))
		fmt.Fprintf(&b, `{"timestamp":%q,"user":"user-%d@example.com","session_id":%q,"model":"acme-%s","messages":[%s],"response":%q}`+"\n",
			at.Format(time.RFC3339Nano), user, session, []string{"small", "enormous"}[r.IntN(2)], talk, reply)
		talks[session] = talk + `,{"role":"assistant","content":"` + reply + `"}`
	}
	return b.String()
}

// A planted bug whose place was rewritten plants nothing: each is still there, once. Whether the tests notice
// them takes too long to ask each time.
func TestPlantedBugsHaveAPlace(t *testing.T) {
	for _, b := range plantedBugs {
		overlaying(t, b.file, b.from, b.to)
	}
}

// Every bug fails a test of the code that it is in, and the audit of what a program with it makes where
// audit has a check for it.
func TestPlantedPrograms(t *testing.T) {
	if os.Getenv("REPRISE_TEST_PLANTED") == "" {
		t.Skip("it builds the program and its tests anew for each bug, which takes a quarter of an hour: set REPRISE_TEST_PLANTED=1")
	}
	bugs := append([]plantedBug{{name: "none"}}, plantedBugs...)
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			overlay := overlaying(t, b.file, b.from, b.to)
			if b.tests != "" {
				tests := exec.Command("go", "test", "-count=1", "-failfast", "-overlay", overlay, b.tests)
				tests.Dir = "../.."
				out, err := tests.CombinedOutput()
				if err == nil || !strings.Contains(string(out), "--- FAIL") {
					t.Errorf("its tests: %v\n%.2000s", err, out)
				} else {
					t.Logf("caught by %s", strings.Fields(string(out)[strings.Index(string(out), "--- FAIL"):])[2])
				}
			}
			if b.check == "" && b.name != "none" {
				return
			}
			for check, said := range auditedBy(t, buildWith(t, overlay), b) {
				if fails := check == b.check; fails != (said == "fail") && (fails || b.name == "none") {
					t.Errorf("audit's check %s: %s", check, said)
				} else if said == "fail" {
					t.Logf("caught by audit's check %s", check)
				}
			}
		})
	}
}

// auditedBy makes what is to be judged with a program, and returns what its audit says,
// by check.
func auditedBy(t *testing.T, bin string, b plantedBug) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "log.jsonl"), []byte(userTraffic(8000)), 0o600); err != nil {
		t.Fatal(err)
	}
	call := func(args ...string) []byte {
		cmd := exec.Command(bin, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "XDG_STATE_HOME="+dir)
		out, err := cmd.Output()
		if err != nil && cmd.ProcessState.ExitCode() != cli.Check {
			t.Fatalf("%v: %v\n%s", args, err, err.(*exec.ExitError).Stderr)
		}
		return out
	}
	window := []string{"--capture-begin", "2026-05-01T00:00:00Z", "--capture-end", "2026-05-01T06:00:00Z", "--block-size", "16"}
	call(append([]string{"import", "log.jsonl", "-o", "t.parquet"}, window...)...)
	terms := []string{"--tier", "partner", "--unit", "user", "--epsilon", "100", "--i-understand", "--max-input", "2048", "--max-output", "256"}
	call(append([]string{"anonymize", "t.parquet", "-o", "p.parquet"}, terms...)...)
	audit := map[plantedOutput][]string{ofImport: {"t.parquet"}, ofRelease: {"p.parquet", "--internal",
		"t.parquet"}}[b.of]
	audit = append([]string{"audit", "--json", "-o", "audit.json"}, audit...)
	if b.check != "" {
		audit = append(audit, "--only", b.check)
	}
	call(audit...)
	text, err := os.ReadFile(filepath.Join(dir, "audit.json"))
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Findings []struct{ Check, Status, Why string }
	}
	if err := json.Unmarshal(text, &page); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, f := range page.Findings {
		said[f.Check] = f.Status
		t.Logf("%s: %s: %s", f.Check, f.Status, f.Why)
	}
	return said
}
