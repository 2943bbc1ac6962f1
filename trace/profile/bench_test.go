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

// A sample saves memory and not time: every touch still asks whether it is in it.
func BenchmarkReuseSampled(b *testing.B) {
	rows := benchRows(b)
	for range b.N {
		u := profile.NewReuse(16, profile.ReuseOptions{ExactBlocks: 10_000})
		for i := range rows {
			u.Add(&rows[i])
		}
	}
	reportRefs(b, rows)
}

func BenchmarkKnownPass(b *testing.B) {
	rows := benchRows(b)
	for range b.N {
		k := profile.NewKnownPass(16, false)
		for i := range rows {
			k.Touch(&rows[i])
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

// Four routers over eight replicas and one cache of all their memory.
func BenchmarkProfilerRouting(b *testing.B) {
	rows := benchRows(b)
	for range b.N {
		profileOf(b, rows, trace.Meta{BlockSize: 16}, profile.ProfilerOptions{Replicas: []int{8}, ReplicaBlocks: 1000})
	}
	reportRefs(b, rows)
}

func BenchmarkMooncakeReuse(b *testing.B) {
	rows := mooncake(b)
	b.ResetTimer()
	for range b.N {
		u := profile.NewReuse(512, profile.ReuseOptions{})
		for i := range rows {
			u.Add(&rows[i])
		}
	}
	reportRefs(b, rows)
}
