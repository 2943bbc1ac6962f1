package main

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/synth/release"
	"reprise/trace"
)

// The membership game of audit draws its noise in one process. Models that processes of
// their own make, with and without the heaviest user, vary as those do. The program is
// built without its gate of size, which would refuse 300 users.
func TestProcessesVaryAsTheGame(t *testing.T) {
	if os.Getenv("REPRISE_TEST_DP") == "" {
		t.Skip("it starts a hundred processes: set REPRISE_TEST_DP=1")
	}
	const runs = 50
	bin := buildWith(t, overlaying(t, "synth/release/model.go", `worst != "" && !f.options.Unchecked`, `worst != "" && false`))
	for name, users := range map[string]int64{"with the heaviest user": 300, "without": 299} {
		dir := t.TempDir()
		path := filepath.Join(dir, "t.parquet")
		var rows []trace.Request
		for i := range int64(600) {
			q := trace.Request{ArrivalNS: i * 6e9, InputTokens: int32(500 + i%300), OutputTokens: trace.Ptr(int32(20 + i%50)), User: trace.Ptr(i % 299), Session: trace.Ptr(i % 299), Status: trace.StatusOK}
			rows = append(rows, q)
			if i%14 == 0 && users == 300 {
				q.User, q.Session, q.InputTokens, q.OutputTokens = trace.Ptr(int64(299)), trace.Ptr(int64(299)), 3000, trace.Ptr[int32](900)
				rows = append(rows, q)
			}
		}
		meta := trace.Meta{Tier: anonymize.Internal, Sessions: "source", Capture: trace.RelativeCapture(0, 3600e9)}
		err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
			d := trace.NewDigest()
			d.Add(rows)
			meta.Digest = d.Sum()
			_, err := w.Write(slices.Clone(rows))
			return meta, err
		})
		if err != nil {
			t.Fatal(err)
		}
		var figures [2][][3]float64
		for range runs {
			model := filepath.Join(dir, "m.parquet")
			cmd := exec.Command(bin, "synth", "fit", path, "--tier", "partner", "--unit", "user", "--epsilon", "4", "--max-input", "4096", "--max-output", "1024", "--i-understand", "--quiet", "--overwrite", "-o", model)
			cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			f, err := os.Open(model)
			if err != nil {
				t.Fatal(err)
			}
			info, _ := f.Stat()
			m, err := release.Read(f, info.Size())
			f.Close()
			if err != nil {
				t.Fatal(err)
			}
			figures[0] = append(figures[0], drawnTotals(t, m))
			m, _, err = release.Fit(t.Context(), &trace.SliceReader[trace.Request]{Rows: slices.Clone(rows)}, meta,
				release.Options{Budget: dp.Budget{Epsilon: 4, Delta: 1e-6}, Unit: synth.UnitUser, MaxInput: 4096, MaxOutput: 1024, Unchecked: true})
			if err != nil {
				t.Fatal(err)
			}
			figures[1] = append(figures[1], drawnTotals(t, m))
		}
		for i, of := range []string{"sessions", "input tokens", "output tokens"} {
			var x [2][]float64
			for side := range x {
				for _, f := range figures[side] {
					x[side] = append(x[side], f[i])
				}
			}
			d := largestGap(x[0], x[1])
			t.Logf("%s, %s: Kolmogorov-Smirnov distance %.2f of %d processes and %d fits", name, of, d, runs, runs)
			if limit := 1.95 * math.Sqrt(2./runs); d > limit { // by chance once in a thousand
				t.Errorf("%s, %s: processes vary otherwise than the game: %.2f above %.2f", name, of, d, limit)
			}
		}
	}
}

// drawnTotals are figures of what a model draws, in which all its noise is.
func drawnTotals(t *testing.T, m *release.Model) (f [3]float64) {
	t.Helper()
	w, err := m.Generate(release.Drawing{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	f[0] = float64(m.Sessions())
	err = trace.Each(w.Reader(), func(_ int64, r *trace.Request) error {
		f[1], f[2] = f[1]+float64(r.InputTokens), f[2]+float64(*r.OutputTokens)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// largestGap is the largest distance of two distributions.
func largestGap(a, b []float64) (most float64) {
	share := func(x []float64, at float64) float64 {
		n := 0
		for _, v := range x {
			if v <= at {
				n++
			}
		}
		return float64(n) / float64(len(x))
	}
	for _, at := range append(slices.Clone(a), b...) {
		most = max(most, math.Abs(share(a, at)-share(b, at)))
	}
	return most
}
