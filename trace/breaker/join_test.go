package breaker

import (
	"reflect"
	"testing"
)

// What several parts of a log show adds up; a place that two of them show is one.
func TestJoin(t *testing.T) {
	text := func(s Set) []byte {
		s.Schema = schema
		out, err := s.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return []byte(out)
	}
	at := func(message int, from, to, width, requests, lost int64) Breaker {
		return Breaker{Model: "m", Message: message, Role: "system", From: from, To: to, Width: width, Requests: requests, Lost: lost}
	}
	first := Set{Requests: 100, PromptTokens: 9000, Searched: 8000, DurationS: 60, LostTokens: 700, Found: 2, List: []Breaker{at(0, 40, 44, 3, 20, 500), at(1, 900, 900, 2, 9, 200)}}
	second := Set{Requests: 50, PromptTokens: 5000, Searched: 5000, DurationS: 90, LostTokens: 1300, Found: 12, List: []Breaker{at(0, 300, 310, 4, 6, 900), at(0, 43, 47, 5, 30, 400)}}
	got := Join(Join(Join(nil, text(first)), []byte(`{"schema":"breakers/9"}`)), text(second))
	want := &Set{Schema: schema, Requests: 150, PromptTokens: 14000, Searched: 13000, DurationS: 90, LostTokens: 2000, Found: 12,
		List: []Breaker{at(0, 40, 47, 5, 50, 900), at(0, 300, 310, 4, 6, 900), at(1, 900, 900, 2, 9, 200)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("joined %+v\nwant   %+v", got, want)
	}
	if all := Join(nil, nil); all != nil {
		t.Errorf("of nothing: %+v", all)
	}
	for i := range 30 { // no more are listed than of one part, and what JSON has is read again
		part := Set{Requests: 10, PromptTokens: 1000, LostTokens: 10, Found: 1, List: []Breaker{at(2, int64(100*i), int64(100*i), 1, 5, 10)}}
		got = Join(got, text(part))
	}
	if len(got.List) != maxListed || !got.valid() || got.LostTokens != 2300 {
		t.Errorf("joined %+v", got)
	}
}
