package spec_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/synth/spec"
	"reprise/trace"
)

// rowsOf makes all rows of a specification.
func rowsOf(t testing.TB, text string, seed uint64) ([]trace.Request, *spec.Spec) {
	t.Helper()
	s, err := spec.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	src, err := s.Rows(seed)
	if err != nil {
		t.Fatal(err)
	}
	var rows []trace.Request
	err = trace.Each(src, func(_ int64, r *trace.Request) error {
		rows = append(rows, *r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(0)
	for i := range rows {
		r := &rows[i]
		if i > 0 && r.ArrivalNS < rows[i-1].ArrivalNS {
			t.Fatalf("row %d arrives before the one above it", i)
		}
		if want := (int(r.InputTokens) + s.Block - 1) / s.Block; len(r.Blocks) != want || r.InputTokens < 1 || *r.OutputTokens < 0 {
			t.Fatalf("row %d: %d blocks for %d tokens", i, len(r.Blocks), r.InputTokens)
		}
		for _, b := range r.Blocks {
			next = max(next, b+1)
		}
	}
	return rows, s
}

func shares(rows []trace.Request) map[string]float64 {
	n := map[string]float64{}
	for i := range rows {
		n[rows[i].Category] += 100 / float64(len(rows))
	}
	return n
}

func TestSpecCategories(t *testing.T) {
	for _, c := range []map[string]float64{
		{trace.Cold: 20, trace.Template: 30, trace.Branch: 20, trace.Continuation: 25, trace.Duplicate: 5},
		{trace.Cold: 100},
		{trace.Cold: 50, trace.Duplicate: 50},
		{trace.Cold: 10, trace.Continuation: 90},
		{trace.Cold: 2, trace.Duplicate: 98},
		{trace.Cold: 5, trace.Branch: 95},
		{trace.Cold: 20, trace.Template: 20, trace.Branch: 20, trace.Continuation: 20, trace.Duplicate: 20},
	} {
		var b strings.Builder
		b.WriteString("requests: 4000\nblock: 16\narrivals: poisson:10\nlengths: {own: 'uniform:20..400', output: 'uniform:1..50'}\n" +
			"prefix: {global: 64, groups: [{share: 1, count: 8, depth: 'constant:128'}]}\ncategories:\n")
		for k, v := range c {
			fmt.Fprintf(&b, "  %s: %g\n", k, v)
		}
		rows, _ := rowsOf(t, b.String(), 3)
		got := shares(rows)
		for _, name := range trace.Categories() {
			if math.Abs(got[name]-c[name]) > 2 {
				t.Errorf("want %v, got %v", c, got)
				break
			}
		}
	}
}

func TestSpecSessions(t *testing.T) {
	rows, s := rowsOf(t, `
requests: 2000
block: 32
arrivals: poisson:2
answer: constant:3s
prefix: {global: 64}
sessions: {turns: 'uniform:1..6', added: 'uniform:5..80', think: 'exponential:10s', users: 7}
lengths: {own: 'uniform:40..200', output: 'uniform:1..90'}
`, 1)
	later := 0
	for i := range rows {
		r := &rows[i]
		if r.User == nil || *r.User > 6 {
			t.Fatal("a session without one of the users")
		}
		if *r.Turn == 0 {
			if r.Parents != nil || r.ThinkNS != nil {
				t.Fatal("a first turn waits for something")
			}
			continue
		}
		later++
		was := &rows[r.Parents[0]]
		if *was.Session != *r.Session || *was.Turn+1 != *r.Turn || *was.User != *r.User {
			t.Fatalf("row %d follows a row of another session, turn or user", i)
		}
		if r.ArrivalNS != was.ArrivalNS+int64(3*time.Second)+*r.ThinkNS {
			t.Fatalf("row %d does not come an answer and a think time after its parent", i)
		}
		if r.InputTokens < was.InputTokens+*was.OutputTokens+5 || r.InputTokens > was.InputTokens+*was.OutputTokens+80 {
			t.Fatalf("row %d adds %d tokens", i, r.InputTokens-was.InputTokens-*was.OutputTokens)
		}
		full := int(was.InputTokens) / s.Block
		if !slices.Equal(r.Blocks[:full], was.Blocks[:full]) || full < len(was.Blocks) && r.Blocks[full] == was.Blocks[full] {
			t.Fatalf("row %d does not share the full blocks of its parent, and these alone", i)
		}
	}
	if later < 1000 {
		t.Errorf("%d later turns of 2000", later)
	}
}

func TestSpecGroups(t *testing.T) {
	const text = `
requests: 5000
block: 16
arrivals: constant:10
prefix: {global: 30, groups: [{share: 0.5, count: 4, depth: 'constant:100', popularity: 'zipf:1', turnover: %s}]}
lengths: {own: 'constant:64', output: 'constant:1'}
`
	for turnover, want := range map[string][2]int{"''": {4, 4}, "'constant:100s'": {12, 24}} {
		rows, _ := rowsOf(t, strings.Replace(text, "%s", turnover, 1), 9)
		uses, without := map[uint64]int{}, 0
		for i := range rows {
			b := rows[i].Blocks
			if b[0] != 0 || b[1] != 1 {
				t.Fatal("a prompt does not begin with the global prefix of 30 tokens, rounded to two blocks")
			}
			switch rows[i].InputTokens {
			case 32 + 96 + 64:
				uses[b[2+5]]++
			case 32 + 64:
				without++
			default:
				t.Fatalf("a prompt of %d tokens", rows[i].InputTokens)
			}
		}
		if len(uses) < want[0] || len(uses) > want[1] {
			t.Errorf("turnover %s: %d prefixes lived, want %v", turnover, len(uses), want)
		}
		if without < 2300 || without > 2700 {
			t.Errorf("%d of 5000 without a prefix of the group", without)
		}
		if turnover == "''" {
			most := 0
			for _, n := range uses {
				most = max(most, n)
			}
			if share := float64(most) / float64(5000-without); math.Abs(share-0.48) > 0.04 { // 1/(1+1/2+1/3+1/4)
				t.Errorf("the most popular prefix has %.2f", share)
			}
		}
	}
}

func TestSpecWarmPairs(t *testing.T) {
	rows, _ := rowsOf(t, "requests: 100\narrivals: constant:1\nwarm: constant:2500ms\nlengths: {input: 'constant:200', output: 'constant:5'}\n", 1)
	first := map[uint64]int64{}
	warm := 0
	for i := range rows {
		r := &rows[i]
		at, seen := first[r.Blocks[0]]
		switch {
		case seen && (r.Category != trace.Duplicate || r.ArrivalNS-at != 2_500_000_000):
			t.Fatalf("row %d: a warm request that is %s, %d ns after the cold one", i, r.Category, r.ArrivalNS-at)
		case !seen && r.Category != trace.Cold:
			t.Fatalf("row %d: a cold request that is %s", i, r.Category)
		case seen:
			warm++
		}
		first[r.Blocks[0]] = r.ArrivalNS
	}
	if warm != 50 {
		t.Errorf("%d warm requests of 100", warm)
	}
}

func TestSpecSequential(t *testing.T) {
	rows, _ := rowsOf(t, "requests: 5\narrivals: sequential\nanswer: constant:2s\nlengths: {input: 'constant:20', output: 'constant:5'}\n", 1)
	for i := range rows {
		if i > 0 && (rows[i].Parents[0] != int64(i-1) || *rows[i].ThinkNS != 0) || rows[i].ArrivalNS != int64(i)*2e9 || rows[i].Session != nil {
			t.Errorf("row %d: %+v", i, rows[i])
		}
	}
}

func TestSpecMixAndDuration(t *testing.T) {
	rows, _ := rowsOf(t, `
duration: 5 min
arrivals: 20/s
lengths: {output: 7, max_tokens: 'constant:9'}
mix:
  - {share: 3, class: long, lengths: {input: 'uniform:1000..2000'}}
  - {class: short, lengths: {own: 'uniform:10..20', output: 'constant:8'}}
`, 1)
	long := 0
	for i := range rows {
		r := &rows[i]
		if *r.MaxTokens != 9 {
			t.Fatal("max_tokens of the top level is lost")
		}
		switch {
		case *r.Class == "long" && r.InputTokens >= 1000 && *r.OutputTokens == 7:
			long++
		case *r.Class == "short" && r.InputTokens <= 20 && *r.OutputTokens == 8:
		default:
			t.Fatalf("row %d is of no part", i)
		}
	}
	if n := float64(len(rows)); n < 5600 || n > 6400 || math.Abs(float64(long)/n-0.75) > 0.03 {
		t.Errorf("%d rows, %d of them long", len(rows), long)
	}
	if last := time.Duration(rows[len(rows)-1].ArrivalNS); last >= 5*time.Minute || last < 299*time.Second {
		t.Errorf("the last request arrives at %v", last)
	}
}

func TestSpecSeeds(t *testing.T) {
	const text = "requests: 200\narrivals: poisson:5\nlengths: {input: 'uniform:10..500', output: 'uniform:1..50'}\n"
	digest := func(seed uint64) string {
		rows, _ := rowsOf(t, text, seed)
		d := trace.NewDigest()
		d.Add(rows)
		return d.Sum()
	}
	if digest(1) == digest(2) {
		t.Error("the seed does not select the workload")
	}
	const golden = "sha256:f1911512d60fa3584eb3eba76cfcf39a340a40a23e1177232623fc99c3060e04"
	if got := digest(1); got != golden {
		t.Errorf("the rows of seed 1 are %s, and were %s", got, golden)
	}
}

func TestBadSpecs(t *testing.T) {
	const good = "requests: 10\narrivals: poisson:5\nlengths: {input: 'uniform:10..500', output: 'uniform:1..50'}\n"
	rowsOf(t, good, 1)
	for text, want := range map[string]string{
		"":                                       "empty",
		"requests: [":                            "bad.yaml:1:",
		"requests: ten":                          "bad.yaml:1:11:",
		good + "surprise: 1\n":                   "bad.yaml:4:1:",
		good + "requests: 3\n":                   "bad.yaml:4:1:",
		strings.Replace(good, "10\n", "0\n", 1):  "give requests or duration",
		strings.Replace(good, "10\n", "-1\n", 1): "bad.yaml:1:11: requests: ",
		strings.Replace(good, "10\n", "1.5\n", 1):                                 `bad.yaml:1:11: requests: "1.5" is not a whole number of 0 or more: write 500, 10k or 1M`,
		strings.Replace(good, "10\n", "1"+strings.Repeat("0", 30)+"\n", 1):        "bad.yaml:1:11: requests: ",
		good + "duration: -90\n":                                                  "bad.yaml:4:11: duration: ",
		good + "duration: long\n":                                                 `bad.yaml:4:11: duration: "long" is not a duration: write 60s, 5min or 1h30m`,
		good + "---\n" + good:                                                     "more than one document",
		good + "mix: [{share: much}]\n":                                           "bad.yaml:4:15: want a number",
		good + "mix:\n- {}\n- lengths:\n    output: fish\n":                       "bad.yaml:7:5: mix[1].lengths.output: ",
		strings.Replace(good, "uniform:1..50", "fish", 1) + "mix: [{share: 1}]\n": "bad.yaml:3:37: mix[0].lengths.output: ",
		"requests: 9\narrivals: poisson:5\nlengths: &l {own: fish, output: 'constant:1'}\nmix: [{lengths: *l}]\n": "bad.yaml:3:14: mix[0].lengths.own: ",
		good + "prefix:\n  groups:\n  - share: 1\n":                                                               "bad.yaml:6:5: prefix.groups[0].depth: give the number of tokens",
		strings.Replace(good, "poisson:5", "fish", 1):                                                             "bad.yaml:2:1: arrivals: ",
		strings.Replace(good, "poisson:5", "", 1):                                                                 "arrivals: say how",
		strings.Replace(good, "uniform:10..500", "fish", 1):                                                       "lengths.input: ",
		strings.Replace(good, "uniform:1..50", "", 1):                                                             "give output",
		good + "block: 2\n":   "block: ",
		good + "warm: fish\n": "warm: ",
		good + "warm: constant:1s\nsessions: {turns: 'constant:2', think: constant:1s}\n":                   "warm: ",
		good + "sessions: {turns: 'constant:2', think: constant:1s}\n":                                      "give what a turn adds",
		good + "sessions: {turns: 'constant:2'}\n":                                                          "give turns and think",
		good + "prefix: {global: -1}\n":                                                                     "prefix.global: ",
		good + "prefix: {groups: [{share: 0, depth: 'constant:1'}]}\n":                                      "groups[0].share",
		good + "prefix: {groups: [{share: 0.6, depth: 'constant:1'}, {share: 0.6, depth: 'constant:1'}]}\n": "more than 1",
		good + "prefix: {groups: [{share: 1, depth: 'constant:1', popularity: 'zipf:x'}]}\n":                "popularity",
		good + "prefix: {groups: [{share: 1, depth: 'constant:1', turnover: x}]}\n":                         "turnover",
		good + "categories: {cold: 50}\n":                                                                   "add up to 100",
		good + "categories: {cold: 50, template: 50}\n":                                                     "template needs",
		good + "categories: {cold: 50, global: 50}\n":                                                       "bad.yaml:4:24: categories.global: it is called template now",
		good + "mix: [{share: -1}]\n":                                                                       "mix[0].share",
		strings.Replace(good, "poisson:5", "burst", 1) + "warm: constant:1s\n":                              "burst",
	} {
		_, err := spec.Parse("bad.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// What YAML can make of a short text is bounded: each of these took gigabytes of
// memory.
func TestBadSpecsAreCheap(t *testing.T) {
	const good = "requests: 10\narrivals: poisson:5\nlengths: &l {input: 'uniform:10..500', output: 'uniform:1..50'}\n"
	for what, c := range map[string]struct{ text, want string }{
		"long":     {good + strings.Repeat("# \n", spec.MaxText/3), "bytes"},
		"brackets": {"mix: " + strings.Repeat("[", 1e5) + strings.Repeat("]", 1e5), "nested lists or maps"},
		"braces":   {"mix: " + strings.Repeat("{a: ", 5e3), "nested lists or maps"},
		"dashes":   {strings.Repeat("- ", 5e3), "nested lists or maps"},
		"keys":     {"mix: " + strings.Repeat("{a: ", 1e5), "more than 8192 keys, items and anchors"},
		"items":    {strings.Repeat("- ", 3e5), "more than 8192 keys, items and anchors"},
		"aliases":  {good + "mix:\n" + strings.Repeat("- lengths: *l\n", 100), "bad.yaml:69:12: more than 64 aliases"},
		"laughs":   {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nmix: *c\n", "bad.yaml:"},
	} {
		if _, err := spec.Parse("bad.yaml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	rowsOf(t, good+"mix:\n"+strings.Repeat("- lengths: *l\n", 64), 1)
}

func FuzzParseSpec(f *testing.F) {
	f.Add([]byte("requests: 10\narrivals: poisson:5\nlengths: {input: 'uniform:10..500', output: 'uniform:1..50'}\n"))
	f.Add([]byte("requests: 9\narrivals: burst\nprefix: {global: 64}\ncategories: {cold: 10, global: 90}\nlengths: {own: 'constant:7', output: 'constant:1'}\n"))
	f.Add([]byte(agentSpec))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := spec.Parse("x", text)
		if err != nil {
			return
		}
		s.Requests = 20
		rows, err := s.Rows(1)
		if err != nil {
			t.Fatal(err)
		}
		batch := make([]trace.Request, 20)
		rows.Read(batch)
	})
}
