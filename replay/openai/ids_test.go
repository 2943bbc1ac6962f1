package openai

import (
	"slices"
	"strings"
	"testing"
)

// Token ids are kept with the text of choice 0, in vLLM's streams of both APIs,
// and only as far as they are ids.
func TestTokenIDsAreKept(t *testing.T) {
	read := func(limit int, stream ...string) Text {
		all := "data: " + strings.Join(stream, "\n\ndata: ") + "\n\n"
		return collect(NewScanner(strings.NewReader(all), noClock, 0), NewCollector(limit)).Text
	}
	completion := []string{`{"choices":[{"index":0,"text":"a","token_ids":[5],"prompt_token_ids":[1,2]}]}`, `{"choices":[{"index":1,"text":"z","token_ids":[9]}]}`,
		`{"choices":[{"index":0,"text":"bc","token_ids":[6, 7]}]}`, `{"choices":[{"index":0,"text":"","token_ids":null}]}`}
	if got := read(1000, completion...); string(got.Content) != "abc" || !slices.Equal(got.IDs, []uint32{5, 6, 7}) {
		t.Errorf("%q, ids %v", got.Content, got.IDs)
	}
	if got := read(1000, `{"choices":[{"index":0,"delta":{"content":"a"},"token_ids":[5]}]}`); !slices.Equal(got.IDs, []uint32{5}) {
		t.Errorf("of a chat: %v", got.IDs)
	}
	if got := read(1000, `{"choices":[{"index":0,"text":"a","token_ids":[5,-1,4]}]}`, `{"choices":[{"index":0,"text":"a","token_ids":[4294967296]}]}`); len(got.IDs) != 1 {
		t.Errorf("no ids: %v", got.IDs)
	}
	if got := read(6, completion...); got.size() > 6 || string(got.Content) != "ab" && string(got.Content) != "a" {
		t.Errorf("over the limit: %+v", got)
	}
	if got := read(0, completion...); got.IDs != nil {
		t.Errorf("kept without being asked: %v", got.IDs)
	}
}
