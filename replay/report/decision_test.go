package report

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/doc/pagetest"
)

// tried are two runs whose engine's flags differ.
func tried(t *testing.T) []Named {
	t.Helper()
	var out []Named
	for _, of := range []func() (result.Run, []result.Result, Options){smallRun, brokenRun} {
		s := formatted(t, of)
		out = append(out, Named{Name: "r" + string(rune('1'+len(out))) + ".parquet", Summary: s})
	}
	out[0].Summary.Verdict, out[0].Summary.Throughput = Verdict{Trustworthy: true}, out[1].Summary.Throughput
	env := fullEnvironment()
	env.Deployment.EngineFlags = "--max-num-seqs 512"
	out[1].Summary.Run.Environment = env
	return out
}

func decision(t *testing.T, runs []Named, d Decision) string {
	t.Helper()
	var b bytes.Buffer
	p, err := DecisionRecord(runs, d)
	if err := errors.Join(err, p.WriteMarkdown(&b)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A record says which settings were accepted and which not, what differs, what each
// costs, and why the tuning stopped.
func TestDecision(t *testing.T) {
	runs := tried(t)
	out := decision(t, runs, Decision{Why: "the <budget> is spent", PricePerGPUHour: 2, Digests: []string{"sha256:abc"}})
	perS := *runs[0].Summary.Throughput.OutputTokensPerS
	for _, want := range []string{
		"r1.parquet: accepted, and preferred\n", "r2.parquet: rejected, since it cannot be trusted", "| environment.deployment.engine_flags | --max-num-seqs 256 | --max-num-seqs 512 |",
		"| r1.parquet | " + doc.Number(16.0/3600/perS*1e6) + " per million output tokens at this load, 100 requests/s (8 GPUs, 2 each per hour)", "| r2.parquet | not known, since the run cannot be trusted", "the &lt;budget&gt; is spent", "sha256:abc",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if out := decision(t, runs, Decision{}); !strings.Contains(out, "Not given: the price") || !strings.Contains(out, "Not given.") {
		t.Errorf("what was not given is not said:\n%s", out)
	}
}

// The contract decides, and is the stopping rule.
func TestDecisionByContract(t *testing.T) {
	runs := tried(t)
	v := 5.0
	for i := range runs {
		runs[i].Summary.Verdict = Verdict{Trustworthy: true}
		runs[i].Summary.Contract = &ContractResult{Holds: i == 1, Judged: true, Clauses: []ClauseResult{
			{Clause: "p50 ttft <= 1s", Outcome: []string{Fails, Holds}[i], Measured: &v, Allowed: 1000, Unit: "ms"}}}
	}
	out := decision(t, runs, Decision{})
	for _, want := range []string{"Target: p50 ttft <= 1s", "r1.parquet: rejected: ", "r2.parquet: accepted, and preferred", "r2.parquet keeps to the contract, which is the stopping rule."} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	runs[1].Summary.Contract.Holds = false
	if out := decision(t, runs, Decision{}); !strings.Contains(out, "no run keeps to the contract") || strings.Contains(out, "accepted, and preferred") {
		t.Errorf("nothing is accepted:\n%s", out)
	}
	// A contract that cannot be judged says nothing against the setting.
	runs[0].Summary.Contract = &ContractResult{Clauses: []ClauseResult{{Clause: "p50 ttft <= 1s", Outcome: Unjudged, Why: "few requests"}}}
	if out := decision(t, runs, Decision{}); !strings.Contains(out, "r1.parquet: not judged: ") || strings.Contains(out, "r1.parquet: rejected") {
		t.Errorf("a contract that is not judged:\n%s", out)
	}
}

// Runs of one load on as many GPUs cost the same, which is no reason to prefer one; and
// a setting that is rejected has no cost beside those that are not.
func TestDecisionCost(t *testing.T) {
	runs := tried(t)
	for i := range runs {
		runs[i].Summary.Verdict = Verdict{Trustworthy: true}
	}
	const same = "Runs of the same load on the same GPUs cost the same, but for how long their last answers took: that does not say which setting is cheaper."
	if out := decision(t, runs, Decision{PricePerGPUHour: 2}); !strings.Contains(out, same) || !strings.Contains(out, "What a setting costs at the highest load that it can serve: reprise capacity.") {
		t.Errorf("two settings of one cost:\n%s", out)
	}
	v := 1500.0
	runs[1].Summary.Contract = &ContractResult{Judged: true, Clauses: []ClauseResult{{Clause: "p50 ttft <= 1s", Outcome: Fails, Measured: &v, Allowed: 1000, Unit: "ms"}}}
	if out := decision(t, runs, Decision{PricePerGPUHour: 2}); strings.Contains(out, same) || !strings.Contains(out,
		"| r2.parquet | fails the contract at this load: needs more GPUs |\n") {
		t.Errorf("one is rejected:\n%s", out)
	}
}

// The page says the same as the record.
func TestDecisionPage(t *testing.T) {
	runs := tried(t)
	p, err := DecisionRecord(runs, Decision{Why: "the budget is spent", PricePerGPUHour: 2})
	if err != nil {
		t.Fatal(err)
	}
	pagetest.FirstScreen(t, "decision", p, "r1.parquet is preferred: the most goodput", "r1.parquet: accepted, "+
		"and preferred", "r2.parquet: rejected, since it cannot be trusted: the run ended early", "more reasons "+
		"under Rationale", "engine flags\t--max-num-seqs 256\t--max-num-seqs 512")
}

// Of a long value the parts that differ are told, and of a short one all of it.
func TestDiffering(t *testing.T) {
	a := result.Run{Load: result.Load{Model: "m1"}, Simulation: result.Simulation{Simulated: `preset l4: 1 × {"block_size":16,"prefix_caching":true}, router round-robin, costs step=5.16ms,request=24ms`}}
	b := a
	b.Model, b.Simulated = "m2", strings.NewReplacer("true", "false", "5.16", "5.7").Replace(a.Simulated)
	rows, err := Differing(&a, &b)
	want := [][]string{{"model", "m1", "m2"}, {"simulated", "prefix_caching:true, step=5.16ms", "prefix_caching:false, step=5.7ms"}}
	if err != nil || !reflect.DeepEqual(rows, want) {
		t.Errorf("%q, %v, want %q", rows, err, want)
	}
	b = a
	a.PrefixCaching, b.PrefixCaching, b.Simulated = trace.Ptr(true), trace.Ptr(false), strings.Replace(a.Simulated, "true", "false", 1)
	rows, err = Differing(&a, &b) // which says it once
	if want := [][]string{{"prefix_caching", "true", "false"}}; err != nil || !reflect.DeepEqual(rows, want) {
		t.Errorf("%q, %v, want %q", rows, err, want)
	}
}

// What a comparison notes of each round is no setting: it stands with the provenance.
func TestDecisionNotes(t *testing.T) {
	runs := tried(t)
	runs[0].Summary.Run.Note, runs[1].Summary.Run.Note = "round 1 of 10, a", "round 1 of 10, b"
	out := decision(t, runs, Decision{})
	row := "| note | round 1 of 10, a | round 1 of 10, b |"
	set, from, _ := strings.Cut(out, "## Provenance")
	if strings.Contains(set, "round 1 of 10") || !strings.Contains(from, row) {
		t.Errorf("%q is not where it belongs in\n%s", row, out)
	}
}
