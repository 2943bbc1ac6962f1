package anonymize_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/longtest"
	"reprise/trace/token"
)

// randomEntries have ids that now chain and now do not, repeat within a row,
// count up or not, across the end of 64 bits too, come in several domains,
// belong to failed rows and to none.
func randomEntries(r *rand.Rand, n int, sessions bool) []trace.Entry {
	var src []trace.Entry
	ids := uint64(20 + r.IntN(2000))
	for i := range n {
		e := trace.Entry{Time: at(r.IntN(5000)), OutputTokens: trace.Ptr(int32(r.IntN(50)))}
		if i > 0 && r.IntN(2) == 0 {
			old := src[r.IntN(i)].SourceBlocks
			e.SourceBlocks = append(e.SourceBlocks, old[:r.IntN(len(old)+1)]...)
		}
		for range r.IntN(8) {
			e.SourceBlocks = append(e.SourceBlocks, r.Uint64N(ids)<<(r.IntN(2)*60))
		}
		if r.IntN(2) == 0 {
			from := []uint64{3, ids / 2, 1<<62 - 40, ^uint64(0) - 40}[r.IntN(4)] + r.Uint64N(60)
			for i := range 1 + r.Uint64N(40)<<(r.IntN(2)*3) {
				e.SourceBlocks = append(e.SourceBlocks, from+i)
			}
		}
		if r.IntN(3) == 0 {
			e.SourceBlocks = append([]uint64{7, 8}, e.SourceBlocks...)
		}
		e.InputTokens = trace.Ptr(int32(max(0, len(e.SourceBlocks)*16-r.IntN(16))))
		if i > 0 && r.IntN(4) == 0 {
			e.Parents = []int64{int64(r.IntN(i))}
		}
		if r.IntN(10) == 0 {
			e.Status = trace.StatusFailed
		}
		if sessions && r.IntN(2) == 0 {
			e.Session, e.Turn = trace.NewText(fmt.Sprint(r.IntN(9))), trace.Ptr(int32(i))
		}
		e.Model = trace.NewText([]string{"", "a", "b"}[r.IntN(3)*r.IntN(2)])
		src = append(src, e)
	}
	return src
}

// What comes out is the same for any limit of memory, down to none.
func TestAnyMemoryLimit(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 12))
	for round := range oftener(8, 24) {
		src := randomEntries(r, 1+r.IntN(400), round%3 == 0)
		p := anonymize.Policy{Tier: anonymize.Internal, BlockSize: 16, SourceBlock: 16, SpillDir: t.TempDir()}
		want, card := run(t, p, src)
		if card.Totals.SpillBytes != 0 {
			t.Fatalf("a small source spilled %d bytes", card.Totals.SpillBytes)
		}
		for _, limit := range [][2]int{{1, 1}, {2, 100_000}, {1 + r.IntN(500), 1 + r.IntN(500)}} {
			got, spilled := run(t, p.WithLimits(limit[0], limit[1]), src)
			if digest(got) != digest(want) {
				t.Fatalf("round %d: other rows with limits %v", round, limit)
			}
			if card.Totals.Blocks > limit[0] == (spilled.Totals.SpillBytes == 0) {
				t.Fatalf("limits %v, %d blocks: %d bytes were spilled", limit, card.Totals.Blocks, spilled.Totals.SpillBytes)
			}
			spilled.Totals.SpillBytes = 0
			if !reflect.DeepEqual(spilled.Totals, card.Totals) {
				t.Fatalf("limits %v: totals %+v, want %+v", limit, spilled.Totals, card.Totals)
			}
		}
		if files, _ := os.ReadDir(p.SpillDir); len(files) > 0 {
			t.Fatalf("%d spill files have a name", len(files))
		}
	}
}

// What comes out is the same for any number of processors, with blocks in memory and on disk.
func TestAnyProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	p := anonymize.Policy{Tier: anonymize.Internal, BlockSize: 512, SourceBlock: 512, SpillDir: t.TempDir()}
	src := mooncakeLike(3000)
	var want string
	for _, processors := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(processors)
		for _, p := range []anonymize.Policy{p, p.WithLimits(100, 500)} {
			rows, _ := run(t, p, src)
			if got := digest(rows); want == "" {
				want = got
			} else if got != want {
				t.Errorf("other rows with %d processors", processors)
			}
		}
	}
}

// A plainSource gives entries that are plain by columns.
type plainSource struct {
	entries
	plain int // how many it gave so
}

func (s *plainSource) ReadPlain(p *trace.PlainEntries, most int) {
	for ; len(s.entries) > 0 && p.Len() < most; s.plain++ {
		e := s.entries[0]
		if e.User != (trace.Text{}) || len(s.entries)%701 == 0 {
			break
		}
		p.UnixNS, p.IDs = append(p.UnixNS, e.Time.UnixNano()), append(p.IDs, e.SourceBlocks...)
		p.Input, p.Output = append(p.Input, *e.InputTokens), append(p.Output, *e.OutputTokens)
		p.Ends, s.entries = append(p.Ends, len(p.IDs)), s.entries[1:]
	}
}

// Entries that are read by columns become the rows that they become one by one: in order or not, among others that
// are not plain, with blocks in memory and on disk, and on any number of workers.
func TestPlainEntries(t *testing.T) {
	for name, change := range map[string]func([]trace.Entry, *anonymize.Policy){
		"plain": func([]trace.Entry, *anonymize.Policy) {},
		"in part": func(src []trace.Entry, _ *anonymize.Policy) { // of blocks that are whole elsewhere, too
			for i := range src {
				*src[i].InputTokens -= int32(i % 400)
			}
		},
		"shuffled": func(src []trace.Entry, _ *anonymize.Policy) { slices.Reverse(src[len(src)/2:]) },
		"of users": func(src []trace.Entry, _ *anonymize.Policy) {
			for i := 900; i < len(src); i += 1 + i%70 {
				src[i].User = trace.NewText(fmt.Sprint("user", i%9))
			}
		},
	} {
		src := mooncakeLike(6000)
		p := anonymize.Policy{Tier: anonymize.Internal, BlockSize: 512, SourceBlock: 512, SpillDir: t.TempDir()}
		change(src, &p)
		want, card := run(t, p, src)
		for _, p := range []anonymize.Policy{p, p.WithLimits(100, 500)} {
			for p.Workers = 1; p.Workers < 4; p.Workers++ {
				s := &plainSource{entries: slices.Clone(src)}
				var got keep
				again, err := anonymize.Run(t.Context(), p, s, &got)
				if err != nil {
					t.Fatal(err)
				}
				again.Totals.SpillBytes = card.Totals.SpillBytes
				if digest(got) != digest(want) || !reflect.DeepEqual(again.Totals, card.Totals) {
					t.Errorf("%s: other rows on %d workers, or totals: %+v, want %+v", name, p.Workers, again.Totals, card.Totals)
				}
				if s.plain < 1000 {
					t.Errorf("%s: %d entries are plain", name, s.plain)
				}
			}
		}
	}
	src := mooncakeLike(2000)
	src[1500].Time = src[1500].Time.AddDate(300, 0, 0)
	p := anonymize.Policy{Tier: anonymize.Internal, SourceBlock: 512}
	_, err := anonymize.Run(t.Context(), p, &plainSource{entries: src}, new(keep))
	if err == nil || !strings.HasPrefix(err.Error(), "request 1501 of the source: ") {
		t.Errorf("a plain entry at fault: %v", err)
	}
}

// Text spills as ids of a source do, and as little depends on the key.
func TestTextSpills(t *testing.T) {
	var src []trace.Entry
	for i := range 30 {
		src = append(src, chat(fmt.Sprint("topic", i%20), "user", (i*7919)%5000, 1+i%5, len(src))...)
	}
	want, _ := run(t, policy(t), src)
	for _, distinct := range []int{1, 50} {
		if got, _ := run(t, policy(t).WithLimits(distinct, 64), src); digest(got) != digest(want) {
			t.Errorf("other rows with %d blocks in memory", distinct)
		}
	}
}

// Blocks agree with those of whole prompts, tokenised and cut from nothing:
// conversations that go on, take turns, part ways, lose messages, change roles
// and domains.
func TestChainAgreesWithWholePrompts(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	r := rand.New(rand.NewPCG(13, 14))
	for _, template := range token.TemplateNames() {
		p := policy(t)
		p.Workers, p.BlockSize, p.Template = 1, 4, mustTemplate(t, template)
		var src []trace.Entry
		var history []trace.Message
		word := func() trace.Text { return text(fmt.Sprint("w", r.IntN(4)), r.IntN(4)) }
		for i := range oftener(80, 250) {
			switch r.IntN(6) {
			case 0:
				history = nil
			case 1:
				history = history[:r.IntN(len(history)+1)]
			}
			history = append(history[:len(history):len(history)], trace.Message{Role: trace.Role(r.IntN(4)), Content: word()})
			e := trace.Entry{Time: at(i), Messages: history, Model: trace.NewText([]string{"qwen3", "b"}[r.IntN(8)/7])}
			if r.IntN(8) == 0 {
				e.Tools = trace.NewText(`[{"type":"function","function":{"name":"f"}}]`)
			}
			if r.IntN(4) > 0 {
				e.Reply = trace.Ptr(word())
				if r.IntN(4) == 0 {
					e.ReplyCalls = trace.NewText(fmt.Sprintf(`[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"n\": %d}"}}]`, r.IntN(3)))
				}
				history = append(history[:len(history):len(history)], trace.Message{Role: trace.Assistant, Content: *e.Reply, Calls: e.ReplyCalls})
			}
			src = append(src, e)
		}
		rows, _ := run(t, p, src)
		numbers := map[string]uint64{}
		for i, row := range rows {
			in := fmt.Sprint(wholePrompt(p, &src[i]))
			want := cutWhole(numbers, src[i].Model.Reveal(), wholePrompt(p, &src[i]), 0, p.BlockSize)
			if fmt.Sprint(row.Blocks) != fmt.Sprint(want) {
				t.Fatalf("%s, request %d of tokens %s: blocks %v, want %v", template, i, in, row.Blocks, want)
			}
			if src[i].Reply == nil {
				continue
			}
			reply := p.Template.Renderer(p.Tokenizer).Reply(src[i].Model.Reveal(), src[i].Reply.Reveal(), src[i].ReplyCalls.Reveal())
			all := token.AppendPieces(wholePrompt(p, &src[i]), p.Tokenizer, reply, false)
			want = cutWhole(numbers, src[i].Model.Reveal(), all, int(row.InputTokens)/p.BlockSize, p.BlockSize)
			if fmt.Sprint(row.OutputBlocks) != fmt.Sprint(want) {
				t.Fatalf("%s, request %d: output blocks %v, want %v", template, i, row.OutputBlocks, want)
			}
		}
	}
}

func mustTemplate(t *testing.T, name string) token.Template {
	t.Helper()
	tmpl, err := token.OpenTemplate(name)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func wholePrompt(p anonymize.Policy, e *trace.Entry) []uint32 {
	c := token.Chat{Model: e.Model.Reveal(), Tools: e.Tools.Reveal(), Time: e.Time}
	for _, m := range e.Messages {
		c.Messages = append(c.Messages, token.Message{Role: m.Role.String(), Content: m.Content.Reveal(), Calls: m.Calls.Reveal()})
	}
	pieces, err := p.Template.Renderer(p.Tokenizer).Render(&c)
	if err != nil {
		panic(err)
	}
	return token.AppendPieces(nil, p.Tokenizer, pieces, true)
}

// cutWhole numbers the blocks from the given one on by all tokens up to their end.
func cutWhole(numbers map[string]uint64, domain string, tokens []uint32, from, size int) []uint64 {
	var out []uint64
	for i := from * size; i < len(tokens); i += size {
		k := fmt.Sprint(domain, tokens[:min(i+size, len(tokens))])
		if _, ok := numbers[k]; !ok {
			numbers[k] = uint64(len(numbers))
		}
		out = append(out, numbers[k])
	}
	return out
}

// mooncakeLike makes rows of ids like those of a published trace.
func mooncakeLike(n int) []trace.Entry {
	r := rand.New(rand.NewPCG(15, 16))
	var src []trace.Entry
	next := uint64(1)
	for i := range n {
		ids := []uint64{0}
		if i > 0 && r.IntN(100) < 75 {
			old := src[r.IntN(i)].SourceBlocks
			ids = append(ids[:0], old[:1+r.IntN(min(len(old), 40))]...)
		}
		for range 1 + r.IntN(28) {
			ids = append(ids, next)
			next++
		}
		src = append(src, trace.Entry{Time: time.Unix(int64(i), 0), InputTokens: trace.Ptr(int32(512 * len(ids))), OutputTokens: trace.Ptr(int32(9)), SourceBlocks: ids})
	}
	return src
}

func benchmarkIDs(b *testing.B, p anonymize.Policy) {
	src := mooncakeLike(20_000)
	var bytes int64
	for _, e := range src {
		bytes += 70 + 10*int64(len(e.SourceBlocks)) // as a line of JSON
	}
	b.SetBytes(bytes)
	b.ReportAllocs()
	for b.Loop() {
		e := entries(src)
		if _, err := anonymize.Run(b.Context(), p, &e, trace.NewRequestWriter(io.Discard)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkImportMooncakeLike is all of an import but the reading of JSON.
func BenchmarkImportMooncakeLike(b *testing.B) {
	benchmarkIDs(b, anonymize.Policy{Tier: anonymize.Internal, SourceBlock: 512})
}

// BenchmarkImportMooncakeLikeSpilled is the same with blocks on disk.
func BenchmarkImportMooncakeLikeSpilled(b *testing.B) {
	benchmarkIDs(b, anonymize.Policy{Tier: anonymize.Internal, SourceBlock: 512, SpillDir: b.TempDir()}.WithLimits(1000, 0))
}
