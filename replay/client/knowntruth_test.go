package client

import (
	"fmt"
	"math"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay"
	"reprise/replay/engine"
	"reprise/replay/result"
	"reprise/trace"
)

// Endpoints whose times are known: every first token and every gap of 64 streams
// at once.
var knownTruths = []struct{ ttft, itl time.Duration }{
	{200 * time.Millisecond, 20 * time.Millisecond},
	{500 * time.Millisecond, 50 * time.Millisecond},
}

const (
	truthStreams = 64
	truthTokens  = 50
	// truthGap lies between the arrivals, and is no divisor of the times.
	truthGap = 3_700 * time.Microsecond
)

func truthConfig(ttft, itl time.Duration) engine.ServerConfig {
	c := engine.DefaultServerConfig()
	c.Base, c.ITL, c.PrefillRate, c.ParallelPrefill = ttft, itl, 1e15, true
	return c
}

func truthRows() []trace.Request {
	rows := workload(every(truthGap, truthStreams)...)
	for i := range rows {
		rows[i].InputTokens, rows[i].OutputTokens = int32(10+i), trace.Ptr[int32](truthTokens)
	}
	return rows
}

// In virtual time nothing takes time but what the server waits for, and what the
// client measures is that, to the nanosecond.
func TestKnownTruth(t *testing.T) {
	for _, c := range knownTruths {
		synctest.Test(t, func(t *testing.T) {
			h, end := virtualEndpoint(t, truthConfig(c.ttft, c.itl), Options{ForceOutput: true})
			defer end()
			var out trace.SliceWriter[result.Result]
			r := replay.Runner{Prompter: words{}, Endpoint: h, Pacer: sleeper}
			if _, err := r.Run(t.Context(), reader(truthRows()), &out); err != nil || len(out.Rows) != truthStreams {
				t.Fatalf("%d results, %v", len(out.Rows), err)
			}
			for _, r := range out.Rows {
				due := int64(truthGap) * r.RowID
				last := due + int64(c.ttft+(truthTokens-1)*c.itl)
				if r.Error != "" || r.DueNS != due || *r.ReleasedNS != due || *r.SentNS != due ||
					*r.FirstTokenNS != due+int64(c.ttft) || *r.LastTokenNS != last || *r.DoneNS != last || len(r.GapsNS) != truthTokens-1 {
					t.Fatalf("row %d: %s %d %d %d %d %d", r.RowID, r.Error, r.DueNS, *r.SentNS, *r.FirstTokenNS, *r.LastTokenNS, *r.DoneNS)
				}
				for i, gap := range r.GapsNS {
					if gap != int64(c.itl) {
						t.Fatalf("row %d: gap %d is %d", r.RowID, i, gap)
					}
				}
			}
		})
	}
}

// BenchmarkKnownTruth is how far from the known times the client measures, over
// TCP and by the clock, with the server on the same cores: the error of the mean,
// and how far the 99th percentile lies above.
func BenchmarkKnownTruth(b *testing.B) {
	for _, c := range knownTruths {
		b.Run(fmt.Sprintf("%v/%v", c.ttft, c.itl), func(b *testing.B) {
			s, err := engine.NewServer(truthConfig(c.ttft, c.itl))
			if err != nil {
				b.Fatal(err)
			}
			srv := httptest.NewServer(s.Handler())
			defer srv.Close()
			h := endpoint(b, Options{URL: srv.URL, ForceOutput: true})
			var ttft, itl []float64
			for b.Loop() {
				var out trace.SliceWriter[result.Result]
				if _, err := (&replay.Runner{Prompter: words{}, Endpoint: h}).Run(b.Context(), reader(truthRows()), &out); err != nil {
					b.Fatal(err)
				}
				for _, r := range out.Rows {
					if r.Error != "" || len(r.GapsNS) != truthTokens-1 {
						b.Fatalf("row %d: %q, %d gaps", r.RowID, r.Error, len(r.GapsNS))
					}
					ttft = append(ttft, float64(*r.FirstTokenNS-*r.SentNS))
					for _, g := range r.GapsNS {
						itl = append(itl, float64(g))
					}
				}
			}
			for _, m := range []struct {
				name   string
				values []float64
				truth  time.Duration
			}{{"ttft", ttft, c.ttft}, {"itl", itl, c.itl}} {
				mean, p99 := truthOf(m.values)
				b.ReportMetric(100*(mean/float64(m.truth)-1), m.name+"-mean-err-%")
				b.ReportMetric((p99-float64(m.truth))/1e6, m.name+"-p99-over-ms")
			}
		})
	}
}

// truthOf returns the mean and the 99th percentile, by linear interpolation.
func truthOf(values []float64) (mean, p99 float64) {
	slices.Sort(values)
	for _, v := range values {
		mean += v / float64(len(values))
	}
	at, part := math.Modf(0.99 * float64(len(values)-1))
	i := int(at)
	return mean, values[i] + part*(values[min(i+1, len(values)-1)]-values[i])
}
