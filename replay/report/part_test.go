package report

import (
	"slices"
	"strings"
	"testing"

	"reprise/replay/result"
	"reprise/trace"
)

func TestPartRows(t *testing.T) {
	var whole, facts factGroup
	if whole.part(nil); whole.Facts != nil {
		t.Errorf("the whole workload: %q", whole.Facts)
	}
	p := &result.Selection{Rows: 19, OfRows: trace.Ptr[int64](12031), FromNS: 6e11, MaxRequests: 19,
		Sample: &result.Sample{Sessions: 142, OfSessions: 1420},
		Loop:   &result.Rounds{Rounds: 3, Same: true}, Prime: &result.Primed{Prompts: 65, Tokens: 1032677, CapacityTokens: 1000000, Failed: 2}}
	var all []string
	facts.part(p)
	for _, f := range facts.Facts {
		all = append(all, f.Label+" | "+f.Value+" | "+f.Note)
	}
	want := "Part | 19 rows | of 12,031 rows, the window from 10m0s to the end, 142 of 1,420 sessions, the first of them, 3 rounds of the same prompts\n" +
		"Primed | 65 prompts | 1,032,677 tokens before the run, of a cache of 1,000,000; 2 failed"
	if got := strings.Join(all, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A cache that was primed in part is no secret.
func TestPrimingFailedIsSaid(t *testing.T) {
	for failed := range int64(2) {
		run := result.Run{Schema: result.Schema, Selection: &result.Selection{Prime: &result.Primed{Prompts: 3, Failed: failed}}}
		s, err := Summarise(run, &trace.SliceReader[result.Result]{}, Options{Limits: DefaultLimits()})
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(s.Warnings, func(w Warning) bool { return w.Code == warnPrime })
		if said != (failed > 0) {
			t.Errorf("%d failed: %+v", failed, s.Warnings)
		}
	}
}
