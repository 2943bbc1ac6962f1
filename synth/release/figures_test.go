package release_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/synth/fidelity"
	"reprise/synth/release"
	"reprise/trace"
)

// published are the rows of a published trace in Mooncake's format, or the test skips.
func published(t testing.TB, name string) []trace.Request {
	t.Helper()
	f, err := os.Open("../../../shared/data/" + name)
	if err != nil {
		t.Skip("the published trace is not here")
	}
	defer f.Close()
	var rows []trace.Request
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct {
			Timestamp int64    `json:"timestamp"`
			Input     int32    `json:"input_length"`
			Output    int32    `json:"output_length"`
			IDs       []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, trace.Request{ArrivalNS: l.Timestamp * 1e6, InputTokens: l.Input, OutputTokens: trace.Ptr(l.Output), Blocks: l.IDs})
	}
	return rows
}

func metaOf(span time.Duration) trace.Meta {
	return trace.Meta{BlockSize: 512, Convention: trace.PartialTail, Tier: "internal", Sessions: "inferred", Capture: trace.RelativeCapture(0, span)}
}

// measured are the distances of a release from its trace, by measure.
func measured(t testing.TB, meta trace.Meta, rows []trace.Request, w *release.Release) map[string]float64 {
	t.Helper()
	a, b := fidelity.NewSignature(meta, fidelity.Options{}), fidelity.NewSignature(w.Meta(), fidelity.Options{})
	if _, err := a.Write(slices.Clone(rows)); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Copy(b, w.Reader()); err != nil {
		t.Fatal(err)
	}
	r, err := fidelity.Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, m := range r.Measures {
		if m.Distance != nil {
			out[m.Name] = *m.Distance
		}
		if m.Cand != nil {
			out[m.Name+" is"] = *m.Cand
		}
	}
	return out
}

// What releases of the published conversation trace keep, at the 95th percentile of runs
// with noise of their own. It takes minutes: run it by hand.
func TestKeepsMooncake(t *testing.T) {
	if os.Getenv("REPRISE_TEST_RELEASE") != "1" {
		t.Skip("it takes minutes: set REPRISE_TEST_RELEASE=1")
	}
	rows := published(t, "mooncake_conversation.jsonl")
	for _, c := range []struct {
		epsilon float64
		runs    int
		limits  map[string]float64
	}{
		{8, 20, map[string]float64{"mrc_mae": .016, "hit_by_block": .02, "input_ks": .03, "output_ks": .03}},
		{4, 20, map[string]float64{"mrc_mae": .025, "hit_by_block": .04}},
		{2, 20, map[string]float64{"mrc_mae": .03, "hit_by_block": .05}},
		{1, 20, nil},
	} {
		t.Run(fmt.Sprint(c.epsilon), func(t *testing.T) {
			held(t, rows, metaOf(3540*time.Second), 3*time.Second, c.epsilon, c.runs, c.limits)
		})
	}
}

// The same of any trace of Reprise, of which the window is from its begin to its last
// arrival where it declares none.
func TestKeepsTrace(t *testing.T) {
	name := os.Getenv("REPRISE_TEST_RELEASE")
	if name == "" || name == "1" {
		t.Skip("it takes minutes: set REPRISE_TEST_RELEASE to a trace")
	}
	f, err := trace.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, err := f.Reader()
	if err != nil {
		t.Fatal(err)
	}
	var in trace.SliceWriter[trace.Request]
	if _, err := trace.Copy(&in, src); err != nil {
		t.Fatal(err)
	}
	meta := f.Meta
	if meta.Capture.Length() <= 0 {
		meta.Capture = trace.RelativeCapture(0, time.Duration(in.Rows[len(in.Rows)-1].ArrivalNS).Truncate(time.Second)+time.Second)
	}
	runs := 10
	if len(in.Rows) > 50_000 {
		runs = 3
	}
	for _, epsilon := range []float64{8, 4, 2, 1} {
		held(t, in.Rows, meta, 0, epsilon, runs, nil)
	}
}

func held(t *testing.T, rows []trace.Request, meta trace.Meta, grid time.Duration, epsilon float64, runs int, limits map[string]float64) {
	all := map[string][]float64{}
	for run := range runs {
		o := release.Options{Budget: dp.Budget{Epsilon: epsilon, Delta: 1e-6}, Unit: synth.UnitSession}
		m, _, err := release.Fit(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, meta, o)
		var noisy *release.TooNoisy
		if errors.As(err, &noisy) {
			all["refused"] = append(all["refused"], 1)
			o.Unchecked = true
			m, _, err = release.Fit(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, meta, o)
		}
		if err != nil {
			t.Fatal(err)
		}
		p := m.Statement().Predicted
		all["predicted hit"], all["predicted input"] = append(all["predicted hit"], p.Hit), append(all["predicted input"], p.Input)
		all["predicted input_ks"], all["predicted output_ks"] = append(all["predicted input_ks"], p.InputKS), append(all["predicted output_ks"], p.OutputKS)
		all["predicted requests"] = append(all["predicted requests"], p.Requests)
		w, err := m.Generate(release.Drawing{Seed: uint64(run), Grid: grid})
		if err != nil {
			t.Fatal(err)
		}
		is := measured(t, meta, rows, w)
		for name, x := range is {
			all[name] = append(all[name], x)
		}
		if is["hit_by_block"] > p.Hit {
			all["hit above predicted"] = append(all["hit above predicted"], is["hit_by_block"])
		}
	}
	for _, name := range []string{"mrc_mae", "hit_by_block", "hit_by_block is", "input_ks", "output_ks", "rho_input_output", "idc_log2", "requests", "input_tokens", "output_tokens",
		"turns_ks", "categories", "hit above predicted", "predicted hit", "predicted input", "predicted requests", "predicted input_ks", "predicted output_ks", "refused"} {
		x := all[name]
		if len(x) == 0 {
			continue
		}
		slices.Sort(x)
		p95 := x[(len(x)*95+99)/100-1]
		t.Logf("ε=%g, %d runs: %-20s %.4f … %.4f, 95th percentile %.4f", epsilon, len(x), name, x[0], x[len(x)-1], p95)
		if limit, ok := limits[name]; ok && !(p95 <= limit) {
			t.Errorf("ε=%g: %s is %.4f at the 95th percentile, above %g", epsilon, name, p95, limit)
		}
	}
}
