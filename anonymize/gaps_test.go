package anonymize_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/block"
)

// said is an entry of one message with the counts of a source; below 0 is none.
func said(message, reply trace.Text, input, output int32) trace.Entry {
	e := trace.Entry{Time: at(0), Kind: "chat", Messages: []trace.Message{{Role: trace.User, Content: message}}, Reply: &reply}
	if input >= 0 {
		e.InputTokens = &input
	}
	if output >= 0 {
		e.OutputTokens = &output
	}
	return e
}

// wantGaps imports one entry.
func wantGaps(t *testing.T, name string, e trace.Entry, input, output int32, blocks bool, gaps [2]anonymize.Gaps) anonymize.Card {
	t.Helper()
	p := policy(t)
	p.Lengths = anonymize.LengthsUsage
	rows, card := run(t, p, []trace.Entry{e})
	r := rows[0]
	want := 0
	if blocks {
		want = block.Count(int(input), 16)
	}
	if r.InputTokens != input || *r.OutputTokens != output || len(r.Blocks) != want || blocks != (r.OutputBlocks != nil) {
		t.Errorf("%s: %d and %d tokens, %d blocks and %d of the output; want %d and %d, %d blocks",
			name, r.InputTokens, *r.OutputTokens, len(r.Blocks), len(r.OutputBlocks), input, output, want)
	}
	if got := [2]anonymize.Gaps{card.Totals.InputGaps, card.Totals.OutputGaps}; got != gaps {
		t.Errorf("%s: %+v, want %+v", name, got, gaps)
	}
	return card
}

// Where the text is not what was sent, the lengths are those of the source.
func TestLengthsOfRedactedText(t *testing.T) {
	prose, answer := text("prose", 50), text("answer", 10)
	marker, blank := trace.NewText("[REDACTED]"), trace.NewText(" \n")
	rows, _ := run(t, policy(t), []trace.Entry{said(prose, answer, -1, -1)})
	n, out := rows[0].InputTokens, *rows[0].OutputTokens
	none := anonymize.Gaps{}

	// The source's count stands, with the blocks of the text fitted to it.
	wantGaps(t, "no usage", said(prose, answer, -1, out), n, out, true, [2]anonymize.Gaps{})
	for _, usage := range []int32{1, n / 2, n - 1, n, n + 20} {
		wantGaps(t, fmt.Sprint("usage ", usage), said(prose, answer, usage, out), usage, out, true, [2]anonymize.Gaps{})
	}
	wantGaps(t, "reasoning", func() trace.Entry {
		e := said(prose, answer, n, 100*out)
		e.Reasoning = trace.Ptr(99 * out)
		return e
	}(), n, 100*out, true, [2]anonymize.Gaps{})

	card := wantGaps(t, "marker", said(marker, marker, 5000, 200), 5000, 200, false, [2]anonymize.Gaps{{Marker: 1}, {Marker: 1}})
	if card.Tokenizer != "" || card.Lengths == "exact" || len(card.Totals.Models) != 0 {
		t.Errorf("nothing was counted: %q %q %v", card.Tokenizer, card.Lengths, card.Totals.Models)
	}
	wantGaps(t, "empty", said(blank, blank, 5000, 200), 5000, 200, false, [2]anonymize.Gaps{{Empty: 1}, {Empty: 1}})
	long := text("answer", 100)
	rows, _ = run(t, policy(t), []trace.Entry{said(prose, long, -1, -1)})
	longOut := *rows[0].OutputTokens
	wantGaps(t, "almost short", said(prose, long, 2*n+64, 2*longOut+64), 2*n+64, 2*longOut+64, true, [2]anonymize.Gaps{})
	card = wantGaps(t, "short", said(prose, long, 2*n+65, 2*longOut+65), 2*n+65, 2*longOut+65, false, [2]anonymize.Gaps{{Short: 1}, {Short: 1}})
	if card.Lengths == "exact" || len(card.Totals.Models) != 0 {
		t.Errorf("%q %v", card.Lengths, card.Totals.Models)
	}

	// One side alone.
	card = wantGaps(t, "prompt", said(marker, answer, 5000, -1), 5000, out, false, [2]anonymize.Gaps{{Marker: 1}, none})
	if card.Tokenizer == "" {
		t.Error("the answer was counted by a tokenizer")
	}
	only, card := run(t, policy(t), []trace.Entry{said(prose, marker, n, 200)})
	if r := only[0]; r.InputTokens != n || *r.OutputTokens != 200 || len(r.Blocks) == 0 || r.OutputBlocks != nil || card.Totals.OutputGaps.Marker != 1 {
		t.Errorf("%+v", r)
	}

	only, card = run(t, policy(t), []trace.Entry{said(prose, long, n, 2*longOut+65)})
	if r := only[0]; *r.OutputTokens != 2*longOut+65 || len(r.Blocks) == 0 || r.OutputBlocks != nil || card.Totals.OutputGaps.Short != 1 {
		t.Errorf("%+v", r)
	}

	// What nothing counts is not made up.
	only, card = run(t, policy(t), []trace.Entry{said(prose, marker, n, -1)})
	if r := only[0]; r.OutputTokens != nil || r.OutputBlocks != nil || card.Totals.UnknownOutputs != 1 {
		t.Errorf("%d %+v", card.Totals.UnknownOutputs, r)
	}
}

// One redacted message among others is enough, since from there on prompts look
// alike that were not. A hash tells which message it was; one that a tool returned is no
// redaction.
func TestOneRedactedMessage(t *testing.T) {
	prose, hash := text("prose", 50), trace.NewText(strings.Repeat("0a", 20))
	p := policy(t)
	p.Lengths = anonymize.LengthsUsage
	for _, c := range []struct {
		role trace.Role
		text trace.Text
		want int64
		part int64 // without a count
	}{{trace.System, trace.NewText("<redacted>"), 1, 1}, {trace.Tool, trace.NewText("[REDACTED]"), 1, 1}, {trace.User, hash, 0, 1}, {trace.User, trace.NewText("***"), 1, 1}, {trace.Tool, hash, 0, 0}} {
		e := said(prose, prose, 1000, 10)
		e.Messages = append(e.Messages, trace.Message{Role: c.role, Content: c.text}, trace.Message{Role: trace.User, Content: prose})
		rows, card := run(t, p, []trace.Entry{e})
		if card.Totals.InputGaps.Marker != c.want || rows[0].InputTokens != 1000 || (len(rows[0].Blocks) == 0) != (c.want == 1) {
			t.Errorf("%v: %d tokens, %d blocks, %+v", c.role, rows[0].InputTokens, len(rows[0].Blocks), card.Totals.InputGaps)
		}
		e.InputTokens = nil
		rows, card = run(t, p, []trace.Entry{e})
		if card.Totals.PartlyRedacted != c.part || len(rows[0].Blocks) == 0 {
			t.Errorf("%v without a count: %d, %d blocks", c.role, card.Totals.PartlyRedacted, len(rows[0].Blocks))
		}
	}
	calls := said(trace.Text{}, prose, 1000, 10)
	calls.Messages[0].Calls = text("call", 100)
	if _, card := run(t, p, []trace.Entry{calls}); card.Totals.InputGaps.Total() != 0 {
		t.Errorf("a call of a tool is text: %+v", card.Totals.InputGaps)
	}
}

// A length that an operator mapped is the length, whatever else is asked for.
func TestMappedLength(t *testing.T) {
	prose := text("prose", 50)
	rows, _ := run(t, policy(t), []trace.Entry{said(prose, prose, -1, 10)})
	plain := rows[0]
	n := plain.InputTokens
	for _, lengths := range []string{anonymize.LengthsUsage, anonymize.LengthsText} {
		for _, input := range []int32{n, n + 2, n - 2, n - n%16, n + 16, n - 16, 2 * n, 1} {
			e := said(prose, prose, input, 10)
			e.InputGiven = true
			p := policy(t)
			p.Lengths = lengths
			rows, card := run(t, p, []trace.Entry{e})
			r := rows[0]
			if r.InputTokens != input || card.Totals.InputGaps.Total() != 0 || len(r.Blocks) != block.Count(int(input), 16) {
				t.Errorf("mapped %d: %d tokens, %d blocks, %+v", input, r.InputTokens, len(r.Blocks), card.Totals.InputGaps)
			}
			if m := card.Totals.Models; len(m) != 1 || m[0].Counted != int64(n) || m[0].Source != int64(input) {
				t.Errorf("mapped %d: %+v", input, m)
			}
		}
	}
	e := said(prose, prose, -1, 10)
	e.InputGiven = true // of a record that lacks the field
	if rows, _ := run(t, policy(t), []trace.Entry{e}); rows[0].InputTokens != n {
		t.Errorf("%d tokens", rows[0].InputTokens)
	}
}

// Prompts without blocks leave the others as they would be without them.
func TestGapsAmongOthers(t *testing.T) {
	src := chat("history", "u", 0, 6, 10)
	p := policy(t)
	p.Workers = 1
	want, _ := run(t, p, src)
	var mixed []trace.Entry
	for i := range src {
		short := src[i]
		short.InputTokens, short.Messages = trace.Ptr(int32(1<<20)), slices.Concat(short.Messages, []trace.Message{{Role: trace.User, Content: text("else", 5)}})
		marker := said(trace.NewText("***"), trace.NewText("***"), 700, 7)
		short.Time, marker.Time = src[i].Time, src[i].Time
		mixed = append(mixed, marker, short, src[i])
	}
	got, card := run(t, p, mixed)
	if card.Totals.InputGaps != (anonymize.Gaps{Marker: 6, Short: 6}) {
		t.Fatalf("%+v", card.Totals.InputGaps)
	}
	got = slices.DeleteFunc(got, func(r trace.Request) bool { return len(r.Blocks) == 0 })
	if len(got) != len(want) {
		t.Fatalf("%d rows with blocks, want %d", len(got), len(want))
	}
	for i := range want {
		if !slices.Equal(got[i].Blocks, want[i].Blocks) || !slices.Equal(got[i].OutputBlocks, want[i].OutputBlocks) {
			t.Errorf("row %d has other blocks", i)
		}
	}
}

// What stands in the text's place is no prompt that could part from others.
func TestNoBreakersOfGaps(t *testing.T) {
	src := dated(20, "m")
	for i := range src {
		src[i].InputTokens = trace.Ptr(int32(1 << 20))
	}
	_, card := run(t, policy(t), src)
	if b := card.Breakers; b != nil && len(b.Notes()) > 0 || card.Totals.InputGaps.Short != int64(len(src)) {
		t.Errorf("%v of %+v", b.Notes(), card.Totals.InputGaps)
	}
}
