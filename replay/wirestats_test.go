package replay

import (
	"strings"
	"testing"

	"reprise/replay/host"
	"reprise/replay/internal/h1"
	"reprise/replay/result"
	"reprise/trace"
)

// A run says what became of its connections.
func TestWireInRun(t *testing.T) {
	h := wireEndpoint(t, HTTPOptions{URL: serve(t, stream(tok, stop, done)), Connections: Pooled})
	var out trace.SliceWriter[result.Result]
	run, err := (&Runner{Prompter: words{}, Endpoint: h, Options: Options{MaxInFlight: 1}}).Run(t.Context(), poisson(50, 1e6), &out)
	if err != nil || run.Wire == nil || run.Wire.Dials < 1 || run.Wire.Reused < 50-run.Wire.Dials || run.Wire.Stale != 0 {
		t.Errorf("%+v, %v", run.Wire, err)
	}
}

// More connections in a minute than there are ports are noted.
func TestWirePorts(t *testing.T) {
	for _, c := range []struct {
		dials, ports int64
		noted        bool
	}{{28232, 28232, false}, {28233, 28232, true}, {1 << 20, 0, false}} {
		w := described(h1.Stats{Dials: c.dials, MaxMinute: c.dials}, c.ports)
		if strings.Contains(w.Note, "28233 connections") != c.noted || c.noted == (w.Note == "") {
			t.Errorf("%+v: %q", c, w.Note)
		}
	}
}

func TestCheckFiles(t *testing.T) {
	if err := CheckFiles(1); err != nil {
		t.Error(err)
	}
	limit := host.FileLimit()
	if err := CheckFiles(int(limit) - int(host.OpenFiles()) - spareFiles + 1); err == nil || !strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("more than may be open: %v", err)
	}
}
