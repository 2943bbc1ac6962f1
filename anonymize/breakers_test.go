package anonymize_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/longtest"
	"reprise/trace/recording"
)

// dated is a log of chats that take turns, with the date in the system prompt,
// which changes every so many requests.
func dated(every int, model string) []trace.Entry {
	r := rand.New(rand.NewPCG(21, 22))
	words := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%c%c%c%c ", 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26))
		}
		return b.String()
	}
	head, rules := "You are the assistant of a shop. Keep to the rules below. Today is ", words(400)
	chats := make([][]trace.Message, 12)
	var src []trace.Entry
	for i := range 300 {
		chat := &chats[r.IntN(len(chats))]
		if len(*chat) > 8 {
			*chat = nil
		}
		*chat = append((*chat)[:len(*chat):len(*chat)], trace.Message{Role: trace.User, Content: trace.NewText(words(40))})
		date := fmt.Sprintf("day %d of the year. ", i/every)
		reply := trace.NewText(words(60))
		e := trace.Entry{Time: at(1000 * i), Model: trace.NewText(fmt.Sprint(model, i%2)), Reply: &reply,
			Messages: append([]trace.Message{{Role: trace.System, Content: trace.NewText(head + date + rules)}}, *chat...)}
		if i%50 == 49 {
			e.Status = trace.StatusFailed
		}
		src = append(src, e)
		*chat = append((*chat)[:len(*chat):len(*chat)], trace.Message{Role: trace.Assistant, Content: reply})
	}
	return src
}

// What is found is what was planted, whoever encodes it and however often.
func TestBreakersOfALog(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	found := func(p anonymize.Policy, src []trace.Entry) string {
		_, card := run(t, p, src)
		s, err := card.Breakers.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// Behind a system message: tokens of the template, in a vocabulary without its marks.
	for template, footer := range map[string]int64{"none": 0, "chatml": 7, "qwen3": 2, "llama3": 1} {
		p := policy(t)
		p.Template = mustTemplate(t, template)
		src := dated(20, "m")
		want := found(p, src)
		for range oftener(1, 3) {
			for _, p.Workers = range []int{1, 2, 7} {
				if got := found(p, src); got != want {
					t.Fatalf("%d workers find %s, not %s", p.Workers, got, want)
				}
			}
		}
		if got := found(p.WithLimits(1, 1), src); got != want {
			t.Errorf("with blocks on disk: %s, not %s", got, want)
		}
		if got := found(p, dated(20, "other names ")); got != want {
			t.Errorf("with other names: %s, not %s", got, want)
		}
		if strings.Contains(want, "rules") || strings.Contains(want, "other") {
			t.Errorf("it has names or text of the source: %s", want)
		}

		_, card := run(t, p, src)
		b := card.Breakers
		if b.Requests != 294 || b.DurationS != 298 || len(b.List) != 2 {
			t.Fatalf("%s: found %+v", template, b)
		}
		head := int64(len(p.Template.AppendMessage(nil, p.Tokenizer, "system", "You are the assistant of a shop. Keep to the rules below. Today is day"))) - footer
		for i, one := range b.List {
			if one.Model != fmt.Sprint("model-", 1-i) && one.Model != fmt.Sprint("model-", i) || one.Message != 0 || one.Role != "system" ||
				one.From < head || one.To > head+2 || one.Width > 2 || one.Requests < 14 || one.Lost < 14*800 {
				t.Errorf("%s: found %+v, want token %d", template, one, head)
			}
		}
		if b.List[0].Model == b.List[1].Model {
			t.Error("one model has both")
		}
	}
}

// A worker that gets a batch like its last one, when another worker had another
// one between, passes the prompts on whole.
func TestBreakersAcrossBatches(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	var src []trace.Entry
	for i := range 12 * 128 { // so many entries are a batch
		about := []string{"rules of a shop", "manual of a ship and its harbour"}[i/128%2]
		src = append(src, trace.Entry{Time: at(i), Messages: []trace.Message{{Role: trace.System, Content: text(about, 9)},
			{Role: trace.User, Content: trace.NewText(fmt.Sprint(i*7919, text(about+" in short", 40).Reveal()))}}})
	}
	p := policy(t)
	p.Workers = 1
	_, want := run(t, p, src)
	if want.Breakers.Found == 0 {
		t.Fatal("nothing is found")
	}
	for i := range 6 {
		p.Workers = 2 + i%2
		if _, got := run(t, p, src); fmt.Sprint(*got.Breakers) != fmt.Sprint(*want.Breakers) {
			t.Fatalf("%d workers find %+v, not %+v", p.Workers, *got.Breakers, *want.Breakers)
		}
	}
}

// A model keeps its name where rows do.
func TestBreakersKeepModelNames(t *testing.T) {
	p := policy(t)
	p.KeepModel = true
	_, card := run(t, p, dated(20, "m"))
	if b := card.Breakers; len(b.List) == 0 || !strings.HasPrefix(b.List[0].Model, "m") || strings.HasPrefix(b.List[0].Model, "model-") {
		t.Errorf("found %+v", b)
	}
}

func TestNoBreakers(t *testing.T) {
	_, card := run(t, policy(t), dated(1000, "m"))
	if b := card.Breakers; b.Found != 0 || b.LostTokens != 0 || b.Requests != 294 {
		t.Errorf("a date that never changes: %+v", b)
	}
	_, card = run(t, anonymize.Policy{Tier: anonymize.Internal, BlockSize: 16}, []trace.Entry{{Time: at(0), InputTokens: trace.Ptr(int32(5))}})
	if card.Breakers != nil {
		t.Errorf("a source without text: %+v", card.Breakers)
	}
	if _, card = run(t, policy(t), nil); card.Breakers != nil {
		t.Errorf("an empty source: %+v", card.Breakers)
	}
}

// A recorder finds the breakers that an import of the same requests finds, and the merged
// trace has them under the names of its rows.
func TestBreakersRecorded(t *testing.T) {
	t.Parallel()
	src := dated(100, "m")
	p := policy(t)
	_, want := run(t, p, src)
	rec, err := anonymize.NewRecording(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b := rec.Breakers(); b != nil {
		t.Errorf("before the first entry: %s", b)
	}
	var encoders [2]*anonymize.RowEncoder
	for i := range encoders {
		if encoders[i], err = rec.Encoder(); err != nil {
			t.Fatal(err)
		}
	}
	rows := make([]recording.Row, len(src))
	for i := range src {
		if rows[i], err = encoders[i%2].Encode(&src[i]); err != nil {
			t.Fatal(err)
		}
	}
	meta := recording.Meta{BlockSize: 16, Tokenizer: "o200k_base", Begin: at(-1000), End: at(10_000_000), Breakers: rec.Breakers()}
	for _, secret := range []string{`"m0"`, `"m1"`, "model-0"} {
		if strings.Contains(string(meta.Breakers), secret) {
			t.Errorf("a part names %s", secret)
		}
	}
	var got keep
	card, err := anonymize.MergeRecorded(t.Context(), anonymize.Policy{Tier: anonymize.Internal}, meta, &trace.SliceReader[recording.Row]{Rows: rows}, &got)
	if err != nil {
		t.Fatal(err)
	}
	a, err := card.Breakers.JSON()
	if err != nil {
		t.Fatal(err)
	}
	b, err := want.Breakers.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if a != b || want.Breakers.Found == 0 {
		t.Errorf("got  %s\nwant %s", a, b)
	}
	meta.Breakers = []byte(`{"breakers":`)
	if card, err = anonymize.MergeRecorded(t.Context(), anonymize.Policy{Tier: anonymize.Internal}, meta, &trace.SliceReader[recording.Row]{Rows: rows}, &got); err != nil || card.Breakers != nil {
		t.Errorf("broken metadata: %v, %v", card.Breakers, err)
	}
}

// What is found does not depend on what tokens, models and users are called.
func TestBreakersRenamed(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	var src []trace.Entry
	for i := range 600 { // of few words, so that fingerprints often have a choice
		say := func(words int) trace.Message {
			return trace.Message{Role: trace.User, Content: trace.NewText(strings.Repeat([]string{"red ", "blue ", "tree "}[r.IntN(3)], words))}
		}
		talk := []trace.Message{{Role: trace.System, Content: trace.NewText(strings.Repeat("be brief ", 20))}}
		for range 1 + r.IntN(5) {
			talk = append(talk, say(1+r.IntN(60)))
		}
		src = append(src, trace.Entry{Time: at(1000 * i), Model: trace.NewText([]string{"small", "enormous"}[r.IntN(2)]), Messages: talk})
	}
	var found []string
	for seed := range uint64(4) {
		p := policy(t)
		of := src
		if p.BlockSize = 16; seed > 0 {
			p, of = renamed(p, src, seed)
		}
		_, card := run(t, p, of)
		s, err := card.Breakers.JSON()
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, s)
	}
	for i, s := range found {
		if s != found[0] || !strings.Contains(s, "lost_tokens") {
			t.Errorf("renamed by %d:\n%s\nand not\n%s", i, s, found[0])
		}
	}
}
