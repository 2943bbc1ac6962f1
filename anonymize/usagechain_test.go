package anonymize_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/datasets"
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

// A template that is not known adds some tokens to each message. The next turn still goes
// on from the answer of the one before, but for the tokens of the template.
func TestNextTurnUnderUnknownTemplate(t *testing.T) {
	p := policy(t)
	p.Workers = 1
	src := talks(12, 5)
	rows, _ := run(t, p, src)
	want := knownTokens(rows)
	for i := range src {
		n := rows[i].InputTokens + 3 + 4*int32(len(src[i].Messages))
		src[i].InputTokens = &n
	}
	got, _ := run(t, p, src)
	turns := 0
	for _, r := range got {
		if r.Category == trace.Continuation {
			turns++
		}
	}
	if hit := knownTokens(got); turns != 12*4 || hit < want*99/100 {
		t.Errorf("%d of 48 next turns go on from the one before; a cache that keeps answers knows %d tokens, want about the %d of the text", turns, hit, want)
	}
}

// knownTokens are those in full blocks that a cache without bounds knows which keeps answers.
func knownTokens(rows []trace.Request) (hit int) {
	seen := map[uint64]bool{}
	for _, r := range rows {
		for _, b := range r.Blocks[:block.Full(int(r.InputTokens), 16)] {
			if !seen[b] {
				break
			}
			hit += 16
		}
		for _, b := range slices.Concat(r.Blocks, r.OutputBlocks) {
			seen[b] = true
		}
	}
	return hit
}

// Whatever stands in the text's place, the lengths are those of the usage, and prompts
// that were not equal share nothing.
func TestRedactedVariants(t *testing.T) {
	plain := talks(6, 4)
	p := policy(t)
	rows, _ := run(t, p, plain)
	var total int64
	for i, r := range rows {
		plain[i].InputTokens, plain[i].OutputTokens = trace.Ptr(4*r.InputTokens+600), trace.Ptr(*r.OutputTokens)
		total += int64(*plain[i].InputTokens)
	}
	for name, hide := range map[string]func(i, k int, m *trace.Message){
		"marker":           func(_, _ int, m *trace.Message) { m.Content = trace.NewText("[REDACTED]") },
		"empty":            func(_, _ int, m *trace.Message) { m.Content = trace.Text{} },
		"one hash":         func(_, _ int, m *trace.Message) { m.Content = trace.NewText(strings.Repeat("0a1b", 16)) },
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

// hashedMessages are entries with markers in place of their messages, of known usage.
func hashedMessages(src []trace.Entry, usage func(i int) int32, marker func(text string, sum [32]byte) string) (out []trace.Entry) {
	for i, e := range src {
		e.InputTokens = trace.Ptr(usage(i))
		e.Messages = slices.Clone(e.Messages)
		for k := range e.Messages {
			s := e.Messages[k].Content.Reveal()
			e.Messages[k].Content = trace.NewText(marker(s, sha256.Sum256([]byte(s))))
		}
		out = append(out, e)
	}
	return out
}

// Markers with hashes keep which messages are equal, with their lengths or without, and
// where a prompt has much beside its messages.
func TestHashedMessages(t *testing.T) {
	plain := talks(8, 5)
	p := policy(t)
	rows, _ := run(t, p, plain)
	withLength := func(s string, sum [32]byte) string {
		return fmt.Sprintf("[REDACTED_TEXT len=%d sha=%08X]", len(s), sum[:4])
	}
	alone := func(_ string, sum [32]byte) string { return fmt.Sprintf("sha256:%x", sum) }
	object := func(_ string, sum [32]byte) string { return fmt.Sprintf(`{"sha256":"%x"}`, sum) }
	named := func(_ string, sum [32]byte) string { return fmt.Sprintf("[REDACTED sha1=%x]", sum[:5]) }
	for name, c := range map[string]struct {
		tools  int32
		marker func(string, [32]byte) string
	}{"length and hash": {0, withLength}, "hash alone": {0, alone}, "object": {0, object}, "named": {0, named}, "tools": {3000, withLength}, "tools, hash alone": {3000, alone}} {
		known, all := hitRatio(rows, 16), 0
		for _, r := range rows {
			all += int(r.InputTokens)
		}
		tools := int(c.tools) * len(rows)
		want := (known*float64(all) + float64(tools) - float64(c.tools)) / float64(all+tools)
		got, card := run(t, p, hashedMessages(plain, func(i int) int32 { return rows[i].InputTokens + c.tools }, c.marker))
		for i := range got {
			if got[i].InputTokens != rows[i].InputTokens+c.tools || got[i].ReuseSource != trace.ReuseHashes {
				t.Fatalf("%s: row %d has %d tokens, %s", name, i, got[i].InputTokens, got[i].ReuseSource)
			}
		}
		if ratio := hitRatio(got, 16); math.Abs(ratio-want) > 0.05 || card.Totals.InputGaps.Total() != 0 || card.Totals.MessageHashes != int64(len(rows)) {
			t.Errorf("%s: hit ratio %.3f, want about %.3f; %+v", name, ratio, want, card.Totals.InputGaps)
		}
	}
	// The same hash of another role is another message.
	src := hashedMessages(plain[:1], func(int) int32 { return 200 }, alone)
	src = append(src, src[0])
	src[1].Messages = slices.Clone(src[0].Messages)
	for k, role := range []trace.Role{trace.User, trace.Assistant} {
		src[1].Messages[k].Role = role
	}
	if got, _ := run(t, p, src); hitRatio(got, 16) != 0 {
		t.Errorf("hit ratio %.3f between other roles", hitRatio(got, 16))
	}
}

// Published conversations with a hash in place of each message.
func TestHashedConversations(t *testing.T) {
	const path = "../../shared/data/sharegpt_sample.json"
	files, err := datasets.Expand(path)
	if err != nil {
		t.Skip("there are no published conversations beside the checkout")
	}
	src, err := datasets.OpenFiles(files, datasets.Options{MaxBad: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var all []trace.Entry
	batch := make([]trace.Entry, 64)
	for end := err; end == nil; {
		var n int
		n, end = src.Read(batch)
		all = append(all, batch[:n]...)
	}
	for i := range all {
		all[i].Time = at(1000 * i)
	}
	p := policy(t)
	p.BlockSize = 128
	rows, _ := run(t, p, all)
	want := hitRatio(rows, 128)
	capacities := []int{100, 300, 1000, 3000, 10000}
	for name, c := range map[string]struct {
		marker     func(string, [32]byte) string
		below, mae float64 // of the exact hit ratio, and of the curve
	}{
		"length and hash": {func(s string, sum [32]byte) string {
			return fmt.Sprintf("[REDACTED_TEXT len=%d sha=%08X]", len(s), sum[:4])
		}, 0.04, 0.03},
		"hash alone": {func(_ string, sum [32]byte) string { return fmt.Sprintf("%x", sum) }, 0.12, 0.11},
	} {
		got, _ := run(t, p, hashedMessages(all, func(i int) int32 { return rows[i].InputTokens }, c.marker))
		mae := 0.
		exact, have := curve(rows, capacities), curve(got, capacities)
		for i := range exact {
			mae += math.Abs(exact[i]-have[i]) / float64(len(exact))
		}
		t.Logf("%s: %d requests, hit ratio %.3f exact, %.3f by hashes; LRU curve MAE %.3f", name, len(rows), want, hitRatio(got, 128), mae)
		if ratio := hitRatio(got, 128); ratio > want+0.01 || ratio < want-c.below || mae > c.mae {
			t.Errorf("%s: hit ratio %.3f, want a little below %.3f; MAE %.3f", name, ratio, want, mae)
		}
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
	want := fmt.Sprintf("model-0: the text of 16 requests counts %d input tokens and the source says %d (+101 "+
		"%%)\nNeither a chat template nor a tokenizer explains that. To take the counts of the source, say "+
		"--lengths usage; to take the counts of the text, --lengths text, with the server's --tokenizer and "+
		"--template", counted, said)
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
	want = "16 of 16 requests hold one short text, and the source counts another length for each: it replaced the " +
		"text that was sent\nTo take the counts of the source, say --lengths usage"
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
