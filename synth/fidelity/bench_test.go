package fidelity

import (
	"testing"

	"reprise/trace"
)

// BenchmarkGate measures chats against themselves, all of them and a sample of their trees.
func BenchmarkGate(b *testing.B) {
	rows := chats(20_000)
	for name, blocks := range map[string]int{"whole": 1 << 30, "sampled": 1 << 16} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var sides [2]*Signature
				for i := range sides {
					sides[i] = NewSignature(trace.Meta{BlockSize: 16}, Options{})
					sides[i].limits.blocks = blocks
					if _, err := sides[i].Write(rows); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := Compare(sides[0], sides[1]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*len(rows)), "ns/row")
		})
	}
}
