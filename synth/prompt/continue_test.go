package prompt

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/token"
)

// The end of a prompt behind a reply of words, or of what a model may write,
// encodes to as many tokens as asked for and leaves the reply's alone.
func TestContinueIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, e := range []*token.Encoding{mustEncoding(t, "cl100k_base"), mustEncoding(t, "o200k_base")} {
		for _, kind := range kinds {
			for _, size := range []int{0, 3, 16, 512} {
				p, err := New(e.Words(), 1, size, WithText(textOf(t, e, kind)), WithTemplate(rng.IntN(2)*9, 0))
				if err != nil {
					t.Fatal(err)
				}
				for _, reply := range []string{"and", "so it is.", "```go\nx := 1\n```\n\n", "trailing ", "1, 2, 3", "…是", "\n"} {
					for range 12 {
						tokens := 1 + rng.IntN(1500)
						r := &trace.Request{InputTokens: int32(tokens), ArrivalNS: rng.Int64()}
						if size > 0 {
							r = rowOf(rng, tokens, size)
							for i := range r.Blocks {
								r.Blocks[i] %= 1 << 33 // what common words can spell
							}
						}
						continued(t, e.Append, p, r, reply, rng.IntN(tokens+1))
					}
				}
			}
		}
	}
}

func continued(t *testing.T, encode func([]uint32, string) []uint32, p *Prompter, r *trace.Request, reply string, want int) {
	t.Helper()
	text, err := p.Continue(r, want, false, []byte(reply))
	if err != nil {
		t.Fatal(err)
	}
	ids, err := p.ContinueTokens(r, want, encode(nil, reply))
	if err != nil {
		t.Fatal(err)
	}
	if got := encode(nil, string(text)); len(ids) != len(encode(nil, reply))+want || !slices.Equal(got, ids) {
		t.Errorf("an end of %d of %d tokens behind %q: %d tokens, %d ids", want, r.InputTokens, reply, len(got), len(ids))
	}
	bare, err := p.Continue(r, want, true, nil)
	if err != nil || want > 0 && " "+string(bare) != strings.TrimPrefix(string(text), reply) {
		t.Errorf("without its space the end is another text (%v)", err)
	}
}

// Ends at the same place of rows with the same blocks are equal as far as the
// blocks are, and differ at once behind them.
func TestContinueSharesBlocks(t *testing.T) {
	p := newTestPrompter(t, "o200k_base", 16)
	a := &trace.Request{InputTokens: 64, Blocks: []uint64{1, 2, 3, 4}}
	b := &trace.Request{InputTokens: 70, Blocks: []uint64{1, 2, 3, 5, 6}}
	end := func(r *trace.Request, at int) []uint32 {
		ids, err := p.ContinueTokens(r, int(r.InputTokens)-at, nil)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	for at := range 48 {
		x, y := end(a, at), end(b, at)
		if n := 48 - at; !slices.Equal(x[:n], y[:n]) || slices.Equal(x[n:n+3], y[n:n+3]) {
			t.Errorf("ends at token %d do not part at token 48", at)
		}
	}
	// In block 3 they begin at different places, and are different texts.
	if x, y := end(a, 33), end(b, 34); slices.Equal(x[1:4], y[:3]) {
		t.Error("ends that begin at different places are equal")
	}
	if _, err := p.Continue(a, 65, false, nil); err == nil {
		t.Error("an end longer than the prompt is no error")
	}
}
