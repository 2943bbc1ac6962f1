package anonymize_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/pkoukk/tiktoken-go"
	tiktoken_loader "github.com/pkoukk/tiktoken-go-loader"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/longtest"
	"reprise/trace/token"
)

// oftener is how often a random test is repeated: few times, or, where
// REPRISE_TEST_LONG is set, many.
func oftener(few, many int) int {
	if longtest.On() {
		return many
	}
	return few
}

// entries yields a slice, as a source does.
type entries []trace.Entry

func (e *entries) Read(batch []trace.Entry) (int, error) {
	n := copy(batch, *e)
	*e = (*e)[n:]
	if len(*e) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func run(t testing.TB, p anonymize.Policy, src []trace.Entry) ([]trace.Request, anonymize.Card) {
	t.Helper()
	e := entries(slices.Clone(src))
	var out keep
	card, err := anonymize.Run(t.Context(), p, &e, &out)
	if err != nil {
		t.Fatal(err)
	}
	return out, card
}

// keep collects rows with lists of their own.
type keep []trace.Request

func (k *keep) Write(rows []trace.Request) (int, error) {
	copied := trace.SliceWriter[trace.Request]{Rows: *k}
	n, err := copied.Write(rows)
	*k = copied.Rows
	return n, err
}

func policy(t testing.TB) anonymize.Policy {
	t.Helper()
	tok, err := token.Open("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	return anonymize.Policy{Tier: anonymize.Internal, BlockSize: 16, Tokenizer: tok}
}

func at(ms int) time.Time { return time.Date(2026, 5, 1, 12, 0, 0, ms*1e6, time.UTC) }

// text makes distinct prose of about n tokens.
func text(topic string, n int) trace.Text {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s item %d, ", topic, i)
	}
	return trace.NewText(b.String())
}

// chat makes a conversation of turns about a topic, each after the one before.
func chat(topic, user string, ms, turns, first int) []trace.Entry {
	history := []trace.Message{{Role: trace.System, Content: trace.NewText("You are a helpful assistant that answers at length and with care for detail in all matters.")}}
	var out []trace.Entry
	for i := range turns {
		history = append(history, trace.Message{Role: trace.User, Content: text(topic+" question", 10+i)})
		reply := text(topic+" answer", 12+i)
		e := trace.Entry{Time: at(ms + 1000*i), User: trace.NewText(user), Session: trace.NewText(topic), Turn: trace.Ptr(int32(i)),
			Messages: history[:len(history):len(history)], Reply: &reply, Model: trace.NewText("llama-of-" + user)}
		if i > 0 {
			e.Parents = []int64{int64(first + i - 1)}
			e.Think = trace.Ptr(time.Second)
		}
		out = append(out, e)
		history = append(history, trace.Message{Role: trace.Assistant, Content: reply})
	}
	return out
}

func TestEveryColumnHasARule(t *testing.T) {
	_, card := run(t, policy(t), nil)
	ruled := map[string]bool{}
	for _, r := range card.Columns {
		if ruled[r.Column] || r.Rule == "" {
			t.Errorf("column %s has two rules or an empty one", r.Column)
		}
		ruled[r.Column] = true
	}
	for _, c := range parquet.SchemaOf(trace.Request{}).Columns() {
		if !ruled[c[0]] {
			t.Errorf("column %s has no rule", c[0])
		}
		delete(ruled, c[0])
	}
	for c := range ruled {
		if !slices.ContainsFunc(parquet.SchemaOf(trace.Request{}).Columns(), func(p []string) bool { return p[0] == c }) {
			t.Errorf("there is a rule for %s, which is no column", c)
		}
	}
}

// Counts are tiktoken's, message by message, and blocks are chained over turns.
func TestConversation(t *testing.T) {
	tiktoken.SetBpeLoader(tiktoken_loader.NewOfflineLoader())
	oracle, err := tiktoken.GetEncoding("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	src := chat("gardening", "alice", 0, 4, 0)
	p := policy(t)
	rows, card := run(t, p, src)
	for i, r := range rows {
		want := 0
		for _, m := range src[i].Messages {
			want += len(oracle.EncodeOrdinary(m.Content.Reveal()))
		}
		reply := len(oracle.EncodeOrdinary(src[i].Reply.Reveal()))
		if int(r.InputTokens) != want || int(*r.OutputTokens) != reply {
			t.Errorf("turn %d: %d and %d tokens, tiktoken counts %d and %d", i, r.InputTokens, *r.OutputTokens, want, reply)
		}
		if len(r.Blocks) != (want+15)/16 || len(r.OutputBlocks) != (want+reply+15)/16-want/16 {
			t.Errorf("turn %d: %d and %d blocks for %d and %d tokens", i, len(r.Blocks), len(r.OutputBlocks), want, reply)
		}
		if i == 0 {
			continue
		}
		// The next turn begins with the full blocks of the prompt and of the reply.
		before := rows[i-1]
		full := int(before.InputTokens) / 16
		chain := append(slices.Clone(before.Blocks[:full]), before.OutputBlocks...)
		chain = chain[:(before.InputTokens+*before.OutputTokens)/16]
		if !slices.Equal(r.Blocks[:len(chain)], chain) {
			t.Errorf("turn %d does not begin with the blocks of turn %d and its reply", i, i-1)
		}
		if r.Category != trace.Continuation || !slices.Equal(r.Parents, []int64{int64(i - 1)}) || *r.ThinkNS != 1e9 {
			t.Errorf("turn %d: category %s, parents %v", i, r.Category, r.Parents)
		}
	}
	if rows[0].ArrivalNS != 0 || rows[3].ArrivalNS != 3e9 || rows[0].Model != "model-0" {
		t.Errorf("times or names are not relative: %d, %d, %s", rows[0].ArrivalNS, rows[3].ArrivalNS, rows[0].Model)
	}
	if card.Totals.Texts != 4 || card.Tokenizer != "o200k_base" {
		t.Errorf("the card says %+v", card)
	}
}

// Conversations that take turns in the log, and texts that only begin alike,
// are each counted by their own text.
func TestInterleavedConversations(t *testing.T) {
	a, b := chat("gardening", "alice", 0, 5, 0), chat("cooking for many guests at once", "alice", 500, 5, 0)
	var src []trace.Entry
	for i := range a {
		a[i].Parents, b[i].Parents = nil, nil
		src = append(src, a[i], b[i])
	}
	p := policy(t)
	rows, _ := run(t, p, src)
	for i, r := range rows {
		want := 0
		for _, m := range src[i].Messages {
			want += len(p.Tokenizer.Append(nil, m.Content.Reveal()))
		}
		if int(r.InputTokens) != want {
			t.Errorf("request %d has %d tokens, want %d", i, r.InputTokens, want)
		}
	}
}

// One prompt sent to two models shares nothing: no cache could share it.
func TestCacheDomains(t *testing.T) {
	var src []trace.Entry
	for i, domain := range [][3]string{{"a", "", ""}, {"b", "", ""}, {"a", "lora", ""}, {"a", "", "salt"}, {"a", "", ""}} {
		e := chat("gardening", "alice", i, 1, 0)[0]
		e.Model, e.Adapter, e.Salt = trace.NewText(domain[0]), trace.NewText(domain[1]), trace.NewText(domain[2])
		src = append(src, e)
	}
	rows, _ := run(t, policy(t), src)
	for i := range rows {
		for j := range i {
			if shared := rows[i].Blocks[0] == rows[j].Blocks[0]; shared != (i == 4 && j == 0) {
				t.Errorf("requests %d and %d: shared is %v", j, i, shared)
			}
		}
	}
}

func digest(rows []trace.Request) string {
	d := trace.NewDigest()
	d.Add(rows)
	return d.Sum()
}

// What comes out depends neither on the key nor on any identifier or instant
// of the source: renaming them all and moving the clock changes nothing.
func TestNonInterference(t *testing.T) {
	build := func(suffix string, shift int) []trace.Entry {
		var src []trace.Entry
		for i := range 12 {
			src = append(src, chat(fmt.Sprint("topic", i%9), fmt.Sprint("user", i%3, suffix), shift+(i*7919)%5000, 1+i%4, len(src))...)
		}
		for i := range src {
			src[i].Session = trace.NewText(src[i].Session.Reveal() + suffix)
			src[i].Class = trace.NewText([]string{"gold", "iron"}[i%2] + suffix)
		}
		return src
	}
	want, _ := run(t, policy(t), build("", 0))
	for i := range 3 {
		got, _ := run(t, policy(t), build(fmt.Sprint("-renamed-", i), i*86_400_000))
		if digest(got) != digest(want) {
			t.Fatalf("run %d: the rows depend on the key, a name or the clock", i)
		}
	}
	p := policy(t)
	for _, p.Workers = range []int{1, 7} {
		if got, _ := run(t, p, build("", 0)); digest(got) != digest(want) {
			t.Errorf("%d workers make other rows", p.Workers)
		}
	}
}

// Ids are dense in the order of appearance, whatever the source's were.
func TestSourceIdsAreRenumbered(t *testing.T) {
	var src []trace.Entry
	for i, ids := range [][]uint64{{900, 77}, {900, 1 << 60}, {5}, {900, 77}} {
		src = append(src, trace.Entry{Time: at(3000 - 1000*i), InputTokens: trace.Ptr(int32(512*len(ids) - 1)),
			OutputTokens: trace.Ptr(int32(9)), SourceBlocks: ids})
	}
	src[2].Model = trace.NewText("other")
	src = append(src, src[0])
	src[4].Time, src[4].Model = at(9000), trace.NewText("other") // the same ids in another cache domain
	rows, _ := run(t, anonymize.Policy{Tier: anonymize.Internal, BlockSize: 16, SourceBlock: 512}, src)
	var got [][]uint64
	for _, r := range rows {
		got = append(got, r.Blocks)
	}
	want := [][]uint64{{0, 1}, {2}, {0, 3}, {0, 1}, {4, 5}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("blocks are %v, want %v", got, want)
	}
}

func TestErrorsQuoteNothing(t *testing.T) {
	const secret = "hunter2"
	good := trace.Entry{Time: at(0), InputTokens: trace.Ptr(int32(1)), Session: trace.NewText(secret)}
	message := []trace.Message{{Content: trace.NewText(secret)}}
	tok := policy(t)
	for name, c := range map[string]struct {
		p anonymize.Policy
		e trace.Entry
	}{
		"no time":      {tok, trace.Entry{Messages: message}},
		"far time":     {tok, trace.Entry{Time: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), Messages: message}},
		"no length":    {tok, trace.Entry{Time: at(0), User: trace.NewText(secret)}},
		"no tokenizer": {anonymize.Policy{Tier: anonymize.Internal, BlockSize: 16}, trace.Entry{Time: at(0), Messages: message}},
		"two cuts":     {tok, trace.Entry{Time: at(0), Messages: message, SourceBlocks: []uint64{1}}},
	} {
		src := entries{good, c.e}
		_, err := anonymize.Run(t.Context(), c.p, &src, new(keep))
		if err == nil || !strings.Contains(err.Error(), "request 2 of the source") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type failing struct{ after int }

func (f *failing) Read(batch []trace.Entry) (int, error) {
	if f.after--; f.after < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	batch[0] = trace.Entry{Time: at(0), InputTokens: trace.Ptr(int32(1))}
	return 1, nil
}

func TestRunStops(t *testing.T) {
	p := policy(t)
	if _, err := anonymize.Run(t.Context(), p, &failing{after: 1000}, new(keep)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a source that breaks off gave %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := anonymize.Run(ctx, p, &failing{after: 1 << 60}, new(keep)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run gave %v", err)
	}
	for name, p := range map[string]anonymize.Policy{
		"tier": {Tier: "public", BlockSize: 16}, "block size": {Tier: anonymize.Internal},
	} {
		if _, err := anonymize.Run(t.Context(), p, new(entries), new(keep)); err == nil {
			t.Errorf("a policy with a wrong %s was taken", name)
		}
	}
}

func TestCard(t *testing.T) {
	_, card := run(t, policy(t), chat("topic", "user", 0, 2, 0))
	text, hash, err := card.JSON()
	if err != nil {
		t.Fatal(err)
	}
	back, err := anonymize.ParseCard(text, hash)
	if err != nil || back.Tier != anonymize.Internal || len(back.Columns) != len(card.Columns) {
		t.Errorf("the card came back as %+v (%v)", back, err)
	}
	if _, err := anonymize.ParseCard(strings.Replace(text, "internal", "public", 1), hash); err == nil {
		t.Error("a changed card matches its hash")
	}
	var out strings.Builder
	if err := back.WriteText(&out, 0); err != nil || !strings.Contains(out.String(), "not anonymous") {
		t.Errorf("the card reads %q (%v)", out.String(), err)
	}
}

// Two turns of a chat become rows that say how much of the second is known.
func ExampleRun() {
	tok, err := token.Open("o200k_base")
	if err != nil {
		fmt.Println(err)
		return
	}
	src := entries(chat("bread", "alice", 0, 2, 0))
	var rows trace.SliceWriter[trace.Request]
	card, err := anonymize.Run(context.Background(), anonymize.Policy{Tier: anonymize.Internal, BlockSize: 32, Tokenizer: tok}, &src, &rows)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range rows.Rows {
		fmt.Println(r.Category, r.InputTokens, *r.OutputTokens, r.Blocks, r.OutputBlocks)
	}
	fmt.Println(card.Tier)
	// Output:
	// cold 79 73 [0 1 2] [3 4 5]
	// continuation 219 79 [0 1 3 4 6 7 8] [9 10 11 12]
	// internal
}

// BenchmarkImportShareGPTLike is all of an import but the reading of JSON. The
// bytes are those of the text, each message once.
func BenchmarkImportShareGPTLike(b *testing.B) {
	var src []trace.Entry
	var bytes int64
	for i := range 100 {
		src = append(src, chat(fmt.Sprint("topic", i), "user", i, 5, len(src))...)
	}
	for _, e := range src {
		bytes += int64(e.Messages[len(e.Messages)-1].Content.Len() + e.Reply.Len())
	}
	p := policy(b)
	b.SetBytes(bytes)
	for b.Loop() {
		run(b, p, src)
	}
}

// With a declared window, arrivals count from its begin, whoever comes first.
func TestArrivalsCountFromTheWindow(t *testing.T) {
	p := policy(t)
	p.Capture = trace.Capture{Begin: at(-5000), End: at(100_000)}
	rows, _ := run(t, p, chat("a", "u", 0, 2, 5))
	later, _ := run(t, p, chat("a", "u", 3000, 2, 5))
	if rows[0].ArrivalNS != 5000e6 || later[0].ArrivalNS != 8000e6 {
		t.Errorf("the first arrive at %d and %d", rows[0].ArrivalNS, later[0].ArrivalNS)
	}
}
