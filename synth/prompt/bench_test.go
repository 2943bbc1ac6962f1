package prompt

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"reprise/trace"
	"reprise/trace/sample"
	"reprise/trace/token"
)

// All report tokens per second on one core.
func BenchmarkTokens(b *testing.B) {
	benchmark(b, func(p *Prompter, e *token.Encoding, r *trace.Request) func() error {
		var buf []uint32
		return func() (err error) {
			buf, err = p.Tokens(r, buf[:0])
			return err
		}
	})
}

func BenchmarkPrompt(b *testing.B) {
	benchmark(b, func(p *Prompter, e *token.Encoding, r *trace.Request) func() error {
		var buf []byte
		return func() (err error) {
			buf, err = p.Prompt(r, buf[:0])
			return err
		}
	})
}

func benchmark(b *testing.B, f func(*Prompter, *token.Encoding, *trace.Request) func() error) {
	const tokens = 12_000 // about the mean of Mooncake's conversations
	for _, name := range []string{"cl100k_base", "o200k_base"} {
		for _, kind := range kinds {
			for _, size := range []int{16, 512} {
				b.Run(fmt.Sprintf("%s/%s/blocks=%d", name, kind, size), func(b *testing.B) {
					e := mustEncoding(b, name)
					p := newTestPrompter(b, name, size, WithText(textOf(b, e, kind)), WithTails(benchTails(size)))
					r := rowOf(rand.New(rand.NewPCG(1, 1)), tokens, size)
					for i := range r.Blocks {
						r.Blocks[i] %= 1 << 30
					}
					run := f(p, e, r)
					b.ReportAllocs()
					for b.Loop() {
						if err := run(); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.N)*tokens/b.Elapsed().Seconds()/1e6, "Mtokens/s")
				})
			}
		}
	}
}

// benchTails has a million blocks complete another, none of them in the prompt:
// that is what most blocks ask of a table.
func benchTails(size int) *Tails {
	found := make([]completion, 1<<20)
	for i := range found {
		found[i] = completion{sample.Mix64(uint64(i)) >> 34, newTail(uint64(i), 3)}
	}
	return newTails(size, found)
}
