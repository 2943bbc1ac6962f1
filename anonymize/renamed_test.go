package anonymize_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/token"
)

// renamedTokens is a tokenizer that cuts text as another does, and has other ids for its tokens: an odd factor makes
// a permutation of all numbers of 32 bits.
type renamedTokens struct {
	token.Tokenizer
	seed uint64
}

func (r renamedTokens) Append(dst []uint32, text string) []uint32 {
	n := len(dst)
	dst = r.Tokenizer.Append(dst, text)
	for i, id := range dst[n:] {
		dst[n+i] = id*(uint32(r.seed)<<1|0x9e3779b1) + uint32(r.seed>>32) + 1
	}
	return dst
}

// renamed is a log in which every identifier is another, one to one, and all times move by one distance; and the
// policy that imports it.
func renamed(p anonymize.Policy, src []trace.Entry, seed uint64) (anonymize.Policy, []trace.Entry) {
	const shift = 1000*24*time.Hour + 12345*time.Second + 678901*time.Nanosecond
	src = slices.Clone(src)
	for i := range src {
		e := &src[i]
		for _, name := range []*trace.Text{&e.User, &e.Session, &e.Model, &e.Adapter, &e.Salt, &e.Class, &e.Replica} {
			if s := name.Reveal(); s != "" {
				*name = trace.NewText(fmt.Sprintf("%x-%d-renamed", uint64(len(s))*seed, seed) + s) // of another order
			}
		}
		e.Time = e.Time.Add(shift)
		e.SourceBlocks = slices.Clone(e.SourceBlocks)
		for j, id := range e.SourceBlocks {
			e.SourceBlocks[j] = id*(seed<<1|0x9e3779b97f4a7c15) + 1
		}
	}
	if p.Tokenizer != nil {
		p.Tokenizer = renamedTokens{p.Tokenizer, seed}
	}
	if p.Capture.Declared() {
		p.Capture.Begin, p.Capture.End = p.Capture.Begin.Add(shift), p.Capture.End.Add(shift)
	}
	return p, src
}

// hour is a window that every log of [at] lies in.
func hour() trace.Capture { return trace.Capture{Begin: at(-60_000), End: at(3_600_000)} }

// crowd are chats of several users that take turns in a log.
func crowd() (src []trace.Entry) {
	for i := range 12 {
		of := chat(fmt.Sprint("topic", i%9), fmt.Sprint("user", i%5), (i*7919)%5000, 1+i%4, len(src))
		for j := range of {
			of[j].Parents = nil
		}
		src = append(src, of...)
	}
	return src
}

// What no name can change cannot be read from a trace: rows and card are the same to the bit when every token, user,
// session, model, adapter, salt and block id has another name and the clock another epoch.
func TestNamesDoNotShow(t *testing.T) {
	for name, c := range map[string]struct {
		p   anonymize.Policy
		src []trace.Entry
	}{
		"text": {policy(t), crowd()},
		"text in a window": {func() anonymize.Policy { p := policy(t); p.Capture = hour(); return p }(),
			crowd()},
		"block ids of the source": {anonymize.Policy{Tier: anonymize.Internal, BlockSize: 512,
			SourceBlock: 512}, mooncakeLike(2000)},
		"other blocks than theirs": {anonymize.Policy{Tier: anonymize.Internal, BlockSize: 1024,
			SourceBlock: 512}, mooncakeLike(2000)},
	} {
		want, card := run(t, c.p, c.src)
		said, _, err := card.JSON()
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(3) {
			p, src := renamed(c.p, c.src, seed*0x5ee1_ab1e_0dd5+7)
			got, card := run(t, p, src)
			if digest(got) != digest(want) {
				t.Errorf("%s: with everything renamed the rows are others: names of the source show", name)
			}
			if text, _, err := card.JSON(); err != nil || text != said {
				t.Errorf("%s: with everything renamed the card is another one, %v:\n%s\nand not\n%s", name, err,
					text, said)
			}
		}
	}
}

// A log without one user has the requests of the others as they are in the whole one, when its window is declared.
func TestOneUserLess(t *testing.T) {
	type kept struct {
		arrival       int64
		input, output int32
		kind, status  string
		cut           int
	}
	requests := func(src []trace.Entry) (out []kept) {
		p := policy(t)
		p.Capture = hour()
		rows, _ := run(t, p, src)
		for i := range rows {
			r := &rows[i]
			out = append(out, kept{r.ArrivalNS, r.InputTokens, r.OutputOr(-1), r.Kind, r.Status, len(r.Blocks)})
		}
		slices.SortFunc(out, func(a, b kept) int {
			return cmp.Or(cmp.Compare(a.arrival, b.arrival),
				cmp.Compare(a.input, b.input))
		})
		return out
	}
	src := crowd()
	lone := src[0] // long before everybody else, and longer than all
	lone.User, lone.Session, lone.Time = trace.NewText("first"), trace.NewText("alone"), at(-50_000)
	lone.Messages = []trace.Message{{Role: trace.User, Content: text("tree", 4000)}}
	src = append([]trace.Entry{lone}, src...)
	whole := requests(src)
	for _, user := range []string{"first", "user0", "user3"} {
		isOf := func(e trace.Entry) bool { return e.User.Reveal() == user }
		without := requests(slices.DeleteFunc(slices.Clone(src), isOf))
		alone := requests(slices.DeleteFunc(slices.Clone(src), func(e trace.Entry) bool { return !isOf(e) }))
		both := append(slices.Clone(without), alone...)
		slices.SortFunc(both, func(a, b kept) int {
			return cmp.Or(cmp.Compare(a.arrival, b.arrival),
				cmp.Compare(a.input, b.input))
		})
		if !slices.Equal(both, whole) {
			t.Errorf("without %s the requests of others are other ones", user)
		}
	}
}
