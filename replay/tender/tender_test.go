package tender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"reprise/replay/internal/resulttest"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/replay/scenario"
	"reprise/trace"
	"reprise/trace/textpage"
)

const (
	contractText = "name: chat\nclauses: [max ttft <= 1s, error_rate <= 1%]\n"
	rulesText    = "name: ours\nversion: ours-1\nrules:\n  speed: {is: 1}\nlimits:\n  errors: 5%\n"
	specText     = "requests: 120\n"
)

// made are the rows that a seed makes in these tests.
func made(seed uint64) (rows []trace.Request) {
	for i := range int64(120) {
		rows = append(rows, trace.Request{ArrivalNS: i * 1e9, InputTokens: 100 + int32(uint64(i)*seed%7), OutputTokens: 3})
	}
	return rows
}

// A desk is a procurement with a run that keeps to it.
type desk struct {
	c       Case
	results []result.Result
}

func newDesk(t *testing.T, rules bool) *desk {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) []byte {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []byte(text)
	}
	seed := NewSeed()
	p := &Pack{Name: "a tender", Workload: Bind("w.yaml", write("w.yaml", specText)), Contract: Bind("c.yaml", write("c.yaml", contractText)), System: []string{"gpu", "gpus"}, Commits: seed.Commitment()}
	sum := trace.NewDigest()
	sum.Add(made(seed.Seed))
	p.Digest = sum.Sum()
	if rules {
		p.Rules = Bind("r.yaml", write("r.yaml", rulesText))
	}
	p, err := ParsePack("p.yaml", p.Text())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{}
	for i, row := range made(seed.Seed) {
		r := resulttest.Answer(int64(i), int64(i)*1000, 0, 20+int64(i)%9, 40, 60)
		r.WantInput, r.WantOutput, r.Input, r.ArrivalNS = row.InputTokens, row.OutputTokens, trace.Ptr(row.InputTokens), trace.Ptr(row.ArrivalNS)
		d.results = append(d.results, r)
	}
	d.c = Case{Pack: p, Dir: dir, Seed: seed,
		Workload: func(seed uint64) (trace.Reader[trace.Request], []byte, error) {
			return &trace.SliceReader[trace.Request]{Rows: made(seed)}, []byte(specText), nil
		},
		Run: result.Run{Source: result.Source{Workload: p.Digest}, Environment: &result.Environment{Deployment: &result.Deployment{GPU: "H100", GPUs: 8}}}}
	d.c.Results = func() trace.Reader[result.Result] { return &trace.SliceReader[result.Result]{Rows: d.results} }
	d.c.Summarise = func(o report.Options) (report.Summary, error) {
		return report.Summarise(d.c.Run, d.c.Results(), o)
	}
	if rules {
		s, err := scenario.Find(filepath.Join(dir, "r.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		d.c.Run.Scenario = &result.Scenario{Name: "ours", Version: "ours-1", Rules: p.Rules.SHA256}
		if err := s.Stamp(&d.c.Run, d.c.Results()); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// submit makes the submission of the run as it is.
func (d *desk) submit(t *testing.T) {
	t.Helper()
	v := d.verify(t)
	s, err := v.Submit(d.c.Pack)
	if err != nil {
		t.Fatal(err)
	}
	d.c.Submission = s
}

func (d *desk) verify(t *testing.T) *Verification {
	t.Helper()
	v, err := Verify(d.c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAnHonestSubmissionMatches(t *testing.T) {
	for _, rules := range []bool{false, true} {
		d := newDesk(t, rules)
		d.submit(t)
		v := d.verify(t)
		if !v.Matches || len(v.Findings) != 0 || v.Figures < 200 || v.Rows != 120 || !v.Contract.Holds {
			t.Errorf("rules %v: %+v", rules, v)
		}
	}
}

// Whatever is tampered with is named, and nothing else is.
func TestTamperingIsNamed(t *testing.T) {
	summary := func(d *desk, change func(map[string]any)) {
		var m map[string]any
		json.Unmarshal(d.c.Submission.Summary, &m)
		change(m)
		d.c.Submission.Summary, _ = json.Marshal(m)
	}
	file := func(d *desk, name, text string) { os.WriteFile(filepath.Join(d.c.Dir, name), []byte(text), 0o600) }
	for name, c := range map[string]struct {
		tamper func(d *desk)
		part   string // the only one, but for also
		also   string
		says   string
	}{
		"a percentile": {func(d *desk) {
			summary(d, func(m map[string]any) {
				m["latency"].(map[string]any)["from_due"].(map[string]any)["ttft"].(map[string]any)["p95_ms"] = 7
			})
		}, partFigure, "", "latency.from_due.ttft.p95_ms is 7 in the submission, and "},
		"a count": {func(d *desk) {
			summary(d, func(m map[string]any) { m["requests"].(map[string]any)["succeeded"] = 121 })
		}, partFigure, "", "requests.succeeded is 121 in the submission, and 120 by the results"},
		"a figure left out":   {func(d *desk) { summary(d, func(m map[string]any) { delete(m, "throughput") }) }, partFigure, "", "throughput is missing in the submission"},
		"a figure of its own": {func(d *desk) { summary(d, func(m map[string]any) { m["bonus"] = 1 }) }, partFigure, "", "bonus is 1 in the submission, and the results have no such figure"},
		"the verdict of a clause": {func(d *desk) {
			summary(d, func(m map[string]any) {
				m["contract"].(map[string]any)["clauses"].([]any)[0].(map[string]any)["outcome"] = "fails"
			})
		}, partFigure, "", "contract.clauses.0.outcome"},
		"a clause left out": {func(d *desk) {
			summary(d, func(m map[string]any) {
				m["contract"].(map[string]any)["clauses"] = m["contract"].(map[string]any)["clauses"].([]any)[:1]
			})
		}, partFigure, "", "contract.clauses.1 is missing"},
		"a faster result": {func(d *desk) {
			r := &d.results[8]
			at := *r.FirstTokenNS - 5e6
			r.FirstTokenNS, r.FirstEventNS, r.GapsNS = &at, &at, []int64{r.GapsNS[0] + 5e6, r.GapsNS[1]}
		}, partResults, partFigure, "they are not those that were submitted"},
		"a result left out":         {func(d *desk) { d.results = d.results[:119] }, partResults, partFigure, "1 row of the workload is not in the results"},
		"a shorter prompt":          {func(d *desk) { d.results[3].WantInput = 1 }, partResults, partFigure, "row 3: it asks for 1 and 3 tokens"},
		"a later arrival":           {func(d *desk) { d.results[3].ArrivalNS = trace.Ptr(int64(5)) }, partResults, partFigure, "row 3: it arrives at 5 ns, in the workload at 3000000000 ns"},
		"a row of no workload":      {func(d *desk) { d.results[119].RowID = 500 }, partResults, partFigure, "row 500: the workload has 120 rows"},
		"the digest of the results": {func(d *desk) { d.c.Submission.Results = strings.Repeat("0", 64) }, partResults, "", "the submission has 000"},
		"the contract":              {func(d *desk) { file(d, "c.yaml", "clauses: [max ttft <= 9s, error_rate <= 1%]\n") }, partFile, partFigure, "c.yaml, the contract, is not the file that the pack binds"},
		"the specification":         {func(d *desk) { file(d, "w.yaml", "requests: 1\n") }, partFile, "", "w.yaml, the specification of the workload, is not"},
		"the rules":                 {func(d *desk) { file(d, "r.yaml", strings.Replace(rulesText, "5%", "50%", 1)) }, partFile, "", "r.yaml, the rules, is not"},
		"the stamp":                 {func(d *desk) { d.c.Run.Scenario.Answers = 7 }, partRules, partFigure, "the stamp of the run is not what its results give"},
		"a broken rule": {func(d *desk) {
			d.c.Run.Scenario.Broken = []result.BrokenRule{{Rule: "speed", Given: "2", Want: "1"}}
		}, partRules, partFigure, "broken: speed: 2, want 1"},
		"other rules":      {func(d *desk) { d.c.Run.Scenario.Rules = strings.Repeat("1", 64) }, partRules, partFigure, "held to other rules"},
		"no rules":         {func(d *desk) { d.c.Run.Scenario = nil }, partRules, partFigure, "held to no rules: replay --scenario r.yaml"},
		"another seed":     {func(d *desk) { d.c.Seed.Seed++ }, partSeed, partWorkload, "the seed is not the one"},
		"another nonce":    {func(d *desk) { d.c.Seed.Nonce = strings.Repeat("0", 64) }, partSeed, "", "the seed is not the one"},
		"another workload": {func(d *desk) { d.c.Run.Workload = "sha256:" + strings.Repeat("2", 64) }, partWorkload, partFigure, "the run was made with the workload sha256:222"},
		"a silent system":  {func(d *desk) { d.c.Run.Environment = nil }, partSystem, partFigure, "the run does not say gpu of the system"},
		"half of a system": {func(d *desk) { d.c.Run.Environment.Deployment.GPUs = 0 }, partSystem, partFigure, "the run does not say gpus of the system"},
		"another pack":     {func(d *desk) { d.c.Submission.Pack = strings.Repeat("3", 64) }, partPack, "", "the submission is to another pack"},
	} {
		d := newDesk(t, true)
		d.submit(t)
		c.tamper(d)
		v := d.verify(t)
		found := false
		for _, f := range v.Findings {
			found = found || f.Part == c.part && strings.Contains(f.Text, c.says)
			if f.Part != c.part && f.Part != c.also && !(name == "another seed" && f.Part == partResults) && !(name == "a result left out" && f.Part == partRules) {
				t.Errorf("%s: also %+v", name, f)
			}
		}
		if !found || v.Matches {
			t.Errorf("%s: %+v; want %s: %s", name, v.Findings, c.part, c.says)
		}
		for _, details := range []bool{false, true} {
			o := textpage.Options{Details: details}
			p := textpage.New(o)
			v.Write(p, o)
			var text bytes.Buffer
			p.WriteTo(&text)
			if lines := strings.Count(text.String(), "\n"); !strings.HasPrefix(text.String(), "NOT as the pack") || !details && lines > textpage.AnswerLines {
				t.Errorf("%s, %d lines:\n%s", name, lines, text.String())
			}
		}
	}
}

// A pack that lacks a file is said; it is no finding, since nothing can be judged.
func TestVerifyNeedsTheFiles(t *testing.T) {
	for name, want := range map[string]string{"c.yaml": "names c.yaml as its contract", "w.yaml": "names w.yaml as its specification", "r.yaml": "names r.yaml as its rules"} {
		d := newDesk(t, true)
		os.Remove(filepath.Join(d.c.Dir, name))
		if _, err := Verify(d.c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	d := newDesk(t, false)
	d.c.Submission = &Submission{Summary: []byte("{")}
	if _, err := Verify(d.c); err == nil || !strings.Contains(err.Error(), "not a JSON document") {
		t.Error(err)
	}
}

// What a pack and a seed write is read as they are.
func TestPacksAndSeedsComeBack(t *testing.T) {
	seed := NewSeed()
	if other := NewSeed(); seed == other || seed.Seed == other.Seed {
		t.Fatal("two seeds are the same")
	}
	back, err := parseSeed("s.yaml", seed.Text())
	if err != nil || back != seed || back.Commitment() != seed.Commitment() {
		t.Errorf("%+v, %v", back, err)
	}
	// The commitment by another way: printf 'pack-seed/1\n7\n00…\n' | sha256sum.
	if got := (Seed{7, strings.Repeat("0", 64)}).Commitment(); got != "4aad8643806848c87abe42cde0b36d484352eb88e5f194b59300b89680285a67" {
		t.Errorf("%s", got)
	}
	bound := Bound{"a/b c.yaml", strings.Repeat("a", 64)}
	for _, p := range []Pack{
		{Name: "a # b: é", Workload: bound, Digest: "sha256:" + strings.Repeat("b", 64), Contract: bound, Rules: bound, System: SystemFields(), Commits: strings.Repeat("c", 64)},
		{Workload: Bound{"chat", strings.Repeat("a", 64)}, BuiltIn: true, Digest: "sha256:" + strings.Repeat("b", 64), Contract: bound, Commits: strings.Repeat("c", 64)},
	} {
		back, err := ParsePack("p.yaml", p.Text())
		if err != nil {
			t.Fatal(err)
		}
		if p.SHA256 = back.SHA256; !reflect.DeepEqual(*back, p) || back.SHA256 != digest(p.Text()) {
			t.Errorf("%+v\n%+v", back, p)
		}
	}
}

func TestPackFaults(t *testing.T) {
	hex := strings.Repeat("a", 64)
	good := fmt.Sprintf("schema: pack/1\nworkload: {file: w.yaml, sha256: %s, digest: 'sha256:%s'}\ncontract: {file: c.yaml, sha256: %s}\nseed_commitment: %s\n", hex, hex, hex, hex)
	if _, err := ParsePack("p.yaml", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"pack/1", "pack/2", "p.yaml:1:9: schema: want pack/1"},
		{"schema: pack/1\n", "", "p.yaml:1:1: want schema"},
		{"w.yaml", "../w.yaml", "p.yaml:2:18: want the name of a file beside"},
		{"w.yaml", "/w.yaml", "p.yaml:2:18: want the name of a file beside"},
		{"file: w.yaml", "file: w.yaml, built_in: chat", "p.yaml:2:11: want file or built_in"},
		{"sha256:a", "sha1:a", "p.yaml:2:"},
		{"seed_commitment: a", "seed_commitment: A", "p.yaml:4:18: want a SHA-256"},
		{"contract: {file: c.yaml, ", "contract: {", "p.yaml:3:11: want file and sha256"},
		{"seed_commitment", "system: [gpu, colour]\nseed_commitment", "p.yaml:4:15: want one of gpu"},
		{"seed_commitment", "sed_commitment", "p.yaml:4:1: unknown key"},
	} {
		_, err := ParsePack("p.yaml", []byte(strings.Replace(good, c.from, c.to, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.to, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"schema: pack-seed/1\nseed: -1\nnonce: " + hex: "s.yaml:2:7: seed: want a whole number",
		"schema: pack-seed/1\nseed: 1":                 "s.yaml:1:1: want schema, seed and nonce",
		"schema: pack/1\nseed: 1\nnonce: " + hex:       "s.yaml:1:9: schema: want pack-seed/1",
	} {
		if _, err := parseSeed("s.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParsePack(f *testing.F) {
	p := Pack{Name: "n", Workload: Bind("w.yaml", nil), Digest: "sha256:" + digest(nil), Contract: Bind("c.yaml", nil), Commits: digest(nil)}
	f.Add(p.Text())
	f.Add(Seed{1, digest(nil)}.Text())
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := ParsePack("p.yaml", text); err == nil && (!Beside(p.Contract.File) || p.Digest == "" || p.Commits == "") {
			t.Fatalf("%+v", p)
		} else if err != nil && !strings.HasPrefix(err.Error(), "p.yaml:") {
			t.Fatal(err)
		}
		if s, err := parseSeed("p.yaml", text); err == nil && !hex256.MatchString(s.Nonce) {
			t.Fatalf("%+v", s)
		}
	})
}

// A document has no differences from itself, and one from itself with a value changed.
func FuzzDifferences(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}],"c":1.50}`), []byte(`{"a":[1],"d":{}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if out, _, err := differences(a, a); err == nil && len(out) > 0 {
			t.Fatalf("%+v", out)
		}
		ab, _, err := differences(a, b)
		ba, _, err2 := differences(b, a)
		if (err == nil) != (err2 == nil) || err == nil && (len(ab) == 0) != (len(ba) == 0) {
			t.Fatalf("%+v\n%+v", ab, ba)
		}
	})
}
