package synth

import (
	"math/rand/v2"
	"testing"

	"reprise/trace"
	"reprise/trace/token"
)

// Both report tokens per second on one core.
func BenchmarkTokens(b *testing.B) {
	benchmark(b, func(p *Prompter, r *trace.Request) func() error {
		var buf []uint32
		return func() (err error) {
			buf, err = p.Tokens(r, buf[:0])
			return err
		}
	})
}

func BenchmarkPrompt(b *testing.B) {
	benchmark(b, func(p *Prompter, r *trace.Request) func() error {
		var buf []byte
		return func() (err error) {
			buf, err = p.Prompt(r, buf[:0])
			return err
		}
	})
}

func benchmark(b *testing.B, f func(*Prompter, *trace.Request) func() error) {
	const tokens = 12_000 // about the mean of Mooncake's conversations
	for _, name := range token.Names() {
		for _, size := range []struct {
			name   string
			tokens int
		}{{"blocks=16", 16}, {"blocks=512", 512}} {
			b.Run(name+"/"+size.name, func(b *testing.B) {
				p := newTestPrompter(b, name, size.tokens)
				run := f(p, rowOf(rand.New(rand.NewPCG(1, 1)), tokens, size.tokens))
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
