package export

import (
	"io"
	"math/rand/v2"
	"testing"
)

func BenchmarkWriters(b *testing.B) {
	rows := randomRows(rand.New(rand.NewPCG(11, 12)), 512, 512)
	for i := range rows {
		if len(rows[i].Blocks) > 0 { // 24 blocks a row, as in the published trace
			rows[i].InputTokens = 12_000
			for len(rows[i].Blocks) < 24 {
				rows[i].Blocks = append(rows[i].Blocks, uint64(1000+i))
			}
		}
	}
	for _, out := range Formats() {
		b.Run(out.Name, func(b *testing.B) {
			w, err := NewWriter(out.Name, io.Discard, Options{BlockSize: 512, Prompter: stub("some words"), Header: io.Discard})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Write(rows); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*len(rows))/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
