package anonymize_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/block"
)

// talks are sessions that share a system prompt.
func talks(sessions, turns int) (all []trace.Entry) {
	for s := range sessions {
		all = append(all, chat(fmt.Sprint("topic ", s), "u", 20*s, turns, len(all))...)
	}
	for i := range all {
		all[i].Kind, all[i].Model, all[i].Parents = "chat", trace.NewText("m"), nil
	}
	slices.SortStableFunc(all, func(a, b trace.Entry) int { return a.Time.Compare(b.Time) })
	return all
}

// failed is the error of an import.
func failed(t *testing.T, p anonymize.Policy, src []trace.Entry) error {
	t.Helper()
	e := entries(slices.Clone(src))
	_, err := anonymize.Run(t.Context(), p, &e, new(keep))
	return err
}

// hitRatio is by token, of a cache without bounds.
func hitRatio(rows []trace.Request, size int) float64 {
	known := map[uint64]bool{}
	hit, all := 0, 0
	for _, r := range rows {
		n := 0
		for n < len(r.Blocks) && known[r.Blocks[n]] {
			n++
		}
		for _, b := range r.Blocks {
			known[b] = true
		}
		hit, all = hit+block.Known(n, int(r.InputTokens), size), all+int(r.InputTokens)
	}
	return float64(hit) / float64(all)
}

// A server with another tokenizer and a template counts more or less than the text: the
// lengths are its counts, and reuse is that of the text.
func TestUsageIsTheLength(t *testing.T) {
	plain := talks(12, 5)
	p := policy(t)
	p.Workers = 1
	rows, _ := run(t, p, plain)
	want := hitRatio(rows, 16)
	for _, c := range []struct {
		name  string
		usage func(counted, messages int32) int32
		least float64 // how near the hit ratio is
	}{
		{"the same", func(n, _ int32) int32 { return n }, 1e-9},
		{"a template", func(n, m int32) int32 { return n + 3 + 4*m }, 0.06},
		{"a tokenizer that counts more", func(n, _ int32) int32 { return n + n*19/100 }, 0.03},
		{"a tokenizer that counts less", func(n, _ int32) int32 { return n - n*15/100 }, 0.03},
		{"both", func(n, m int32) int32 { return n + n/8 + 3 + 4*m }, 0.06},
	} {
		src := slices.Clone(plain)
		var total int64
		for i := range src {
			n := c.usage(rows[i].InputTokens, int32(len(src[i].Messages)))
			src[i].InputTokens = &n
			total += int64(n)
		}
		got, card := run(t, p, src)
		if card.Totals.InputTokens != total {
			t.Errorf("%s: %d input tokens, want %d", c.name, card.Totals.InputTokens, total)
		}
		for i, r := range got {
			if len(r.Blocks) != block.Count(int(r.InputTokens), 16) {
				t.Fatalf("%s: row %d has %d blocks for %d tokens", c.name, i, len(r.Blocks), r.InputTokens)
			}
		}
		if ratio := hitRatio(got, 16); math.Abs(ratio-want) > c.least {
			t.Errorf("%s: hit ratio %.3f, want %.3f", c.name, ratio, want)
		}
	}
}

// Whatever stands in the text's place, the lengths are those of the usage, and prompts
// that were not equal share nothing.
func TestRedactedVariants(t *testing.T) {
	plain := talks(6, 4)
	p := policy(t)
	rows, _ := run(t, p, plain)
	var total int64
	for i, r := range rows {
		plain[i].InputTokens, plain[i].OutputTokens = trace.Ptr(4*r.InputTokens+600), trace.Ptr(r.OutputTokens)
		total += int64(*plain[i].InputTokens)
	}
	for name, hide := range map[string]func(i, k int, m *trace.Message){
		"marker":           func(_, _ int, m *trace.Message) { m.Content = trace.NewText("[REDACTED]") },
		"empty":            func(_, _ int, m *trace.Message) { m.Content = trace.Text{} },
		"hashed":           func(i, k int, m *trace.Message) { m.Content = trace.NewText(fmt.Sprintf("%064x", i*100+k)) },
		"one of them":      func(_, k int, m *trace.Message) { m.Content = pick(k == 1, trace.NewText("<redacted>"), m.Content) },
		"a word of theirs": func(_, _ int, m *trace.Message) { m.Content = trace.NewText("see the vault") },
		"cut": func(_, _ int, m *trace.Message) {
			s := m.Content.Reveal()
			m.Content = trace.NewText(s[:min(len(s), 20)] + "...[truncated]")
		},
	} {
		src := slices.Clone(plain)
		for i := range src {
			src[i].Messages = slices.Clone(src[i].Messages)
			for k := range src[i].Messages {
				hide(i, k, &src[i].Messages[k])
			}
		}
		p := policy(t)
		p.Lengths = anonymize.LengthsUsage
		got, card := run(t, p, src)
		if card.Totals.InputTokens != total || card.Totals.InputGaps.Total() != int64(len(src)) {
			t.Errorf("%s: %d tokens, want %d; %+v", name, card.Totals.InputTokens, total, card.Totals.InputGaps)
		}
		if ratio := hitRatio(got, 16); ratio != 0 {
			t.Errorf("%s: prompts share a false prefix: hit ratio %.2f", name, ratio)
		}
	}
}

func pick[T any](which bool, a, b T) T {
	if which {
		return a
	}
	return b
}

// Markers with length and hash keep which messages are equal.
func TestHashedMessages(t *testing.T) {
	plain := talks(8, 5)
	p := policy(t)
	rows, _ := run(t, p, plain)
	want := hitRatio(rows, 16)
	src := slices.Clone(plain)
	for i := range src {
		src[i].InputTokens = trace.Ptr(rows[i].InputTokens)
		src[i].Messages = slices.Clone(src[i].Messages)
		for k := range src[i].Messages {
			s := src[i].Messages[k].Content.Reveal()
			var sum uint32
			for _, c := range s {
				sum = sum*31 + uint32(c)
			}
			src[i].Messages[k].Content = trace.NewText(fmt.Sprintf("[REDACTED_TEXT len=%d sha=%08X]", len(s), sum))
		}
	}
	got, card := run(t, p, src)
	for i := range got {
		if got[i].InputTokens != rows[i].InputTokens {
			t.Fatalf("row %d has %d tokens, want %d", i, got[i].InputTokens, rows[i].InputTokens)
		}
	}
	if ratio := hitRatio(got, 16); math.Abs(ratio-want) > 0.05 || card.Totals.InputGaps.Total() != 0 {
		t.Errorf("hit ratio %.3f, want about %.3f; %+v", ratio, want, card.Totals.InputGaps)
	}
}

// Where text and usage contradict each other somebody must say which to trust.
func TestLengthsContradict(t *testing.T) {
	src := talks(4, 4)
	rows, _ := run(t, policy(t), src)
	var counted int64
	for i, r := range rows {
		src[i].InputTokens = trace.Ptr(r.InputTokens / 2)
		counted += int64(r.InputTokens)
	}
	err := failed(t, policy(t), src)
	var said int64
	for i := range src {
		said += int64(*src[i].InputTokens)
	}
	want := fmt.Sprintf("model-0: the text of 16 requests counts %d input tokens and the source says %d (+101 %%)\n"+
		"Neither a chat template nor a tokenizer explains that. To take the counts of the source, say --lengths usage; to take those of the text, --lengths text, with the server's --tokenizer and --template", counted, said)
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	p := policy(t)
	for lengths, want := range map[string]int64{anonymize.LengthsUsage: said, anonymize.LengthsText: counted} {
		p.Lengths = lengths
		if _, card := run(t, p, src); card.Totals.InputTokens != want {
			t.Errorf("--lengths %s: %d tokens, want %d", lengths, card.Totals.InputTokens, want)
		}
	}

	// One short text with different counts stands in place of others.
	for i := range src {
		src[i].InputTokens = trace.Ptr(int32(100 + 40*i))
		src[i].Messages = []trace.Message{{Role: trace.User, Content: trace.NewText("see the vault")}}
	}
	err = failed(t, policy(t), src)
	want = "16 of 16 requests hold one short text, and the source counts another length for each: it stands in place of what was sent\n" +
		"To take the counts of the source, say --lengths usage"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	p.Lengths = anonymize.LengthsUsage
	if _, card := run(t, p, src); card.Totals.InputGaps.Unnamed+card.Totals.InputGaps.Short != 16 {
		t.Errorf("%+v", card.Totals.InputGaps)
	}
	p.Lengths = "both"
	if err := failed(t, p, src); err == nil || !strings.Contains(err.Error(), "lengths of both: want usage or text") {
		t.Error(err)
	}
}
