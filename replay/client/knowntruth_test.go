package client

import (
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay"
	"reprise/replay/engine"
	"reprise/replay/result"
	"reprise/trace"
)

// Endpoints whose times are known: the first token of a stream and every gap of 64 streams at
// once. Streams share the steps of an engine, of one gap each: a request that comes within a
// step waits until that ends.
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
	c.Engine.Costs = engine.Costs{Request: engine.Picos(ttft-itl) * 1000, Step: engine.Picos(itl) * 1000}
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
				step := int64(c.itl)
				first := (due+step-1)/step*step + int64(c.ttft)
				last := first + (truthTokens-1)*step
				if r.Error != "" || r.DueNS != due || *r.ReleasedNS != due || *r.SentNS != due ||
					*r.FirstTokenNS != first || *r.LastTokenNS != last || *r.DoneNS != last || len(r.GapsNS) != truthTokens-1 {
					t.Fatalf("row %d: %s %d %d %d %d %d", r.RowID, r.Error, r.DueNS, *r.SentNS, *r.FirstTokenNS,
						*r.LastTokenNS, *r.DoneNS)
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
