package audit

import (
	"encoding/json"
	"reflect"
	"testing"
)

// A result reads back as it was. Each figure is a row, unless a table of its own has it.
func TestResultWrites(t *testing.T) {
	r := Result{Schema: resultSchema, Version: "1", Kind: kindTrace, Tier: "partner", Digest: "sha256:00", FileSHA256: "11", Findings: []Finding{
		{Check: "a", Status: Pass, Why: "k < 3 & more", Figures: Figures{"share": 0.25, "found_in": []string{"x", "y"}}},
		{Check: "b", Status: Fail, Why: "because"}, {Check: "c", Status: Skipped, Why: "no source"}}}
	written, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(written, &back); err != nil {
		t.Fatal(err)
	}
	r.Findings[0].Figures, back.Findings[0].Figures = nil, nil
	if !reflect.DeepEqual(r, back) {
		t.Errorf("read back as %+v", back)
	}
	r.Findings[0].Figures = Figures{"share": 0.25, "found_in": []string{"x", "y"}, "sets": []setRisk{{}}}
	want := [][]string{{"a", "found in", "x, y"}, {"a", "share", "0.25"}}
	if got := r.figures(); !reflect.DeepEqual(got, want) {
		t.Errorf("the figures are %q", got)
	}
	if !r.Failed() || (&Result{Findings: []Finding{{Status: Inconclusive}, {Status: Skipped}}}).Failed() {
		t.Error("a result fails when a check failed, and only then")
	}
}

// Names are unique and every check says what it is about.
func TestChecks(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Checks() {
		if seen[c.Name] || c.Name == "" || len(c.About) < 20 || c.Run == nil {
			t.Errorf("check %q", c.Name)
		}
		seen[c.Name] = true
	}
	if _, err := Run(t.Context(), &Case{}, []string{"no such check"}); err == nil {
		t.Error("a check without a name was run")
	}
}
