package result

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"reprise/trace"
)

func TestMetricsName(t *testing.T) {
	for path, want := range map[string]string{
		"a/r.parquet": "a/r.metrics.parquet", "r": "r.metrics.parquet", "r.parquet.journal": "r.metrics.parquet",
	} {
		if got := MetricsName(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// Counters that fall began anew; the sums are those of a second computation.
func TestSummariseMetrics(t *testing.T) {
	rows := func(kind string, values ...float64) trace.Reader[Metric] {
		var out []Metric
		for i, v := range values {
			out = append(out, Metric{AtNS: int64(i-1) * 1e9, Target: "a", Name: "m", Kind: kind, Value: v})
		}
		return &trace.SliceReader[Metric]{Rows: out}
	}
	for _, c := range []struct {
		name     string
		kind     string
		values   []float64 // at −1, 0, 1 … s
		from, to int64     // s
		whole    bool
		want     ServerMetric
	}{
		{"whole counter", "counter", []float64{5, 6, 9}, 0, 0, true, ServerMetric{Samples: 3, First: trace.Ptr(5.0), Last: trace.Ptr(9.0), Delta: trace.Ptr(4.0)}},
		{"restart", "counter", []float64{5, 6, 2, 3}, 0, 9, true, ServerMetric{Samples: 4, First: trace.Ptr(5.0), Last: trace.Ptr(3.0), Delta: trace.Ptr(4.0), Resets: 1}},
		{"restart before the window", "counter", []float64{5, 1, 2, 3, 4}, 1, 2, false, ServerMetric{Samples: 2, First: trace.Ptr(2.0), Last: trace.Ptr(3.0), Delta: trace.Ptr(1.0)}},
		{"counter that comes late", "counter", []float64{7}, -5, -3, false, ServerMetric{Samples: 1, First: trace.Ptr(7.0), Last: trace.Ptr(7.0), Delta: trace.Ptr(0.0)}},
		{"gauge", "gauge", []float64{1, 2, 6, 4, 9}, 0, 2, true, ServerMetric{Samples: 3, First: trace.Ptr(2.0), Last: trace.Ptr(4.0), Delta: trace.Ptr(2.0), Min: trace.Ptr(2.0), Mean: trace.Ptr(4.0), Max: trace.Ptr(6.0)}},
		{"gauge outside", "gauge", []float64{1}, 0, 2, true, ServerMetric{}},
	} {
		s, err := SummariseMetrics(rows(c.kind, c.values...), c.from*1e9, c.to*1e9, c.whole)
		if err != nil {
			t.Fatal(err)
		}
		c.want.Target, c.want.Metric, c.want.Kind = "a", "m", c.kind
		if !reflect.DeepEqual(s.Metrics, []ServerMetric{c.want}) {
			t.Errorf("%s: %+v", c.name, s.Metrics)
		}
	}
}

func FuzzMetricsJournal(f *testing.F) {
	f.Add([]byte(`{"schema":"metrics/1","started":"2025-06-01T10:00:00Z"}` + "\n" +
		`{"series":{"id":0,"target":"a","metric":"vllm:x","kind":"gauge","labels":"engine=0"}}` + "\n" +
		`{"at_ns":-5,"ids":[0],"values":[1.5]}` + "\n" + `{"at_ns":7,"ids":[0],"val`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "r.parquet")
		if err := os.WriteFile(JournalName(MetricsName(path)), data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := OpenMetrics(path)
		if err != nil {
			return
		}
		defer m.Close()
		s, err := SummariseMetrics(m.Reader(), 0, 1e9, true)
		if err == nil {
			if _, err := (Run{Servers: Servers{Server: s}}).encode(); err != nil {
				t.Error(err)
			}
		}
	})
}
