package release_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/synth/release"
	"reprise/trace"
	"reprise/trace/longtest"
)

// seeded is noise that a test sees twice.
func seeded(seed byte) *dp.Noise {
	return dp.NewNoiseFrom(rand.NewChaCha8([32]byte{seed}))
}

// fitted is a model with noise from a seed, however noisy it is.
func fitted(t testing.TB, rows []trace.Request, meta trace.Meta, o release.Options) *release.Model {
	t.Helper()
	o.Unchecked = true
	if o.Noise == nil {
		o.Noise = seeded(1)
	}
	m, spent, err := release.Fit(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, meta, o)
	if err != nil || !spent {
		t.Fatal(err, spent)
	}
	return m
}

func written(t testing.TB, m *release.Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func drawn(t testing.TB, m *release.Model, d release.Drawing) []trace.Request {
	t.Helper()
	w, err := m.Generate(d)
	if err != nil {
		t.Fatal(err)
	}
	var out trace.SliceWriter[trace.Request]
	if _, err := trace.Copy(&out, w.Reader()); err != nil {
		t.Fatal(err)
	}
	if int64(len(out.Rows)) != w.Rows() {
		t.Fatalf("%d rows, and %d were announced", len(out.Rows), w.Rows())
	}
	return out.Rows
}

func digestOf(rows []trace.Request) string {
	d := trace.NewDigest()
	d.Add(rows)
	return d.Sum()
}

func TestModelFile(t *testing.T) {
	for _, unit := range []string{synth.UnitUser, synth.UnitSession, synth.UnitRequest} {
		m := fitted(t, rowsOf(1, 200), windowed("source"), release.Options{Unit: unit})
		b := written(t, m)
		got, err := release.Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		if got.Meta() != m.Meta() || !reflect.DeepEqual(got.Statement(), m.Statement()) {
			t.Errorf("%s: %+v came back, want %+v", unit, got.Meta(), m.Meta())
		}
		if a, b := digestOf(drawn(t, m, release.Drawing{Seed: 3})), digestOf(drawn(t, got, release.Drawing{Seed: 3})); a != b {
			t.Errorf("%s: the file draws other rows than the model", unit)
		}
		if _, err := release.Read(bytes.NewReader(b[:len(b)/2]), int64(len(b)/2)); err == nil {
			t.Errorf("%s: half a file was read", unit)
		}
	}
}

// A release tells how long its capture was, and not when; what workload a source was, it
// does not tell.
func TestMetadataOfReleases(t *testing.T) {
	for _, tier := range []string{synth.TierPartner, synth.TierPublic} {
		meta := windowed("source")
		meta.SourceFormat = "synth,of-jane"
		meta.Capture = trace.Capture{Begin: time.Date(2026, 5, 1, 7, 0, 0, 0, time.UTC), End: time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)}
		m := fitted(t, rowsOf(1, 100), meta, release.Options{Tier: tier, Unit: synth.UnitUser})
		w, err := m.Generate(release.Drawing{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for of, got := range map[string]trace.Meta{"model": m.Meta(), "rows": w.Meta()} {
			if got.Capture != trace.RelativeCapture(0, time.Hour) || got.Tier != tier || strings.Contains(got.SourceFormat, "jane") {
				t.Errorf("%s of tier %s: %+v", of, tier, got)
			}
		}
		want := map[string]float64{synth.TierPartner: 8, synth.TierPublic: 1}[tier]
		if s := m.Statement(); s.Budget.Epsilon != want || s.Wrong() != "" {
			t.Errorf("tier %s: ε = %g, %s", tier, s.Budget.Epsilon, s.Wrong())
		}
	}
	if _, _, err := release.Fit(t.Context(), &trace.SliceReader[trace.Request]{}, windowed("source"), release.Options{Tier: "internal", Unit: synth.UnitUser}); err == nil {
		t.Error("a release of tier internal")
	}
}

func TestDrawnRows(t *testing.T) {
	longtest.Skip(t)
	for _, c := range []struct {
		unit, sessions string
		size           int
	}{{synth.UnitUser, "source", 64}, {synth.UnitSession, "source", 64}, {synth.UnitSession, "inferred", 64}, {synth.UnitSession, "source", 0}, {synth.UnitRequest, "", 64}, {synth.UnitRequest, "", 0}} {
		rows, meta := rowsOf(1, 400), windowed(c.sessions)
		if meta.BlockSize = c.size; c.size == 0 {
			for i := range rows {
				rows[i].Blocks = nil
			}
		}
		m := fitted(t, rows, meta, release.Options{Unit: c.unit, TrunkBlocks: 1, Budget: dp.Budget{Epsilon: 20, Delta: 1e-3}})
		got := drawn(t, m, release.Drawing{Seed: 1, Grid: time.Second})
		if a, b := digestOf(got), digestOf(drawn(t, m, release.Drawing{Seed: 1, Grid: time.Second})); a != b {
			t.Errorf("%v: a seed draws two things", c)
		}
		if a, b := digestOf(got), digestOf(drawn(t, m, release.Drawing{Seed: 2, Grid: time.Second})); a == b {
			t.Errorf("%v: two seeds draw the same", c)
		}
		if n := len(drawn(t, m, release.Drawing{Seed: 1, Scale: 4})); n < 3*len(got) || n > 5*len(got) {
			t.Errorf("%v: %d rows at scale 4, and %d at 1", c, n, len(got))
		}
		last, ids, turns := int64(0), uint64(0), map[int64]int32{}
		for _, q := range got {
			if q.ArrivalNS < last || q.ArrivalNS >= int64(window) || q.ArrivalNS%int64(time.Second) != 0 {
				t.Fatalf("%v: a row arrives at %d", c, q.ArrivalNS)
			}
			last = q.ArrivalNS
			if want := (int(q.InputTokens) + max(1, c.size) - 1) / max(1, c.size); c.size > 0 && len(q.Blocks) != want || c.size == 0 && q.Blocks != nil || q.InputTokens < 1 || *q.OutputTokens < 1 {
				t.Fatalf("%v: %d blocks for %d tokens", c, len(q.Blocks), q.InputTokens)
			}
			if (q.Category != "") != (c.size > 0) {
				t.Fatalf("%v: category %q", c, q.Category)
			}
			for _, b := range q.Blocks {
				if b > ids {
					t.Fatalf("%v: block %d is not dense", c, b)
				}
				if b == ids {
					ids++
				}
			}
			if (q.Session != nil) != (c.unit != synth.UnitRequest) && c.size == 0 {
				t.Fatalf("%v: a row with session %v", c, q.Session)
			}
			if q.Session != nil && c.unit != synth.UnitRequest {
				if *q.Turn != turns[*q.Session] || *q.Session > int64(len(turns)) {
					t.Fatalf("%v: turn %d of session %d", c, *q.Turn, *q.Session)
				}
				turns[*q.Session]++
			}
		}
		if c.size > 0 && c.unit == synth.UnitSession {
			if s := m.Statement(); s.Trunks == nil || s.Trunks.Selected != 3 {
				t.Errorf("%v: trunks %+v, want the 3 that sessions share", c, s.Trunks)
			}
		}
	}
}

// Prompts that are longer early in the capture are so in what is drawn.
func TestDrawnLengthsDrift(t *testing.T) {
	early := func(rows []trace.Request) float64 {
		var tokens, of [2]float64
		for _, q := range rows {
			half := min(1, 2*q.ArrivalNS/int64(window))
			tokens[half], of[half] = tokens[half]+float64(q.InputTokens), of[half]+1
		}
		return tokens[0] / of[0] / (tokens[1] / of[1])
	}
	var rows []trace.Request
	for i := range int32(600) {
		rows = append(rows, trace.Request{ArrivalNS: int64(i) * int64(window) / 600, Session: trace.Ptr(int64(i)), InputTokens: 1000 + 3000*(1-i/300) + i%7, OutputTokens: trace.Ptr[int32](10)})
	}
	meta := windowed("source")
	meta.BlockSize = 0
	m := fitted(t, rows, meta, release.Options{Unit: synth.UnitSession})
	if want, got := early(rows), early(drawn(t, m, release.Drawing{Seed: 1})); got < .8*want || got > 1.2*want {
		t.Errorf("early prompts are %.2f times as long as late ones, and %.2f in the trace", got, want)
	}
}

func TestRefusals(t *testing.T) {
	rows, meta := rowsOf(1, 60), windowed("source")
	fit := func(meta trace.Meta, o release.Options) error {
		_, _, err := release.Fit(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, meta, o)
		return err
	}
	var noisy *release.TooNoisy
	if err := fit(meta, release.Options{Unit: synth.UnitSession, Budget: dp.Budget{Epsilon: 1, Delta: 1e-6}}); !errors.As(err, &noisy) || !strings.Contains(err.Error(), "too small for ε=1") {
		t.Errorf("60 sessions at ε=1: %v", err)
	}
	meta.Capture = trace.Capture{}
	if err := fit(meta, release.Options{Unit: synth.UnitSession}); !errors.Is(err, synth.ErrNoCapture) {
		t.Errorf("without a window: %v", err)
	}
	meta = windowed("")
	meta.BlockSize = 0
	if err := fit(meta, release.Options{Unit: synth.UnitSession}); !errors.Is(err, synth.ErrNoUnit) {
		t.Errorf("without sessions and blocks: %v", err)
	}
	if err := fit(windowed("source"), release.Options{Unit: "house"}); err == nil {
		t.Error("an unknown unit passed")
	}
}

// Two fits of one trace have noise of their own, and what they cost adds up to the budget.
func TestNoiseAndBudget(t *testing.T) {
	rows, meta := rowsOf(1, 100), windowed("source")
	o := release.Options{Unit: synth.UnitSession, Noise: dp.NewNoise()}
	if a, b := fitted(t, rows, meta, o), fitted(t, rows, meta, o); a.Meta().Digest == b.Meta().Digest {
		t.Error("two fits gave one model")
	}
	s := fitted(t, rows, meta, o).Statement()
	rho := 0.0
	for _, x := range s.Tables {
		rho += x.Rho
	}
	e := float64(s.Trunks.Scale) / dp.Denominator // levels/ε
	rho += 49 / e / e / 2                         // 7 levels of prefixes
	if want := dp.Rho(8, 0.9e-6); rho > want || rho < .97*want || s.Rho != want {
		t.Errorf("the tables cost ρ = %g of %g", rho, want)
	}
}

// FuzzRead: whatever a file says, it is refused, or draws rows.
func FuzzRead(f *testing.F) {
	for _, unit := range []string{synth.UnitUser, synth.UnitSession, synth.UnitRequest} {
		f.Add(written(f, fitted(f, rowsOf(1, 50), windowed("source"), release.Options{Unit: unit})))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := release.Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		w, err := m.Generate(release.Drawing{Scale: 20 / float64(m.Sessions())})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := trace.Copy(&trace.SliceWriter[trace.Request]{}, w.Reader()); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkGenerate(b *testing.B) {
	rows := published(b, "mooncake_conversation.jsonl")
	m := fitted(b, rows, metaOf(3540*time.Second), release.Options{Unit: synth.UnitSession})
	for _, scale := range []float64{1, 80} {
		b.Run(time.Duration(scale).String(), func(b *testing.B) {
			for b.Loop() {
				w, err := m.Generate(release.Drawing{Seed: 1, Scale: scale})
				if err != nil {
					b.Fatal(err)
				}
				rows := make([]trace.Request, 512)
				for r, err := w.Reader(), error(nil); err == nil; {
					_, err = r.Read(rows)
				}
				b.ReportMetric(float64(w.Rows()), "rows")
			}
		})
	}
}

// A later prompt can have a size that no first prompt has. Its output is drawn as those of
// the others are, and not from the noise of a row in which nobody is.
func TestOutputsOfNewSizes(t *testing.T) {
	longtest.Skip(t)
	const users = 10_000
	r := rand.New(rand.NewPCG(1, 2))
	var rows []trace.Request
	tokens := 0.0
	for i := range int64(2 * users) {
		q := trace.Request{ArrivalNS: i * int64(window) / (2 * users), Session: trace.Ptr(i % users), InputTokens: int32(1024 + 37*i%1024), OutputTokens: trace.Ptr(1 + int32(200*r.ExpFloat64()))}
		tokens += float64(*q.OutputTokens)
		rows = append(rows, q)
	}
	meta := windowed("source")
	meta.BlockSize = 0
	m := fitted(t, rows, meta, release.Options{Unit: synth.UnitSession})
	got := 0.0
	for _, q := range drawn(t, m, release.Drawing{Seed: 1}) {
		got += float64(*q.OutputTokens)
	}
	if p := m.Statement().Predicted.Output; p > 0.2 || got < .9*tokens || got > 1.1*tokens {
		t.Errorf("%.0f output tokens for %.0f, and a predicted error of %g", got, tokens, p)
	}
}
