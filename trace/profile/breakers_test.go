package profile_test

import (
	"slices"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/breaker"
	"reprise/trace/profile"
)

// Breakers are on the page when import found some, and only then.
func TestPageBreakers(t *testing.T) {
	found := breaker.Set{Schema: "breakers/1", Requests: 400, PromptTokens: 100_000, Searched: 90_000, LostTokens: 25_000, Found: 12, List: []breaker.Breaker{
		{Model: "large", Role: trace.System.String(), From: 7, To: 9, Width: 6, Requests: 300, Lost: 24_000},
		{Role: trace.User.String(), Message: 2, From: 900, To: 900, Width: 200, Requests: 20, Lost: 500},
	}}
	s := profile.Summary{Breakers: &breaker.Summary{Set: found, LostShare: trace.Ptr(0.25), LostPerDay: trace.Ptr(2e9)}}
	text := said(s, "Prefix breakers")
	for _, want := range []string{
		"A prefix cache loses 25,000 of 100,000 prompt tokens, 25 % or 2.00 G a day at this rate,",
		"Most is lost at token 7–9, in message 0 (system): a few tokens differ",
		"These are the 2 of 12 places that lose most",
		"the later one pays only when",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q: %s", want, text)
		}
	}
	p := profile.Page(s, nil)
	want := [][]string{{"7–9", "0", "system", "large", "300", "6", "24,000", "24 %"}, {"900", "2", "user", "", "20", "200", "500", "0.5 %"}}
	if got := p.Sections[0].Tables[0].Rows; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the rows are %q; want %q", got, want)
	}
	if html := written(t, p); !strings.Contains(html, "had the prompts not differed there") {
		t.Error("a lost token is not defined")
	}
	for _, none := range []*breaker.Summary{nil, {}} {
		if got := titles(profile.Page(profile.Summary{Breakers: none}, nil)); len(got) > 0 {
			t.Errorf("without breakers: %q", got)
		}
	}
}
