package profile_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"reprise/trace"
	"reprise/trace/profile"
	"reprise/trace/textpage"
)

// A trace with everything in it still fits a terminal.
func TestTextWidth(t *testing.T) {
	s := shapes["everything"]
	rows := generate(111, 2000, s)
	annotate(rows, s.block, profile.Options{})
	for i := range rows {
		r := &rows[i]
		r.ArrivalNS = int64(i/20) * 300e9
		r.ReasoningTokens, r.CachedTokens, r.ImageTokens = trace.Ptr(int32(1e9)), trace.Ptr(int32(i)), trace.Ptr(int32(i))
		r.Images, r.MaxTokens = trace.Ptr(int32(3)), trace.Ptr(int32(1e9))
		r.Model, r.User = "organisation/a-model-of-a-long-name-"+strconv.Itoa(i%3), trace.Ptr(int64(1e18)+int64(i%30))
		r.ThinkNS, r.ToolNS, r.TTFTNS, r.E2ENS = trace.Ptr(int64(1e15)), trace.Ptr(int64(5)), trace.Ptr(int64(1e7)), trace.Ptr(int64(1e9))
	}
	meta := trace.Meta{BlockSize: s.block, Sessions: "source", SourceFormat: "generated", Tokenizer: "bytes", Tier: "internal"}
	opts := profile.ProfilerOptions{ReuseOptions: profile.ReuseOptions{ExactBlocks: 500, KVBytesPerToken: profile.MaxKVBytesPerToken},
		Replicas: []int{2, 64}, ReplicaBlocks: 1e9}
	sum := profileOf(t, rows, meta, opts).Summary()
	var b strings.Builder
	if err := profile.Page(sum, nil).WriteText(&b, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{60, 80, 100} {
		var answer strings.Builder
		if err := profile.Page(sum, nil).WriteText(&answer, textpage.Options{Width: width, Rest: "All tables: --details."}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(answer.String(), "\n"); n > textpage.AnswerLines {
			t.Errorf("an answer of %d lines at %d columns:\n%s", n, width, answer.String())
		}
		for line := range strings.Lines(answer.String()) {
			if utf8.RuneCountInString(line) > width+1 {
				t.Errorf("wider than %d columns: %s", width, line)
			}
		}
	}
	for i, line := range strings.Split(b.String(), "\n") {
		if n := utf8.RuneCountInString(line); n > textpage.MaxWidth {
			t.Errorf("line %d has %d columns: %s", i+1, n, line)
		}
		if strings.ContainsAny(line, "\x1b\t") || strings.TrimRight(line, " ") != line {
			t.Errorf("line %d has colours, tabs or blanks at its end: %q", i+1, line)
		}
	}
	for _, want := range []string{"reasoning", "max_tokens", "TTFT", "generated KV too", "requests, by whole ticks",
		"Warning: ", "generated", "internal", "bytes", "one block in", "By model, of 3", "organisation/a-model-of",
		"10 others", "Top prefixes", "Working set", "GiB each", "prefix-weighted", "of the hit tokens of one cache",
		"Where reuse is lost", "one LRU cache of 2,000,000,000 blocks", "recorded cached tokens", "points more"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text lacks %q", want)
		}
	}
}

// What has nothing to say is not printed: one model, no users, no routing, and
// what the server's blocks cost is in another table.
func TestTextSaysNoMoreThanThereIs(t *testing.T) {
	rows := generate(112, 300, shape{block: 4, system: true})
	for i := range rows {
		rows[i].Model = "one"
	}
	var b strings.Builder
	if err := profile.Page(profileOf(t, rows, trace.Meta{BlockSize: 4}, profile.ProfilerOptions{}).Summary(), nil).WriteText(&b, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	for _, not := range []string{"By model", "Routing over replicas", "GiB", "-0.00"} {
		if strings.Contains(b.String(), not) {
			t.Errorf("the text has %q", not)
		}
	}
}
