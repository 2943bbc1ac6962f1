package bench

import (
	"context"
	"testing"
	"time"

	"reprise/replay"
	"reprise/replay/engine"
	"reprise/trace"
	"reprise/trace/fleet"
)

// A closed loop of rows without end, of which the server takes some and refuses the
// others, comes to the end of its duration: being refused takes a round trip.
func TestRefusedClosedLoopEnds(t *testing.T) {
	preset, err := engine.OpenPreset("l4-qwen2.5-0.5b")
	if err != nil {
		t.Fatal(err)
	}
	fleet := engine.FleetConfig{Engine: preset.Engine, Replicas: 1, Router: fleet.RoundRobin}
	fleet.Engine.MaxSeqs, fleet.Engine.MaxWaiting = 2, 1
	rows := &replay.Loop{Rows: 1, PeriodNS: 1e9, Open: func() (trace.Reader[trace.Request], error) {
		return &trace.SliceReader[trace.Request]{Rows: []trace.Request{{InputTokens: 10, OutputTokens: trace.Ptr[int32](100)}}}, nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var results kept
	_, run, err := Simulation{Fleet: fleet, Rows: rows, Results: &results, Options: replay.Options{Concurrency: 6, Duration: time.Second, Endless: true},
		Progress: func(sent int64) {
			if sent > 100_000 {
				cancel()
			}
		}}.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, r := range results.rows {
		if r.Error != "" {
			refused++
			if *r.DoneNS-*r.SentNS != 1e6 {
				t.Fatalf("refused after %d ns", *r.DoneNS-*r.SentNS)
			}
		}
	}
	// Three places of six are refused in each millisecond.
	if refused < 2900 || refused > 3100 || run.Requests != int64(len(results.rows)) {
		t.Errorf("%d of %d refused", refused, run.Requests)
	}
}
