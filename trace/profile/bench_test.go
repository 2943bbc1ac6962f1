package profile_test

import (
	"testing"

	"reprise/trace"
	"reprise/trace/profile"
)

func references(rows []trace.Request) (n int) {
	for i := range rows {
		n += len(rows[i].Blocks)
	}
	return n
}

func benchRows(b *testing.B) []trace.Request {
	rows := generate(1, 20_000, shape{block: 16})
	b.ReportAllocs()
	b.ResetTimer()
	return rows
}

func reportRefs(b *testing.B, rows []trace.Request) {
	b.ReportMetric(float64(references(rows))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
}

func BenchmarkAnnotator(b *testing.B) {
	rows := benchRows(b)
	for range b.N {
		for i := range rows {
			rows[i].Session = nil
		}
		annotate(rows, 16, profile.Options{})
	}
	reportRefs(b, rows)
}

func BenchmarkReuse(b *testing.B) {
	rows := benchRows(b)
	for range b.N {
		u := profile.NewReuse(16, profile.ReuseOptions{})
		for i := range rows {
			u.Add(&rows[i])
		}
	}
	reportRefs(b, rows)
}

func BenchmarkProfiler(b *testing.B) {
	rows := benchRows(b)
	for range b.N {
		profileOf(b, rows, trace.Meta{BlockSize: 16}, profile.ProfilerOptions{})
	}
	reportRefs(b, rows)
}
