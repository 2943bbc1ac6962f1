package contract

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/replay/report"
	"reprise/replay/result"
)

const chatContract = `# Chat, as its users know it.
name: chat in production
clauses:
  - p95 ttft <= 1s
  - p95 tpot ≤ 40 ms # steady reading
  - clause: p99 ttft <= 300ms
    where: class = "gold" or input_tokens < 2048
    from: sent
  - clause: "goodput >= 99%"
    slo: ttft:200ms,tpot:50ms
  - error_rate <= 1%
  - cost_per_million_output_tokens <= 2.5
gpus: 8
price_per_gpu_hour: 2.49
`

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(chatContract), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range c.Clauses {
		clause := &c.Clauses[i]
		line := clause.String() + " from " + originNames[clause.origin] + " " + clause.slo.String()
		if clause.where != nil {
			line += " where " + clause.where.String()
		}
		got = append(got, line)
	}
	want := []string{
		"p95 ttft <= 1s from due ",
		"p95 tpot <= 40ms from sent ",
		"p99 ttft <= 300ms from sent  where class = gold or input_tokens < 2048",
		"goodput >= 99% from due ttft:200ms,tpot:50ms",
		"error_rate <= 1% from sent ",
		"cost_per_million_output_tokens <= 2.5 from sent ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || c.Name != "chat in production" || c.GPUs != 8 || c.PricePerGPUHour != 2.49 {
		t.Errorf("%+v\n%s", c, strings.Join(got, "\n"))
	}
	if _, err := Read(path + "?"); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// Faults of contracts, with their lines and columns.
func TestContractFaults(t *testing.T) {
	list := func(lines ...string) string { return "clauses:\n" + strings.Join(lines, "\n") + "\n" }
	for _, c := range []struct{ in, want string }{
		{"", "c.yaml: it is empty"},
		{"# nothing\n", "c.yaml: it is empty"},
		{"name: a\n---\nname: b\n", "c.yaml: it has more than one document"},
		{"name: \xff\n", "c.yaml: it is not UTF-8"},
		{strings.Repeat(" ", maxText+1), "c.yaml: a contract has at most 16384 bytes"},
		{"- p95 ttft <= 1s\n", "c.yaml:1:1: want keys and values"},
		{"name: a\n", "c.yaml:1:1: the contract has no clauses"},
		{"name: a\nclauses:\n", "c.yaml:2:1: clauses has no value"},
		{"name: a\nclauses: []\n", "c.yaml:2:10: clauses: want a list"},
		{"name: a\nclause: p95 ttft <= 1s\n", "c.yaml:2:1: unknown key"},
		{"name: [a]\n", "c.yaml:1:7: name: want text"},
		{"name: a\nname: b\n", "c.yaml:2:1: mapping key"},
		{"name: a\n\tclauses: b\n", "c.yaml:2:1: "},
		{list("  - p95 ttft <= 1s", "  - p95 tpot <= 40"), "c.yaml:3:17: write the limit as a duration"},
		{list(`  - "p95 tpot <= 40"`), "c.yaml:2:18: write the limit as a duration"},
		{list("  - p95 ttft ≤ 1s now"), "c.yaml:2:19: want nothing after"},
		{list("  - p95 ttft <= 1s", "  - p95 tpot <=", "    40"), "c.yaml:3:5: write the limit"},
		{list("  - 5"), "c.yaml:2:5: no such metric"},
		{list("  - "), "c.yaml:2:5: a clause: want text"},
		{list("  - [p95 ttft <= 1s]"), "c.yaml:2:5: a clause: want text"},
		{list("  - clause: p95 ttft <= 1s", "    were: class = gold"), `c.yaml:3:5: unknown key "were": want clause, where, from or slo`},
		{list("  - clause: p95 ttft <= 1s", "    clause: p99 ttft <= 1s"), "c.yaml:3:5: mapping key"},
		{list("  - where: class = gold"), "c.yaml:2:5: want clause:"},
		{list("  - clause: p95 ttft <= 1s", "    where: class = gold or clas = x"), "c.yaml:3:28: no such column; nearest is class"},
		{list("  - clause: p95 ttft <= 1s", "    where:"), "c.yaml:3:5: where has no value"},
		{list("  - clause: p95 ttft <= 1s", "    from: done"), "c.yaml:3:11: from: want due or sent"},
		{list("  - clause: p95 tpot <= 1s", "    from: sent"), "c.yaml:3:11: p95 tpot does not begin"},
		{list("  - clause: p95 ttft <= 1s", "    slo: ttft:1s"), "c.yaml:3:10: slo belongs to goodput"},
		{list("  - clause: goodput >= 9%", "    slo: ttft:1"), "c.yaml:3:10: objective 1 of the SLO"},
		{list("  - clause: cost_per_million_output_tokens <= 1", "    where: class = gold"), "c.yaml:3:12: cost " +
			"covers all requests"},
		{list("  - clause: cost_per_session <= 1", "    where: class = gold"), "c.yaml:3:12: cost covers all " +
			"requests"},
		{list("  - clause: sessions_per_s >= 1", "    where: class = gold"), "c.yaml:3:12: sessions_per_s covers all"},
		{list("  - clause: p95 session_time <= 1s", "    from: sent"), "c.yaml:3:11: p95 session_time does not begin"},
		{list("  - clause: requests_per_s >= 1", "    where: state = steady and user = 3"), "c.yaml:3:12: a rate in the steady state"},
		{list("  - &a p95 ttft <= 1s", "  - *a"), "c.yaml:2:5: a clause: want text"},
		{"gpus: 1.5\n", "c.yaml:1:7: gpus: want a whole number"},
		{"gpus: 0\n", "c.yaml:1:7: gpus: want a whole number from 1 to"},
		{"gpus: eight\n", "c.yaml:1:7: gpus: want a whole number from 1 to"},
		{"price_per_gpu_hour: -2\n", "c.yaml:1:21: price_per_gpu_hour: want a number"},
		{"price_per_gpu_hour: .inf\n", "c.yaml:1:21: price_per_gpu_hour: want a number"},
		{list(strings.Repeat("  - p95 ttft <= 1s\n", 100)), "c.yaml:101:5: clauses: want 99 at most"},
	} {
		_, err := Parse("c.yaml", []byte(c.in))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.60q: %v; want %s", c.in, err, c.want)
		}
	}
}

// What a contract needs beside its file is asked for before there are results.
func TestContractNeeds(t *testing.T) {
	slo, err := report.ParseSLO("ttft:1s")
	if err != nil {
		t.Fatal(err)
	}
	parse := func(text string) *Contract {
		c, err := Parse("c.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return &c
	}
	goodput, cost := "clauses: [goodput >= 90%]\n", "clauses: [cost_per_million_output_tokens <= 3]\n"
	for name, c := range map[string]struct {
		opts report.Options
		want string
	}{
		"goodput without an SLO": {report.Options{Contract: parse(goodput)}, "goodput >= 90%: the clause has no slo"},
		"goodput with one":       {report.Options{Contract: parse(goodput), SLO: slo}, ""},
		"cost without a price":   {report.Options{Contract: parse(cost + "gpus: 2")}, "cost needs gpus and price"},
		"cost without GPUs":      {report.Options{Contract: parse(cost + "price_per_gpu_hour: 2")}, "cost needs gpus and price"},
		"cost with both":         {report.Options{Contract: parse(cost + "price_per_gpu_hour: 2\ngpus: 1")}, ""},
		"nothing":                {report.Options{Contract: &Contract{}}, "no clauses"},
		"an empty clause":        {report.Options{Contract: &Contract{Clauses: make([]Clause, 1)}}, "empty"},
	} {
		if err := c.opts.Check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// Whatever a file holds, the answer is a contract or an error that names it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{chatContract, "clauses:\n - p95 ttft <=\n", "clauses: [{clause: a, where: b}]", "? a\n: b", "&a [*a]",
		"clauses: [{clause: attainment >= 99%, slo: 'ttft:1s', where: state = steady}]", "name: |\n  a\nclauses:\n- >\n  p95 ttft\n  <= 1s"} {
		f.Add([]byte(seed))
	}
	rows := messy(rand.New(rand.NewPCG(1, 2)), 60)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("c.yaml", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "c.yaml:") {
				t.Fatal(err)
			}
			return
		}
		if len(c.Clauses) == 0 {
			t.Fatal("a contract without clauses")
		}
		for i := range c.Clauses {
			if _, err := parseClause(c.Clauses[i].String()); err != nil {
				t.Fatal(err)
			}
		}
		if o := (report.Options{Contract: &c}); o.Check() == nil { // and a run can be held against it
			s := summarise(t, result.Run{}, o, rows...)
			for i := range s.Contract.Clauses {
				if r := &s.Contract.Clauses[i]; (r.Outcome == report.Unjudged) != (r.Why != "") || (r.Measured == nil) != (r.Outcome == report.Unjudged) {
					t.Fatalf("%+v", r)
				}
			}
		}
	})
}
