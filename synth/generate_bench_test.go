package synth

import (
	"testing"

	"reprise/trace"
)

// BenchmarkFit reads the published conversation trace into a model.
func BenchmarkFit(b *testing.B) {
	rows := mooncake(b)
	for b.Loop() {
		if _, err := Fit(b.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, trace.Meta{BlockSize: 512}, FitOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(rows))/b.Elapsed().Seconds(), "requests/s")
}

// BenchmarkGenerate places a hundred thousand requests of its model.
func BenchmarkGenerate(b *testing.B) {
	m := fitted(b, mooncake(b), trace.Meta{BlockSize: 512}, 10, 1)
	const n = 100_000
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Generate(b.Context(), Options{Requests: n}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "requests/s")
}
