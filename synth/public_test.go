package synth

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"reprise/anonymize/dp"
	"reprise/trace"
)

func noiseOf(seed byte) *dp.Noise { return dp.NewNoiseFrom(rand.NewChaCha8([32]byte{seed})) }

// declared is meta with a capture in which all rows are.
func declared(meta trace.Meta, rows []trace.Request) trace.Meta {
	meta.Capture = trace.RelativeCapture(0, time.Duration(rows[len(rows)-1].ArrivalNS+1))
	return meta
}

// fitPublic fits with noise of a seed.
func fitPublic(t testing.TB, rows []trace.Request, meta trace.Meta, o PublicOptions, seed byte) (*Model, *Release) {
	t.Helper()
	o.Noise = noiseOf(seed)
	m, r, spent, err := FitPublic(t.Context(), cloned(rows), declared(meta, rows), o)
	if err != nil {
		t.Fatal(err)
	}
	if !spent {
		t.Error("nothing was spent")
	}
	return m, r
}

func totals(rows []trace.Request) (in, out float64) {
	for i := range rows {
		in, out = in+float64(rows[i].InputTokens), out+float64(rows[i].OutputTokens)
	}
	return in, out
}

func p99(rows []trace.Request, of func(*trace.Request) int32) float64 {
	var v []int32
	for i := range rows {
		v = append(v, of(&rows[i]))
	}
	slices.Sort(v)
	return float64(v[len(v)*99/100])
}

// Of 218,707 requests of 60,000 users the model keeps what it says: totals and
// 99th percentiles within the predicted errors, and most of the shape.
func TestPublicKeeps(t *testing.T) {
	if os.Getenv("REPRISE_TEST_LONG") == "" {
		t.Skip("long: set REPRISE_TEST_LONG=1")
	}
	meta := trace.Meta{BlockSize: 64, Convention: trace.PartialTail, Sessions: sessionsOfSource, Tier: "internal", Digest: "sha256:the source",
		Card: "{}", Seed: "5", TimeUnit: "ms"}
	rows := aCrowd{users: 60000, hours: 6, size: meta.BlockSize}.rows(1)
	o := PublicOptions{Unit: UnitUser, MaxInput: 65536, MaxOutput: 8192}
	input := func(r *trace.Request) int32 { return r.InputTokens }
	output := func(r *trace.Request) int32 { return r.OutputTokens }
	for seed := range byte(2) {
		m, r := fitPublic(t, rows, meta, o, seed)
		w, err := m.Generate(t.Context(), Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		got := readAll(t, w.Reader())
		in, out := totals(rows)
		gotIn, gotOut := totals(got)
		p := r.Predicted
		for name, x := range map[string][3]float64{"total input": {gotIn, in, p.InputTotal}, "total output": {gotOut, out, p.OutputTotal},
			"p99 of input": {p99(got, input), p99(rows, input), p.InputP99}, "p99 of output": {p99(got, output), p99(rows, output), p.OutputP99}} {
			e := math.Abs(x[0]/x[1] - 1)
			t.Logf("seed %d: %s is off by %.2f %%, predicted at most %.2f %%", seed, name, 100*e, 100*x[2])
			if e > x[2] {
				t.Errorf("seed %d: %s is %.0f, want %.0f ± %.1f %%", seed, name, x[0], x[1], 100*x[2])
			}
		}
		if seed > 0 {
			continue
		}
		c := Compared(t, meta, rows, w.Meta(), got)
		for name, limit := range map[string]float64{"requests": 0.02, "input_ks": 0.015, "output_ks": 0.015, "input_output_ks2d": 0.02,
			"rho_input_output": 0.02, "hit_by_block": 0.03, "mrc_mae": 0.10, "categories": 0.05, "turns_ks": 0.08, "turn_gap_ks": 0.15, "think_ks": 0.05, "duration_s": 0.05} {
			x := c.Distance[name]
			t.Logf("seed %d: %s %.4f", seed, name, opt2(x))
			if !(opt2(x) <= limit) {
				t.Errorf("seed %d: %s is %.4f, want at most %g", seed, name, opt2(x), limit)
			}
		}
	}
}

// Nothing of the trace is in the model but noisy counts, and it says what it is.
func TestPublicModelSaysWhatItIs(t *testing.T) {
	m, r := smallPublic(t, 3)
	meta := m.Meta()
	if meta.Tier != TierPublic || meta.Unit != UnitUser || meta.TimeUnit != "" || meta.Seed != "" || meta.Sessions != "" || meta.SourceFormat != "test" {
		t.Errorf("the metadata are %+v", meta)
	}
	b := written(t, m)
	if bytes.Contains(b, []byte("sha256:the source")) {
		t.Error("the digest of the trace is in the model: whoever has the trace but for a row could find the row")
	}
	in, err := trace.NewRowsReader[cellRow](bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"reprise.tier": "public", "reprise.unit": "user", "reprise.epsilon": "50", "reprise.delta": "1e-06",
		"reprise.mechanism": "discrete ", "reprise.records_per_unit": "8", "reprise.records_per_unit_and_cell": "2", "reprise.dropped_share": "0",
		"reprise.sensitivities": `[{"name":"requests","l1":64,"l2_squared":4096}`, "reprise.model_kind": "cells", "reprise.privacy_note": "Differentially private"} {
		if got, _ := in.Metadata(key); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	card, err := json.Marshal(r)
	if err != nil || strings.Contains(string(card), "Exact") {
		t.Errorf("the card is %s, %v", card, err)
	}
	if got := m.Release(); got == nil || got.Predicted != r.Predicted || got.Selection == nil {
		t.Errorf("the card reads %+v", got)
	}
	w, err := m.Generate(t.Context(), Options{Seed: 1, Requests: 10})
	if err != nil {
		t.Fatal(err)
	}
	if g := w.Meta(); g.Tier != TierPublic || g.Card != meta.Card || g.Unit != UnitUser {
		t.Errorf("the workload's metadata are %+v", g)
	}
	for _, q := range readAll(t, w.Reader()) {
		if q.User != nil || q.Model != "" || q.Adapter != "" || q.Class != nil {
			t.Errorf("a row is %+v", q)
		}
	}
}

// smallPublic is a model of a small trace, by a budget that hides little.
func smallPublic(t testing.TB, seed byte) (*Model, *Release) {
	meta := trace.Meta{BlockSize: 64, Sessions: sessionsOfSource, Tier: "internal", Digest: "sha256:the source", Card: "{}", Seed: "5", TimeUnit: "ms", SourceFormat: "test, model 0123456789ab"}
	rows := aCrowd{users: 6000, hours: 1, size: 64}.rows(1)
	return fitPublic(t, rows, meta, PublicOptions{Unit: UnitUser, Budget: dp.Budget{Epsilon: 50, Delta: 1e-6}, MaxInput: 65536, MaxOutput: 8192}, seed)
}

func TestPublicRefuses(t *testing.T) {
	rows := aCrowd{users: 500, hours: 1, size: 64}.rows(1)
	meta := trace.Meta{BlockSize: 64}
	fit := func(rows []trace.Request, meta trace.Meta, o PublicOptions) (bool, error) {
		o.Noise = noiseOf(1)
		m, r, spent, err := FitPublic(t.Context(), cloned(rows), declared(meta, rows), o)
		if m != nil || (r != nil) != spent && err == nil {
			t.Errorf("%+v: a model in spite of an error", o)
		}
		return spent, err
	}
	spent, err := fit(rows, meta, PublicOptions{Unit: UnitUser})
	var noisy *TooNoisy
	if !errors.As(err, &noisy) || !spent {
		t.Fatalf("few requests: %v", err)
	}
	for _, want := range []string{"records are too few for ε=1", "a user as the unit", "predicted error of ", " %, and at most 10 %", "--max-output"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the reason %q does not say %q", err, want)
		}
	}
	bare := slices.Clone(rows)
	for i := range bare {
		bare[i].User = nil
	}
	for name, c := range map[string]struct {
		rows []trace.Request
		meta trace.Meta
		o    PublicOptions
	}{
		"no users":          {bare, meta, PublicOptions{Unit: UnitUser}},
		"inferred sessions": {rows, trace.Meta{BlockSize: 64, Sessions: sessionsInferred}, PublicOptions{Unit: UnitSession}},
	} {
		if spent, err := fit(c.rows, c.meta, c.o); !errors.Is(err, ErrNoUnit) || spent {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		meta trace.Meta
		o    PublicOptions
	}{
		"partner": {trace.Meta{BlockSize: 64, Tier: "partner"}, PublicOptions{Unit: UnitUser}},
		"public":  {trace.Meta{BlockSize: 64, Tier: TierPublic}, PublicOptions{Unit: UnitUser}},
		"a unit":  {meta, PublicOptions{Unit: "tenant"}},
		"no unit": {meta, PublicOptions{}},
		"a limit": {meta, PublicOptions{Unit: UnitUser, MaxInput: -1}},
		"a cell":  {meta, PublicOptions{Unit: UnitUser, Contribution: dp.Contribution{Records: 2, PerCell: 3}}},
		"blocks":  {trace.Meta{}, PublicOptions{Unit: UnitUser}},
	} {
		if spent, err := fit(rows, c.meta, c.o); err == nil || spent {
			t.Errorf("%s: no error", name)
		}
	}
	for _, c := range []struct {
		meta trace.Meta
		rows []trace.Request
		want string
	}{{meta, rows, UnitUser}, {meta, bare, ""}, {trace.Meta{Sessions: sessionsOfSource}, bare, UnitSession}, {trace.Meta{Sessions: sessionsInferred}, bare, ""}} {
		if got, err := ChooseUnit(cloned(c.rows), c.meta); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("the unit is %q, %v; want %q", got, err, c.want)
		}
	}
}

// The Azure code trace has too few requests for ε=1, even one by one: that is
// said, with a reason.
func TestPublicRefusesAzureCode(t *testing.T) {
	const path = "../../shared/data/azure_llm_2023_code.csv"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Skip("the published trace azure_llm_2023_code.csv is not here")
	}
	rows := azureRows(t, string(b))
	for seed := range byte(5) {
		_, _, _, err := FitPublic(t.Context(), cloned(rows), declared(trace.Meta{}, rows), PublicOptions{Unit: UnitRequest, Noise: noiseOf(seed)})
		if err == nil || !strings.HasPrefix(err.Error(), "8819 records are too few for ε=1 with a request as the unit of privacy: predicted error of ") {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// The Mooncake lengths, seventeen times: 204,527 requests are enough to protect
// each of them.
func TestPublicMooncakeReplicated(t *testing.T) {
	if os.Getenv("REPRISE_TEST_LONG") == "" {
		t.Skip("long: set REPRISE_TEST_LONG=1")
	}
	once := mooncake(t)
	var rows []trace.Request
	for i := range once {
		for range 17 {
			r := once[i]
			r.Blocks = nil
			rows = append(rows, r)
		}
	}
	m, r := fitPublic(t, rows, trace.Meta{}, PublicOptions{Unit: UnitRequest}, 1)
	got := generated(t, m, Options{Seed: 1})
	in, out := totals(rows)
	gotIn, gotOut := totals(got)
	for name, x := range map[string][3]float64{"input": {gotIn, in, r.Predicted.InputTotal}, "output": {gotOut, out, r.Predicted.OutputTotal}} {
		e := math.Abs(x[0]/x[1] - 1)
		t.Logf("total %s is off by %.2f %%, predicted at most %.2f %%", name, 100*e, 100*x[2])
		if e > x[2] {
			t.Errorf("total %s is off by %.2f %%, predicted at most %.2f %%", name, 100*e, 100*x[2])
		}
	}
}

// Nineteen of twenty errors are below the predicted ones, for lengths of any
// shape and any noise.
func TestPredictedErrors(t *testing.T) {
	sc := quarters(8192)
	noise := noiseOf(1)
	for name, draw := range map[string]func(r *rand.Rand) float64{
		"lognormal": func(r *rand.Rand) float64 { return math.Exp(5 + r.NormFloat64()) },
		"heavy":     func(r *rand.Rand) float64 { return 20 * math.Pow(r.Float64(), -0.8) },
		"short":     func(r *rand.Rand) float64 { return 1 + 30*r.Float64() },
		"two modes": func(r *rand.Rand) float64 { return []float64{10, 4000}[r.IntN(50)/49] * (1 + r.Float64()) },
	} {
		rng := rand.New(rand.NewPCG(1, 1))
		const n = 50000
		truth := make([]int64, sc.cells())
		for range n {
			truth[sc.cellOf(int64(min(draw(rng), 8192)))]++
		}
		mean := func(p []float64) float64 {
			sum := 0.0
			for i, x := range p {
				sum += x * sc.middle(i)
			}
			return sum
		}
		exact := make([]float64, len(truth))
		for i, x := range truth {
			exact[i] = float64(x) / n
		}
		plan, err := dp.NewPlan(dp.Budget{Epsilon: 1, Delta: 1e-6}, []dp.Measurement{dp.DefaultContribution.Measurement("x", len(truth), 1), dp.DefaultContribution.Measurement("y", 10, 3)})
		if err != nil {
			t.Fatal(err)
		}
		missed, widest := [2]int{}, [2]float64{}
		const fits = 400
		for range fits {
			h := &noisy{plan.Noise[0], slices.Clone(truth)}
			if err := h.spec.Add(noise, h.cells); err != nil {
				t.Fatal(err)
			}
			total, tail := h.errors(sc, 0, 1e9)
			kept := shares(h.clean())
			if math.Abs(mean(kept)/mean(exact)-1) > total {
				missed[0]++
			}
			if math.Abs(quantile(sc, kept, 0.01)/quantile(sc, exact, 0.01)-1) > tail+1e-9 {
				missed[1]++
			}
			widest = [2]float64{max(widest[0], total), max(widest[1], tail)}
		}
		t.Logf("%s: of %d fits %d totals and %d percentiles are further off than predicted; the widest are %.3f and %.3f", name, fits, missed[0], missed[1], widest[0], widest[1])
		if missed[0] > fits/20 || missed[1] > fits/20 {
			t.Errorf("%s: of %d fits %d totals and %d percentiles are further off than predicted", name, fits, missed[0], missed[1])
		}
	}
	// Where nothing stands out of the noise there is no bound.
	h := &noisy{dp.NoiseSpec{SD: 10, Variance: 100 * dp.Denominator, Measurement: dp.Measurement{Cells: 57}}, make([]int64, sc.cells())}
	if total, tail := h.errors(sc, 0, 1); !math.IsInf(total, 1) || !math.IsInf(tail, 1) {
		t.Errorf("of nothing the predicted errors are %g and %g", total, tail)
	}
}

// azureRows reads the columns TIMESTAMP, ContextTokens and GeneratedTokens.
func azureRows(t *testing.T, csv string) []trace.Request {
	t.Helper()
	var rows []trace.Request
	var first time.Time
	for _, line := range strings.Split(strings.TrimSpace(csv), "\n")[1:] {
		f := strings.Split(strings.TrimSpace(line), ",")
		at, err := time.Parse("2006-01-02 15:04:05.9999999", f[0])
		in, err2 := strconv.Atoi(f[1])
		out, err3 := strconv.Atoi(f[2])
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatal(err)
		}
		if first.IsZero() {
			first = at
		}
		rows = append(rows, trace.Request{ArrivalNS: int64(at.Sub(first)), InputTokens: int32(in), OutputTokens: int32(out)})
	}
	return rows
}
